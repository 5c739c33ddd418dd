package acceptance

import (
	"maps"
	"slices"

	"github.com/1bit-systems/pkg/acceptance/neighbour"
)

// A PlannedLife is one server life, with all that its arm changes. A life that
// replaces one that was no evidence is the same life again.
type PlannedLife struct {
	Index   int    // in the order in which lives are run, from 0
	Arm     int    // index in Plan.Arms
	Name    string // of the arm
	Role    string
	Package string // "": the package that is soaked; of a baseline, the one given as baseline
	Life    int    // of the arm, from 1

	Server    ServerPlan
	Load      Load
	Neighbour *Neighbour // nil: none
	Gates     Gates

	// FirstPrompt is the number of the life's first prompt. Prompts are
	// numbered through all lives of an arm, so that no two of them share one and
	// every length comes equally often; lives of different arms share theirs,
	// which makes the arms comparable.
	FirstPrompt int
}

// promptsOfDuration is how many numbers a life keeps whose load ends by time.
const promptsOfDuration = 1 << 24

// Lives gives every planned life in the order in which they are run: one of
// each arm in turn, so that what drifts on the host drifts under all arms.
func (p *Plan) Lives() []PlannedLife {
	var lives []PlannedLife
	for n := 1; ; n++ {
		before := len(lives)
		for i := range p.Arms {
			if n <= p.Arms[i].Lives {
				life := p.life(i, n)
				life.Index = len(lives)
				lives = append(lives, life)
			}
		}
		if len(lives) == before {
			return lives
		}
	}
}

// life is the n-th of an arm.
func (p *Plan) life(arm, n int) PlannedLife {
	a := p.Arms[arm]
	l := PlannedLife{
		Arm: arm, Name: a.Name, Role: a.Role, Package: a.Package, Life: n,
		Server: p.Server, Load: p.Load, Neighbour: p.Neighbour, Gates: p.Gates,
	}
	if l.Load.InFlight == l.Server.Parallel { // as many as slots stays so
		set(&a.InFlight, a.Parallel)
	}
	override(&l.Server.Parallel, a.Parallel)
	override(&l.Server.Ctx, a.Ctx)
	override(&l.Server.KVUnified, a.KVUnified)
	override(&l.Load.InFlight, a.InFlight)
	l.Server.Flags = slices.Concat(l.Server.Flags, a.Flags)
	l.Server.Env = merged(l.Server.Env, a.Env)
	if a.Requests != 0 || a.Duration != 0 {
		l.Load.Requests, l.Load.Duration = a.Requests, a.Duration
	}
	override(&l.Neighbour, a.Neighbour)
	if l.Neighbour != nil && l.Neighbour.Kind == neighbour.None {
		l.Neighbour = nil
	}
	if l.Neighbour == nil {
		l.Gates.NeighbourWork = 0
	} else {
		set(&l.Gates.NeighbourWork, 1)
	}
	each := l.Load.Requests
	if each == 0 {
		each = promptsOfDuration
	}
	l.FirstPrompt = (n - 1) * each
	return l
}

func override[T comparable](to *T, value T) {
	var zero T
	if value != zero {
		*to = value
	}
}

func merged(base, over map[string]string) map[string]string {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}

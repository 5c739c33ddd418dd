package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/neighbour"
	"github.com/1bit-systems/pkg/acceptance/stats"
)

// notTested says what a reader must not take from the verdict: what the plan
// leaves out, and what could not be seen.
func (j *judging) notTested() []string {
	n := &untested{}
	j.untestedLives(n)
	j.untestedNeighbours(n)
	j.untestedFaces(n)
	j.untestedLoad(n)
	j.untestedHost(n)
	return n.list
}

type untested struct{ list []string }

func (n *untested) add(format string, args ...any) {
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

func (j *judging) untestedLives(n *untested) {
	t := j.groups[RoleCandidate].shown()
	lives := j.groups[RoleCandidate].counted.lives
	switch {
	case lives == 0:
		n.add("lives: 0: no life of the candidate is evidence about the rate")
	case lives == 1:
		n.add("lives: 1: one server start says little about the rate of faults per start")
	}
	for _, program := range slices.Sorted(maps.Keys(j.outside)) {
		n.add("the bytes of the package alone: %s served, which is none of its files", program)
	}
	n.add("uptime beyond %s: no life was under load for longer", loadTime(t.longestUS))
	control := j.groups[RoleControl].counted
	if c := j.groups[RoleCandidate].counted; c.lives > 0 && control.lives > 0 {
		rate := float64(max(control.faulted, 1)) / float64(control.lives)
		n.add("that the candidate is better than the control: with %d and %d lives a control that faults in %.3g of them would be told from none with probability %.2f",
			c.lives, control.lives, rate, stats.Power(control.lives, rate, c.lives, 0, 0.05))
	}
	if j.groups[RoleControl].counted.lives == 0 {
		n.add("a control: the plan has no life of this package under an easier condition, or none was lived")
	}
}

func (j *judging) untestedNeighbours(n *untested) {
	kinds := map[string]bool{}
	for _, l := range j.lives {
		if l.Role == RoleCandidate && l.Neighbour != nil {
			kinds[l.Neighbour.Kind] = true
		}
	}
	if len(kinds) == 0 {
		n.add("neighbour: the candidate had none")
		return
	}
	var others []string
	for _, kind := range []string{neighbour.Bench, neighbour.Server, neighbour.Ops, neighbour.Memory, neighbour.Command} {
		if !kinds[kind] {
			others = append(others, kind)
		}
	}
	if len(others) > 0 {
		n.add("neighbours other than %s: %s", strings.Join(slices.Sorted(maps.Keys(kinds)), ", "), strings.Join(others, ", "))
	}
}

func (j *judging) untestedFaces(n *untested) {
	t := j.groups[RoleCandidate].counted
	for i, f := range j.faces.infos {
		if why := j.unseen(f); why != "" {
			n.add("%s (%s): %s", f.Name, f.About, why)
			continue
		}
		if j.faces.settings[i] == detect.Report && f.Gates {
			n.add("%s as a reason to fail: the plan only reports it", f.Name)
		}
		if j.faces.settings[i] == detect.Gate && f.Needs == detect.NeedsSentinels {
			seen := t.all.of(j.faces, i)
			if seen == 0 {
				n.add("%s under load: only identical requests on the quiet server were compared", f.Name)
				continue
			}
			n.add("%s on other requests than the %d that had a known answer", f.Name, seen)
		}
	}
	if share := *j.plan.Load.LogprobsShare; share < 1 {
		n.add("log-probabilities on %.6g of the requests: the others cannot show a NaN on the wire", 1-share)
	} else {
		n.add("requests that ask for no log-probabilities: every one did, and that takes the server off a part of its usual path")
	}
	if short := t.all.short(); short > 0 && j.faces.setting(detect.Leak) != detect.Off {
		n.add("leaks on %d answers that are too short to hold another request's mark", short)
	}
	if t.notSeen > 0 {
		n.add("log-probabilities of %d answers that came without", t.notSeen)
	}
	if t.guardLines == 0 && j.groups[RoleControl].counted.guardLines == 0 && j.groups[RoleBaseline].counted.guardLines == 0 {
		n.add("the NaN guard: the log had no line of it, which an engine without a guard has in common with a clean one")
	}
	if !*j.plan.FinalProbe {
		n.add("identical requests on a quiet server after the load (final_probe is off)")
	}
	if j.plan.Sentinels.Every > 0 && j.plan.Sentinels.Reference == "" {
		n.add("that the quiet server's own answers are right: the plan has no reference to compare them with")
	}
}

func (j *judging) untestedLoad(n *untested) {
	l := j.plan.Load
	t := j.groups[RoleCandidate].shown()
	n.add("prompts of more than %d tokens and answers of more than %d", t.prompt, t.answer)
	n.add("more than %d requests in flight", j.mostInFlight())
	if l.API != APICompletion {
		n.add("single slots, and first tasks on a slot that was never used: the answers of %s do not say which slot served them", pathOf(l.API))
	}
	for _, other := range []struct {
		name   string
		tested bool
	}{
		{"reuse of cached prompts", l.Prompts != PromptsUnique},
		{"streamed answers", l.Stream},
		{"answers that are not streamed", !l.Stream},
		{"chat templates", l.API == APIChat},
		{"temperatures above 0, other samplers, grammars, tools", false},
		{"models other than the plan's", false},
	} {
		if !other.tested {
			n.add("%s", other.name)
		}
	}
}

func (j *judging) mostInFlight() int {
	most := 0
	for _, l := range j.lives {
		if l.Role == RoleCandidate {
			most = max(most, l.Load.InFlight)
		}
	}
	return most
}

func (j *judging) untestedHost(n *untested) {
	g, t := j.plan.Gates, j.groups[RoleCandidate].shown()
	if g.GTTUsedGiB == nil {
		n.add("a band of GTT in use: the plan has no gate on it")
	}
	switch {
	case t.host.evictedMS == nil:
		n.add("evictions of the server's queues: this host does not count them")
	case g.EvictedMS == 0:
		n.add("evictions of the server's queues: the plan has no gate on them, there were %d ms", *t.host.evictedMS)
	}
	n.add("other hosts, kernels, drivers and power modes than this one's")
}

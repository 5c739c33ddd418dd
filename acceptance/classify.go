package acceptance

import (
	"cmp"
	"fmt"

	"github.com/1bit-systems/pkg/engine"
)

// States of an arm.
const (
	stateClean       = "clean"
	stateFault       = "fault"
	stateInvalid     = "invalid"       // a named outside cause: no evidence either way
	stateOutOfRegime = "out_of_regime" // the condition to be tested was not met
)

// An ArmState is the judgement of one server life.
type ArmState struct {
	Arm         int    `json:"arm"`
	State       string `json:"state"`
	Reason      string `json:"reason"`                  // such as fault(nan-wire)
	Detail      string `json:"detail,omitempty"`        // for people
	OutOfRegime bool   `json:"out_of_regime,omitempty"` // of a fault: outside the rate, but never clean
	Faults      int    `json:"faults"`                  // requests or events that showed a fault
}

// classify judges one arm: fault before invalid before out of regime before
// clean. Everything comes from what the runner saw; nothing is presumed.
func (a *arm) classify() ArmState {
	s := ArmState{Arm: a.start.Arm}
	faults := a.faults()
	regime, regimeDetail := a.outOfRegime()
	if len(faults) > 0 {
		f := faults[0]
		for _, other := range faults {
			if other.Face == FaceLeak && f.Face != FaceLeak {
				f = other
			}
		}
		s.State, s.Reason, s.Detail = stateFault, "fault("+family(f.Face)+")", f.Detail
		s.Faults, s.OutOfRegime = len(faults), regime != ""
		return s
	}
	if reason, detail := a.invalid(); reason != "" {
		s.State, s.Reason, s.Detail = stateInvalid, "invalid("+reason+")", detail
		return s
	}
	if regime != "" {
		s.State, s.Reason, s.Detail = stateOutOfRegime, "out-of-regime("+regime+")", regimeDetail
		return s
	}
	s.State, s.Reason = stateClean, "clean"
	return s
}

// family joins the faces of broken bytes: they are one kind of fault, seen by
// different checks.
func family(face string) string {
	switch face {
	case FaceUTF8, FaceJSON, FaceFormat:
		return "face-b"
	}
	return face
}

// invalid names the outside cause that makes an arm no evidence.
func (a *arm) invalid() (reason, detail string) {
	if cause := a.startupCause(); cause != "" {
		return cause, a.startup.Detail
	}
	if a.oomKilled() {
		return "oom-kill", a.exit.Text + ", and the kernel killed for memory meanwhile"
	}
	if why := a.overcommitted(); why != "" {
		return "plan", why
	}
	switch {
	case a.end == nil:
		return "harness", "the runner ended without closing the arm"
	case a.end.Why == whyInterrupted:
		return "harness", a.end.Detail
	case a.end.Why == whyFault:
		return "harness", "the arm was ended for a fault that the ledger does not hold"
	case a.end.Why == whyRegime:
		return "", "" // then the load is short by intent, and the regime says why
	}
	if why := a.end.Shape.problem(a.plan, a.answered()); why != "" {
		return "load-shape", why
	}
	return "", ""
}

// overcommitted says how the load did not fit the server's context.
func (a *arm) overcommitted() string {
	if a.end != nil && a.end.Why == whyPlan {
		return cmp.Or(a.end.Detail, "the load does not fit the server")
	}
	if i, ok := a.logged(engine.LogContext); ok {
		return a.logs[i].Line
	}
	for _, r := range a.requests {
		for _, f := range r.Faces {
			if f.Face == engine.FaceContext {
				return f.Detail
			}
		}
	}
	return ""
}

// outOfRegime names the condition outside the server that was not met.
func (a *arm) outOfRegime() (reason, detail string) {
	if band := a.plan.Gates.GTTUsedGiB; band != nil && a.load != nil {
		used := a.load.GTTUsedGiB
		if used == nil || !(*used >= band.Min && *used <= band.Max) {
			return "gtt", fmt.Sprintf("%s GiB of GTT in use at the first request, the plan asks for %g to %g", gib(used), band.Min, band.Max)
		}
	}
	if a.plan.Neighbour == nil || a.end == nil {
		return "", ""
	}
	if n := a.end.Neighbour; n != nil && n.Died != "" {
		return "neighbour-died", n.Died
	}
	if runs, tokens, _ := a.neighbourWork(); runs < a.plan.Gates.NeighbourRuns || tokens == 0 {
		return "neighbour-no-work", fmt.Sprintf("the neighbour finished %d runs with %d tokens during the load, the plan asks for %d runs", runs, tokens, a.plan.Gates.NeighbourRuns)
	}
	return "", ""
}

func gib(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f", *v)
}

// neighbourWork counts the runs that finished with results, their tokens, and
// the runs that failed, of those that fell into the load. What a run printed
// before the runner stopped it counts as tokens.
func (a *arm) neighbourWork() (runs int, tokens int64, failed int) {
	for _, r := range a.neighbour {
		if a.end == nil || r.EndUS <= a.end.LoadFromUS || r.StartUS >= a.end.LoadFromUS+a.end.LoadUS {
			continue
		}
		tokens += r.Tokens
		switch {
		case r.Exit == exitOK && r.Tokens > 0:
			runs++
		case r.Exit != exitStopped:
			failed++
		}
	}
	return runs, tokens, failed
}

// ended counts the requests that came to an end of their own, good or bad.
func (a *arm) ended() int {
	return a.count(func(r requestRecord) bool { return r.Outcome != outcomeCensored })
}

// answered counts the requests that got a reply of whatever kind.
func (a *arm) answered() int {
	return a.count(func(r requestRecord) bool { return r.Outcome == outcomeAnswered })
}

func (a *arm) count(is func(requestRecord) bool) int {
	n := 0
	for _, r := range a.requests {
		if is(r) {
			n++
		}
	}
	return n
}

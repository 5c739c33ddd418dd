package acceptance

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/acceptance/detect"
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
	Arm         int    `json:"arm"`  // from 1, replaced ones included
	Name        string `json:"name"` // of the plan's arm
	Role        string `json:"role"`
	Life        int    `json:"life"` // of the arm, from 1
	Replaces    int    `json:"replaces,omitempty"`
	State       string `json:"state"`
	Reason      string `json:"reason"`                  // such as fault(nan-wire)
	Detail      string `json:"detail,omitempty"`        // for people
	OutOfRegime bool   `json:"out_of_regime,omitempty"` // of a fault: outside the rate, but never clean
	Faults      int    `json:"faults"`                  // requests that showed the fault; 1 if none in particular did
	ToFault     *int   `json:"requests_to_fault"`       // requests that had ended when it was first seen, that one included
	Counts      bool   `json:"counts"`                  // it is evidence about the rate

	Requests    int     `json:"requests"` // that ended by themselves
	LoadSeconds float64 `json:"load_seconds"`
	BusyShare   float64 `json:"all_slots_busy_share"`
}

// evidence tells whether the life says anything about the rate in the regime.
func (s ArmState) evidence() bool {
	return s.State == stateClean || s.State == stateFault && !s.OutOfRegime
}

// classify judges one life: fault before invalid before out of regime before
// clean. Everything comes from what the runner saw; nothing is presumed.
func (a *arm) classify() ArmState {
	s := ArmState{
		Arm: a.start.Arm, Name: a.start.Name, Role: a.start.Role, Life: a.start.Life, Replaces: a.start.Replaces,
		Requests: a.requests.ended,
	}
	if a.end != nil {
		s.LoadSeconds = time.Duration(a.end.LoadUS * 1000).Seconds()
		s.BusyShare = a.end.Shape.busyShare()
	}
	episode := a.episode()
	regime, regimeDetail := a.outOfRegime()
	if len(episode) > 0 {
		f := a.fault(episode)
		s.State, s.Reason, s.Detail = stateFault, a.called(f.Face), f.Detail
		s.Faults, s.ToFault, s.OutOfRegime = max(1, f.Requests), f.AfterRequests, regime != ""
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

// startTraces are the traces with the failed start judged by its record: whether
// its cause lies outside depends on the plan.
func (a *arm) startTraces() map[traceKey]*trace {
	all := maps.Clone(a.traces)
	key := traceKey{detect.Startup, detect.Fault}
	if a.startup == nil || a.startup.Problem == "" {
		return all
	}
	if a.startupCause() != "" {
		delete(all, key)
		return all
	}
	if setting := a.faces.setting(detect.Startup); all[key] == nil && setting != detect.Off {
		all[key] = &trace{face: detect.Startup, seen: 1, first: a.startupAt, detail: a.startup.Detail, reported: setting == detect.Report}
	}
	return all
}

// startupCause names the outside cause of a failed start, or "": then it is the
// engine's fault. An allocation that fails within the plan's band of GTT, or
// below it, has no outside cause.
func (a *arm) startupCause() string {
	s, band := a.startup, a.plan.Gates.GTTUsedGiB
	switch {
	case s == nil || s.Problem == "":
		return ""
	case s.PortTaken:
		return "port-taken"
	case s.Changed != "":
		return "changed"
	case s.OOMKilled && unix.Signal(s.Signal) == unix.SIGKILL:
		return "oom-kill"
	case s.AllocFailed && (band == nil || s.GTTUsedGiB == nil || !(*s.GTTUsedGiB <= band.Max)):
		return "load-oom"
	}
	return ""
}

// invalid names the outside cause that makes a life no evidence.
func (a *arm) invalid() (reason, detail string) {
	if s := a.startup; s != nil && s.Problem != "" {
		return cmp.Or(a.startupCause(), "startup"), cmp.Or(s.Changed, s.Detail)
	}
	if e := a.end; e != nil && (e.Changed != "" || e.Why == whyChanged) {
		return "changed", cmp.Or(e.Changed, e.Detail)
	}
	if reason, detail := a.outsideCause(); reason != "" {
		return reason, detail
	}
	switch {
	case a.end == nil:
		return "harness", "the runner ended without closing the arm"
	case a.end.Why == whyInterrupted:
		return "harness", a.end.Detail
	case a.end.Why == whyTeardown:
		return "teardown", a.end.Detail
	case a.end.Why == whySensor:
		return "sensor-lost", a.end.Detail
	case a.end.Why == whyPlan:
		return "plan", cmp.Or(a.end.Detail, "the load does not fit the server")
	case a.end.Why == whyRegime:
		return "", "" // then the load is short by intent, and the regime says why
	case a.exit != nil:
		return "harness", "the server ended by itself, which this plan only reports: " + a.exit.Text
	case a.end.Why == whyFault:
		return "harness", "the arm was ended for a fault that the ledger does not hold: " + a.end.Detail
	}
	if why := a.short(); why != "" {
		return "harness", why
	}
	if why := a.requests.alike.problem(); why != "" {
		return "load-shape", why
	}
	if why := a.end.Shape.problem(a.plan, a.requests.answered); why != "" {
		return "load-shape", why
	}
	return "", ""
}

// outsideCause is a cause that the runner saw, or that a finding names.
func (a *arm) outsideCause() (reason, detail string) {
	all := a.startTraces()
	told := func(face string) (string, bool) {
		t, ok := all[traceKey{face, detect.Invalid}]
		if !ok || t.reported {
			return "", false
		}
		return t.detail, true
	}
	if a.oomKilled() {
		return "oom-kill", a.exit.Text + ", " + cmp.Or(a.exit.KilledBy, "and the kernel had just killed for memory")
	}
	if detail, ok := told(detect.Crash); ok {
		return "oom-kill", detail
	}
	if w := a.watchdog; w != nil {
		return "watchdog", fmt.Sprintf("%s was %g, the limit is %g", w.Reason, w.Value, w.Limit)
	}
	if detail, ok := told(detect.Context); ok {
		return "plan", detail
	}
	for _, f := range a.faces.infos {
		if detail, ok := told(f.Name); ok {
			return f.Name, detail
		}
	}
	return "", ""
}

// short says how the load ended before it was complete.
func (a *arm) short() string {
	if n := a.plan.Load.Requests; n > 0 && a.requests.ended < n {
		return fmt.Sprintf("only %d of %d requests were made", a.requests.ended, n)
	}
	want, got := time.Duration(a.plan.Load.Duration), time.Duration(a.end.LoadUS*1000)
	if want > 0 && got < want {
		return fmt.Sprintf("the load lasted %s of %s", got.Round(time.Millisecond), want)
	}
	return ""
}

// outOfRegime names the condition outside the server that was not met. A load
// that a fault cut short is not held to have had all of the neighbour's work.
func (a *arm) outOfRegime() (reason, detail string) {
	g, cut := a.plan.Gates, len(a.episode()) > 0
	if a.load != nil {
		if band, used := g.GTTUsedGiB, a.load.GTTUsedGiB; band != nil && (used == nil || !(*used >= band.Min && *used <= band.Max)) {
			return "gtt", fmt.Sprintf("%s GiB of GTT in use at the first request, the plan asks for %g to %g", gib(used), band.Min, band.Max)
		}
		if least, mem := g.MemAvailableGiB, a.load.MemAvailableGiB; least > 0 && (mem == nil || !(*mem >= least)) {
			return "mem-available", fmt.Sprintf("%s GiB of memory available at the first request, the plan asks for %g", gib(mem), least)
		}
	}
	if a.end == nil {
		return "", ""
	}
	if a.plan.Neighbour != nil {
		n := a.end.beside()
		if n.Died != "" {
			return "neighbour-died", n.Died
		}
		if cut && max(n.Units, a.beside.ever) > 0 {
			return "", ""
		}
		if need := int64(max(1, g.NeighbourWork)); n.Units < need {
			return "neighbour-no-work", fmt.Sprintf("the neighbour did %s during the load, the plan asks for %d", n, need)
		}
	}
	if least := g.EvictedMS; least > 0 && !cut {
		if ms := a.end.EvictedMS; ms == nil || *ms < least {
			return "no-exposure", fmt.Sprintf("queues of the server were evicted for %s ms, the plan asks for %d", milliseconds(ms), least)
		}
	}
	return "", ""
}

func gib(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.1f", *v)
}

func milliseconds(v *int64) string {
	if v == nil {
		return "an unknown number of"
	}
	return fmt.Sprint(*v)
}

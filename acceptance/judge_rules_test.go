package acceptance

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/stats"
	"github.com/1bit-systems/pkg/engine"
)

// The fault comes first, in whatever state the life was besides.
func TestRulePrecedence(t *testing.T) {
	outside := map[string]func(*lifeStory){
		"out of regime": func(l *lifeStory) { l.load.GTTUsedGiB = number(10) },
		"load shape":    func(l *lifeStory) { l.end.Shape.LCP = 5 },
		"memory":        func(l *lifeStory) { l.kill(int(unix.SIGKILL), true) },
		"watchdog":      func(l *lifeStory) { l.more = append(l.more, entry{recordWatchdog, watchdogRecord{Reason: "life"}}) },
		"plan": func(l *lifeStory) {
			l.more = append(l.more, entry{recordFinding, findingRecord{Finding: detect.Finding{Face: detect.Context, Grade: detect.Invalid}}})
		},
		"harness": func(l *lifeStory) { l.end.Why = whyInterrupted },
	}
	for name, spoil := range outside {
		s := oneLife()
		spoil(s.only())
		v := s.verdict(t)
		if v.Verdict != Inconclusive || v.Arms.Clean+v.Arms.Fault != 0 {
			t.Errorf("%s: %s: %s", name, v.Verdict, v.Reason)
		}
		s.only().face(30, detect.JSON)
		v = s.verdict(t)
		want(t, v, Fail, "fault(face-b)")
	}
	// Invalid comes before out of regime.
	s := oneLife()
	outside["out of regime"](s.only())
	outside["load shape"](s.only())
	want(t, s.verdict(t), Inconclusive, "invalid(load-shape)")
}

// N is not extended. Only what was no evidence is lived again.
func TestRuleNoExtension(t *testing.T) {
	s := manyLives(59, 80)
	s.plan = strings.Replace(s.plan, "p0: 0.05", "p0: 0.0485", 1) // 60 lives exclude 0.048703, 61 would exclude 0.047924
	again := cleanLife(25)
	again.start.Life = 1
	s.lives = append(s.lives, again, again, again)
	v := s.verdict(t)
	want(t, v, Inconclusive, "no fault seen, but the bound at 59 server lives is 0.049508 > p0 0.0485, needs 61 server lives")
	if len(v.Notes) != 3 || v.ArmStates[61].Counts {
		t.Errorf("notes %q, %+v", v.Notes, v.ArmStates[61])
	}
	// A life that the plan does not have makes the ledger senseless.
	again.start.Life = 60
	if v := s.verdict(t); v.Verdict != Inconclusive || !strings.Contains(v.Reason, "the plan has no life 60") {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
	// Living a faulted life again does not undo the fault.
	again.start.Life = 1
	s.lives[0].cut(5)
	s.lives[0].face(4, detect.JSON)
	v = s.verdict(t)
	want(t, v, Fail, "fault(face-b)")
	if v.Bounds.PrimaryN != 59 || !(v.Bounds.ArmUpper95 > 0.07) {
		t.Errorf("%+v", v.Bounds)
	}
}

// That all slots were busy, and each of them often enough.
func TestRuleLoadShape(t *testing.T) {
	for name, change := range map[string]func(*shape){
		"one at a time":     func(s *shape) { s.AllSlotsBusy = 0 },
		"a slot too seldom": func(s *shape) { s.Launches[3] = 4 },
		"a prefix":          func(s *shape) { s.LCP = 1 },
		"no unified memory": func(s *shape) { s.KVUnified = false },
		"other slots":       func(s *shape) { s.Slots = 3 },
	} {
		s := oneLife()
		change(&s.only().end.Shape)
		if v := s.verdict(t); v.Verdict != Inconclusive || !strings.HasPrefix(v.Reason, "invalid(load-shape)") {
			t.Errorf("%s: %s: %s", name, v.Verdict, v.Reason)
		}
	}
}

// Latency counts from when a request was meant to start.
func TestRuleIntendedStart(t *testing.T) {
	s := oneLife()
	for i := range s.only().requests {
		r := &s.only().requests[i]
		r.IntendedUS, r.StartUS, r.EndUS = 1000, 901_000, 1_001_000
	}
	if got := s.verdict(t).Exposure.LatencyMS; !(got.P50 > 995 && got.Max == 1000) {
		t.Errorf("%+v", got)
	}
}

// A context that is too small is the plan's doing, an error of the
// server is its own.
func TestRuleOvercommit(t *testing.T) {
	s := oneLife()
	s.only().cut(10)
	s.only().end.Why, s.only().end.Detail = whyPlan, "the load needs a context of 9000 tokens, the server made one of 8192"
	want(t, s.verdict(t), Inconclusive, "invalid(plan): the load needs")
	s.only().end.Why = whyFault
	s.only().face(9, detect.Status)
	want(t, s.verdict(t), Fail, "fault(status)")
}

// Sequential pairs that differ are corruption, differences of
// rounding are told.
func TestRuleIdentity(t *testing.T) {
	for face, verdict := range map[string]string{detect.Corruption: Fail, detect.Numeric: Pass} {
		s := oneLife()
		s.plan += "sentinels: {every: 6}\n"
		s.only().requests[60].Kind = kindSentinel
		s.only().face(60, face)
		want(t, s.verdict(t), verdict, "")
	}
}

// At the first fault the load stops; what is in flight then and comes
// back clean is no evidence, what comes back bad is.
func TestRuleCensoredAtTheFirstFault(t *testing.T) {
	s := oneLife()
	l := s.only()
	l.cut(40)
	l.face(35, detect.NaNWire) // the four after it were in flight, and one of them is bad too
	l.face(37, detect.NaNWire)
	l.requests[39].Outcome = outcomeCensored
	v := s.verdict(t)
	want(t, v, Fail, "fault(nan-wire)")
	f := v.Faults[0]
	if v.Requests != 37 || v.Exposure.Censored != 3 || f.Requests != 2 || *f.AfterRequests != 36 || *f.Request != 35 {
		t.Errorf("%d requests, %d censored, %+v", v.Requests, v.Exposure.Censored, f)
	}
	if diff := fmt.Sprint(f.BySlot); diff != "map[1:1 3:1]" {
		t.Errorf("by slot %s", diff)
	}
}

// Tokens without log-probabilities that were asked for are not
// observed, and never clean evidence of a NaN's absence.
func TestRuleNotObserved(t *testing.T) {
	s := oneLife()
	for i := range 10 {
		s.only().requests[i].Observed = 0
		s.only().requests[i].Findings = []detect.Finding{{Face: detect.NotObserved, Grade: detect.Warning}}
	}
	v := s.verdict(t)
	want(t, v, Inconclusive, "no fault seen, but the bound at 56 requests is 0.052090 > p0 0.05, needs 59 requests")
	if v.Exposure.NotObserved != 10 || v.Exposure.Warnings[detect.NotObserved] != 10 || !notTested(v, "log-probabilities of 10 answers") {
		t.Errorf("%+v, %q", v.Exposure, v.NotTested)
	}
}

// Shapes of text warn.
func TestRuleShapesOfText(t *testing.T) {
	s := oneLife()
	s.only().requests[5].Findings = []detect.Finding{{Face: detect.Text, Grade: detect.Warning, Detail: "U+FFFD"}}
	v := s.verdict(t)
	want(t, v, Pass, "0 faults")
	if v.Exposure.Warnings[detect.Text] != 1 || len(v.Faults) != 0 {
		t.Errorf("%+v", v.Exposure.Warnings)
	}
}

const fiveArms = `name: five
model: m.gguf
load: {requests: 60}
neighbour: {kind: server}
arms:
  - {name: beside, lives: 2}
  - {name: alone, role: control, lives: 2, neighbour: {kind: none}}
  - {name: old-beside, role: baseline, lives: 1}
  - {name: candidate-alone, lives: 1, neighbour: {kind: none}}
primary: arm
p0: 0.8
`

// fiveLives is a clean run of that plan, in the order of its lives.
func fiveLives() *story {
	s := &story{plan: fiveArms}
	for _, arm := range []struct{ planned, life int }{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {0, 2}, {1, 2}} {
		l := cleanLife(60)
		l.start.Planned, l.start.Life = arm.planned, arm.life
		if arm.planned == 0 || arm.planned == 2 {
			l.beside(neighbourRecord{Run: 1, StartUS: 1000, EndUS: 60e6, Exit: exitStopped, Units: 127, Unit: "requests"})
		}
		s.lives = append(s.lives, l)
	}
	return s
}

// Only candidate lives beside a neighbour that worked count; controls
// are never pooled, and a baseline's faults are told.
func TestRuleOnlyCandidatesCount(t *testing.T) {
	v := fiveLives().verdict(t)
	want(t, v, Pass, "0 faults in 2 server lives")
	if v.Bounds.PrimaryN != 2 || v.Arms.Clean != 5 || faceRow(t, v, detect.UTF8).N != 120 {
		t.Errorf("%+v, %+v", v.Bounds, v.Arms)
	}
	if len(v.Rows) != 4 || v.Rows[0].Neighbour != "server, 254 requests" || v.Rows[1].Neighbour != "none" || v.Rows[0].OK != 120 || v.Rows[2].Lives != 1 || v.Rows[3].Lives != 0 {
		t.Errorf("%+v", v.Rows)
	}
	if v.Fisher == nil || *v.Fisher != (Fisher{CandidateLives: 2, ControlLives: 2, TwoSided: 1, Less: 1, Greater: 1}) {
		t.Errorf("%+v", v.Fisher)
	}
	if len(v.Exposure.ByArm) != 4 || v.Exposure.ByArm[0].Neighbour.Units != 254 || v.Exposure.ByArm[1].Neighbour != nil {
		t.Errorf("%+v", v.Exposure.ByArm)
	}
	if !notTested(v, "that the candidate is better than the control: with 2 and 2 lives") || !notTested(v, "neighbours other than server: bench, ops") {
		t.Errorf("%q", v.NotTested)
	}

	s := fiveLives()
	s.lives[0].more, s.lives[0].end.Neighbour = nil, nil
	want(t, s.verdict(t), Inconclusive, "only 4 of 5 lives are evidence; arm 1: out-of-regime(neighbour-no-work)")

	s = fiveLives()
	s.lives[1].cut(20)
	s.lives[1].face(19, detect.Status)
	v = s.verdict(t)
	want(t, v, Fail, "fault(status)")
	near(t, "the control's fault is not in the candidate's rate", v.Bounds.ArmUpper95, 1-0.22360680) // 1-sqrt(0.05)
	if v.Fisher.ControlFaults != 1 || v.Fisher.CandidateFaults != 0 {
		t.Errorf("%+v", v.Fisher)
	}

	s = fiveLives()
	s.lives[2].cut(20)
	s.lives[2].face(19, detect.Status)
	v = s.verdict(t)
	want(t, v, Pass, "0 faults")
	if len(v.Faults) != 1 || v.Faults[0].Gates || v.Rows[2].States.Fault != 1 || v.Arms.Fault != 0 {
		t.Errorf("%+v, %+v", v.Faults, v.Rows[2])
	}
}

// A plan that only reports never passes, but fails.
func TestRuleReportOnly(t *testing.T) {
	s := oneLife()
	s.plan = strings.Replace(s.plan, "p0: 0.05", "report_only: true", 1)
	want(t, s.verdict(t), Inconclusive, "report only: 0 faults in 66 requests")
	s.only().face(65, detect.JSON)
	want(t, s.verdict(t), Fail, "fault(face-b)")
}

// The first task on a slot that was never used is a stratum of its own.
func TestRuleNeverUsedSlot(t *testing.T) {
	v := manyLives(60, 80).verdict(t)
	near(t, "never-used slot", v.Bounds.NeverUsedSlotUpper95, 0.012405)
	if v.Rows[0].NeverUsedSlots != 240 || v.Rows[0].SlotsUsed != 4 {
		t.Errorf("%+v", v.Rows[0])
	}
	// A slot that was used before the load has no first task in it.
	s := manyLives(60, 80)
	for _, l := range s.lives {
		l.end.Shape.FirstSlots = []int{1, 2, 3}
	}
	near(t, "three slots", s.verdict(t).Bounds.NeverUsedSlotUpper95, 0.016505) // 0 of 180
	if !notTested(v, "uptime beyond 1m0s") {
		t.Errorf("%q", v.NotTested)
	}
}

// A gate sees every run of a package, and which run it was.
func TestRuleAFailStays(t *testing.T) {
	s := oneLife()
	first := s.verdict(t)
	s.only().cut(20)
	s.only().face(19, detect.NaNWire)
	s.only().end, s.unclosed, s.absent = nil, true, true
	broken := s.verdict(t)
	want(t, broken, Fail, "fault(nan-wire)") // broken off, and a fail all the same
	if broken.PackageDigest != first.PackageDigest || broken.Ledger.Closed || broken.Ledger.Head == first.Ledger.Head || broken.Ledger.Records != 25 {
		t.Errorf("%+v, %+v", broken.Ledger, first.Ledger)
	}
}

// Chain, closing record, torn line, and the plan of the run.
func TestRuleLedger(t *testing.T) {
	s := oneLife()
	raw := s.ledger(t)
	whole := raw[:bytes.LastIndexByte(raw[:len(raw)-1], '\n')+1]
	want(t, judged(t, s.plan, whole), Inconclusive, "invalid(harness): the ledger has no closing record")
	torn := judged(t, s.plan, raw[:len(raw)-10])
	want(t, torn, Inconclusive, "invalid(harness): the ledger has no closing record")
	if len(torn.Notes) != 1 || !strings.Contains(torn.Notes[0], "torn last line") {
		t.Errorf("%q", torn.Notes)
	}
	want(t, judged(t, s.plan, nil), Inconclusive, "invalid(harness): the ledger has no closing record")
	want(t, judged(t, strings.Replace(s.plan, "p0: 0.05", "p0: 0.06", 1), raw), Inconclusive, "the ledger is damaged: a record makes no sense: plan.yaml is not the plan of this ledger")
	v, err := judge([]byte(s.plan), []byte("another"), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	want(t, v, Inconclusive, "the ledger is damaged: a record makes no sense: plan.json is not the resolved plan of this ledger")
	if v := judged(t, s.plan, raw); v.PlanFileSHA256 != sumOf([]byte(s.plan)) || v.PlanSHA256 != sumOf([]byte("resolved")) {
		t.Errorf("%+v", v)
	}
}

// A fault before the damage stays a fault.
func TestRuleFaultBeforeTheDamage(t *testing.T) {
	s := oneLife()
	s.only().face(5, detect.NaNWire)
	raw := s.ledger(t)
	raw[bytes.LastIndex(raw, []byte(`"kind":"end"`))+2] ^= 1
	want(t, judged(t, s.plan, raw), Fail, "fault(nan-wire)")
}

// The bound that may be watched is there while a life goes on, and
// gates nothing.
func TestRuleLiveBound(t *testing.T) {
	s := manyLives(60, 80)
	s.lives = s.lives[:60]
	s.lives[59].requests, s.lives[59].end = s.lives[59].requests[:10], nil
	s.unclosed, s.absent = true, true
	v := s.verdict(t)
	want(t, v, Inconclusive, "invalid(harness)")
	near(t, "live", v.Bounds.AnytimeRequestUpper95, stats.Anytime(0, 1485, 0.05))
	if v.Bounds.PrimaryN != 59 {
		t.Errorf("%+v", v.Bounds)
	}
	s.lives[59].face(9, detect.JSON)
	if worse := s.verdict(t).Bounds.AnytimeRequestUpper95; !(worse > v.Bounds.AnytimeRequestUpper95) {
		t.Errorf("a fault does not show in the live bound: %v", worse)
	}
}

// A life that a runner left is invalid, and the one that replaces it counts.
func TestResumedRun(t *testing.T) {
	s := manyLives(60, 80)
	dead := cleanLife(25)
	dead.requests, dead.end, dead.resumed = dead.requests[:7], nil, true
	s.lives = append([]*lifeStory{dead}, s.lives...)
	v := s.verdict(t)
	want(t, v, Pass, "0 faults in 60 server lives")
	if v.Ledger.Resumed != 1 || v.ArmStates[0].Reason != "invalid(harness)" || len(v.Notes) != 1 {
		t.Errorf("%+v, %+v, %q", v.Ledger, v.ArmStates[0], v.Notes)
	}
}

// What the neighbour did before the load, or only after it, proves nothing about
// it: the runner's account of the load alone counts, however long the runs were.
func TestNeighbourWorkDuringTheLoad(t *testing.T) {
	for name, tt := range map[string]struct {
		during neighbourSummary
		want   string
	}{
		"none":    {neighbourSummary{AliveUS: 60e6}, "out-of-regime(neighbour-no-work): the neighbour did 0 units of work in 0 runs"},
		"too few": {neighbourSummary{Units: 4, Unit: "tokens", Runs: 1}, "out-of-regime(neighbour-no-work): the neighbour did 4 tokens in 1 runs during the load, the plan asks for 5"},
		"enough":  {neighbourSummary{Units: 5, Unit: "tokens", Runs: 1}, "0 faults"},
	} {
		s := oneLife()
		s.plan = strings.Replace(s.plan, "gates: {", "gates: {neighbour_work: 5, ", 1)
		s.beside(neighbourRecord{Run: 1, StartUS: 0, EndUS: 60e6 + 900, Exit: exitStopped, Units: 900, Unit: "tokens"})
		s.only().end.Neighbour = &tt.during
		v := s.verdict(t)
		if !strings.HasPrefix(v.Reason, tt.want) {
			t.Errorf("%s: %s", name, v.Reason)
		}
		if got := v.Exposure.Neighbour; got.Units != tt.during.Units || got.Unit != "tokens" || v.Rows[0].Neighbour != fmt.Sprintf("ops, %d tokens", got.Units) {
			t.Errorf("%s: %+v, %q", name, got, v.Rows[0].Neighbour)
		}
	}
}

// A fault that comes before the neighbour's work is complete is in the regime.
func TestFaultCutsTheNeighbourShort(t *testing.T) {
	s := oneLife()
	s.plan = strings.Replace(s.plan, "gates: {", "gates: {neighbour_work: 500, ", 1)
	s.beside(neighbourRecord{Run: 1, StartUS: 0, EndUS: 900, Exit: exitOK, Units: 9, Unit: "tokens"})
	s.only().cut(5)
	s.only().face(4, detect.JSON)
	v := s.verdict(t)
	want(t, v, Fail, "fault(face-b)")
	if v.ArmStates[0].OutOfRegime {
		t.Errorf("%+v", v.ArmStates[0])
	}
	s.only().more, s.only().end.Neighbour = nil, nil
	if v := s.verdict(t); !v.ArmStates[0].OutOfRegime {
		t.Errorf("without any neighbour: %+v", v.ArmStates[0])
	}
}

// A finding that was joined to a request later counts as that request's.
func TestFindingOfARequest(t *testing.T) {
	s := oneLife()
	id, slot := 30, 2
	s.only().cut(31)
	s.only().more = append(s.only().more, entry{recordFinding, findingRecord{Finding: fault(detect.NaN), Request: &id, Slot: &slot}}, logged(engine.LogNaN, false))
	s.only().requests[30].Findings = []detect.Finding{fault(detect.NaNWire)}
	f := s.verdict(t).Faults[0]
	if f.Requests != 1 || *f.Request != 30 || *f.Slot != 2 || f.Face != detect.NaN {
		t.Errorf("%+v", f)
	}
}

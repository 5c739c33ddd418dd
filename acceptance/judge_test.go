package acceptance

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

const judgedPlan = `name: judged
model: m.gguf
load: {requests: 66}
gates: {min_launches_per_slot: 5%s}
p0: 0.05
`

const judgedGTT = ", gtt_used_gib: {min: 95, max: 110}"

// story is a run in the making: what a test changes of a clean one.
type story struct {
	plan     string
	startup  startupRecord
	gtt      float64
	requests []requestRecord
	more     []entry // after the requests
	end      *endRecord
	unclosed bool
}

func cleanStory() *story {
	s := &story{plan: fmt.Sprintf(judgedPlan, judgedGTT), gtt: 102, end: &endRecord{
		Why: whyDone, LoadUS: 60e6,
		Shape: shape{Slots: 4, KVUnified: true, Launches: map[int]int{0: 17, 1: 17, 2: 16, 3: 16}, LRU: 66, NeverUsed: 4, BusyUS: 100, AllSlotsBusy: 82},
	}}
	for i := range 66 {
		s.requests = append(s.requests, requestRecord{
			ID: i, PromptTarget: []int{24, 175, 300}[i%3], ProbsAsked: true, Outcome: outcomeAnswered, Status: 200,
			Slot: i % 4, Predicted: 32, Observed: 32, StartUS: int64(i), EndUS: int64(i) + 5000,
		})
	}
	return s
}

// verdict writes the story's ledger and judges it.
func (s *story) verdict(t testing.TB) *Verdict {
	t.Helper()
	v, err := judge([]byte(s.plan), []byte("resolved"), s.ledger(t))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (s *story) ledger(t testing.TB) []byte {
	t.Helper()
	entries := []entry{
		{recordOpen, openRecord{Schema: 1, PlanFileSHA256: sumOf([]byte(s.plan)), PlanSHA256: sumOf([]byte("resolved")), PackageDigest: "sha256:x"}},
		{recordHost, hostRecord{When: "before"}},
		{recordStart, startRecord{Arm: 1}},
		{recordStartup, s.startup},
	}
	if s.startup.Problem == "" {
		entries = append(entries, entry{recordLoad, loadRecord{GTTUsedGiB: &s.gtt}})
	}
	for _, r := range s.requests {
		entries = append(entries, entry{recordRequest, r})
	}
	entries = append(entries, s.more...)
	if s.end != nil {
		entries = append(entries, entry{recordEnd, *s.end})
	}
	return ledgerBytes(t, !s.unclosed, entries...)
}

func faced(face string) []engine.AnswerFault {
	return []engine.AnswerFault{{Face: face, Detail: "seen"}}
}

// Facts of an arm and what they must be called: the precedence is fault,
// invalid, out of regime, clean.
func TestClassification(t *testing.T) {
	nanLine := entry{recordLog, logRecord{Kind: engine.LogNaN, Line: "HRX returned NaN logits"}}
	cut := func(s *story, n int) { s.requests = s.requests[:n] }
	tests := []struct {
		name    string
		change  func(*story)
		verdict string
		reason  string
		regime  bool // the fault is flagged as out of regime
	}{
		{"all 66 clean", func(*story) {}, Pass, "0 faults in 66 requests", false},
		{"guard line after 34", func(s *story) { cut(s, 34); s.more = []entry{nanLine}; s.end.Why = whyFault }, Fail, "fault(nan)", false},
		{"allocation failed at load", func(s *story) {
			cut(s, 0)
			s.plan = fmt.Sprintf(judgedPlan, "")
			s.startup = startupRecord{Problem: "exit", AllocFailed: true}
		}, Inconclusive, "invalid(load-oom)", false},
		{"allocation failed at load above the band", func(s *story) {
			cut(s, 0)
			above := 112.0
			s.startup = startupRecord{Problem: "exit", AllocFailed: true, GTTUsedGiB: &above}
		}, Inconclusive, "invalid(load-oom)", false},
		{"allocation failed at load within the band", func(s *story) {
			cut(s, 0)
			s.startup = startupRecord{Problem: "exit", AllocFailed: true, GTTUsedGiB: &s.gtt}
		}, Fail, "fault(startup)", false},
		{"GTT below the band", func(s *story) { s.gtt = 94 }, Inconclusive, "out-of-regime(gtt)", false},
		{"GTT above the band", func(s *story) { s.gtt = 111 }, Inconclusive, "out-of-regime(gtt)", false},
		{"NaN below the band", func(s *story) { s.gtt = 80; cut(s, 10); s.more = []entry{nanLine}; s.end.Why = whyFault }, Fail, "fault(nan)", true},
		{"format 500", func(s *story) { cut(s, 11); s.requests[10].Faces = faced(engine.FaceFormat); s.end.Why = whyFault }, Fail, "fault(face-b)", false},
		{"invalid UTF-8 and all else fine", func(s *story) { s.requests[65].Faces = faced(engine.FaceUTF8) }, Fail, "fault(face-b)", false},
		{"a request over its deadline", func(s *story) { cut(s, 20); s.requests[19].Outcome = outcomeDeadline; s.end.Why = whyFault }, Fail, "fault(hang)", false},
		{"runner killed, no face", func(s *story) { cut(s, 20); s.end = nil; s.unclosed = true }, Inconclusive, "invalid(harness)", false},
		{"runner killed after a face", func(s *story) {
			cut(s, 20)
			s.requests[19].Faces = faced(engine.FaceNaN)
			s.end, s.unclosed = nil, true
		}, Fail, "fault(nan-wire)", false},
		{"runner interrupted", func(s *story) { cut(s, 20); s.end.Why = whyInterrupted }, Inconclusive, "invalid(harness)", false},
		{"SIGABRT and the abort text, no NaN line", func(s *story) {
			cut(s, 20)
			s.more = []entry{{recordLog, logRecord{Kind: engine.LogAbort, NaNAbort: true, Line: "HRX: NaN logits"}}, {recordExit, exitRecord{Signal: 6}}}
			s.end.Why = whyFault
		}, Fail, "fault(nan): aborted for NaN, and the guard's own line was lost", false},
		{"SIGABRT without a word", func(s *story) {
			cut(s, 20)
			s.more = []entry{{recordExit, exitRecord{Signal: 6, Text: "signal 6"}}}
			s.end.Why = whyFault
		}, Fail, "fault(crash)", false},
		{"SIGKILL without a kill for memory", func(s *story) {
			cut(s, 20)
			s.more = []entry{{recordExit, exitRecord{Signal: int(syscall.SIGKILL)}}}
			s.end.Why = whyFault
		}, Fail, "fault(crash)", false},
		{"killed for memory", func(s *story) {
			cut(s, 20)
			s.more = []entry{{recordExit, exitRecord{Signal: int(syscall.SIGKILL), OOMKilled: true}}}
			s.end.Why = whyFault
		}, Inconclusive, "invalid(oom-kill)", false},
		{"killed for memory after a face", func(s *story) {
			cut(s, 20)
			s.requests[3].Faces = faced(engine.FaceJSON)
			s.more = []entry{{recordExit, exitRecord{Signal: int(syscall.SIGKILL), OOMKilled: true}}}
		}, Fail, "fault(face-b)", false},
		{"a slot without requests", func(s *story) { s.end.Shape.Launches = map[int]int{0: 22, 2: 22, 3: 22} }, Inconclusive, "invalid(load-shape): slot 1 had 0 launches", false},
		{"a selection by prefix", func(s *story) { s.end.Shape.LCP = 1 }, Inconclusive, "invalid(load-shape): 1 of 66", false},
		{"never all busy", func(s *story) { s.end.Shape.AllSlotsBusy = 49 }, Inconclusive, "invalid(load-shape): all 4 slots were busy for 0.49", false},
		{"no busy time known", func(s *story) { s.end.Shape.BusyUS = 0 }, Inconclusive, "invalid(load-shape)", false},
		{"fewer launches than answers", func(s *story) { s.end.Shape.Launches = map[int]int{0: 16, 1: 16, 2: 16, 3: 16} }, Inconclusive, "invalid(load-shape): the log shows 64 launches for 66 answers", false},
		{"a null on the wire, silent log", func(s *story) { s.requests[65].Faces = faced(engine.FaceNaN) }, Fail, "fault(nan-wire)", false},
		{"a null on the wire and a guard line", func(s *story) { s.requests[65].Faces = faced(engine.FaceNaN); s.more = []entry{nanLine} }, Fail, "fault(nan)", false},
		{"a foreign nonce after a broken body", func(s *story) {
			s.requests[60].Faces = faced(engine.FaceJSON)
			s.requests[65].Faces = faced(FaceLeak)
		}, Fail, "fault(leak)", false},
		{"context exceeded", func(s *story) { s.requests[65].Faces = faced(engine.FaceContext); s.end.Why = whyPlan }, Inconclusive, "invalid(plan)", false},
		{"identical requests differ", func(s *story) { s.more = []entry{{recordProbe, probeRecord{Face: engine.FaceDiffers}}} }, Fail, "fault(corruption)", false},
		{"port taken", func(s *story) { cut(s, 0); s.startup = startupRecord{Problem: "exit", PortTaken: true} }, Inconclusive, "invalid(port-taken)", false},
		{"exit at load", func(s *story) { cut(s, 0); s.startup = startupRecord{Problem: "exit"} }, Fail, "fault(startup)", false},
		{"a connection broken while the server lives", func(s *story) { s.requests[65].Outcome = outcomeNoAnswer }, Fail, "fault(transport)", false},
		{"59 of 66", func(s *story) { cut(s, 59) }, Inconclusive, "only 59 of 66 requests were made", false},
		{"not observed", func(s *story) {
			for i := range 10 {
				s.requests[i].Observed = 0
			}
		}, Inconclusive, "no fault seen, but the bound at 56 requests is 0.052090 > p0 0.05, needs 59 requests", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := cleanStory()
			tt.change(s)
			v := s.verdict(t)
			if v.Verdict != tt.verdict || !strings.HasPrefix(v.Reason, tt.reason) {
				t.Fatalf("%s: %s, want %s: %s", v.Verdict, v.Reason, tt.verdict, tt.reason)
			}
			if got := v.ArmStates[0].OutOfRegime; got != tt.regime {
				t.Errorf("out of regime %v", got)
			}
			if v.Verdict == Fail && (v.Arms != ArmCounts{Fault: 1} || len(v.Faults) == 0) {
				t.Errorf("arms %+v, faults %v", v.Arms, v.Faults)
			}
			if v.Verdict != Fail && len(v.Faults) > 0 {
				t.Errorf("faults %v", v.Faults)
			}
		})
	}
}

// Thousands of guard lines and three answers are one episode.
func TestOneEpisode(t *testing.T) {
	s := cleanStory()
	s.requests = s.requests[:30]
	for _, i := range []int{22, 26, 29} {
		s.requests[i].Slot, s.requests[i].Faces = 2, faced(engine.FaceNaN)
	}
	s.more = []entry{{recordLog, logRecord{Kind: engine.LogNaN, Line: "HRX returned NaN logits"}}}
	s.end.Why, s.end.LogLines = whyFault, map[engine.LogKind]int{engine.LogNaN: 9000}
	v := s.verdict(t)
	if v.Arms.Fault != 1 || v.ArmStates[0].Faults != 3 || len(v.Faults) != 3 {
		t.Errorf("arms %+v, states %+v", v.Arms, v.ArmStates)
	}
	if diff := cmp.Diff(map[int]int{2: 3}, v.Exposure.FaultedBySlot); diff != "" {
		t.Errorf("by slot (-want +got):\n%s", diff)
	}
}

func TestVerdictOfACleanRun(t *testing.T) {
	v := cleanStory().verdict(t)
	near(t, "arm", v.Bounds.ArmUpper95, 0.95)
	near(t, "request", v.Bounds.RequestUpper95, 0.044375)
	near(t, "primary", v.Bounds.PrimaryUpper, 0.044375)
	near(t, "worst bin", v.Bounds.WorstBinUpper95, upperBound(0, 22, 0.05))
	near(t, "never-used slot", v.Bounds.NeverUsedSlotUpper95, upperBound(0, 4, 0.05))
	near(t, "correlated by 0.1", v.Bounds.RequestUpper95ICC01, upperBound(0, 66/7.5, 0.05))
	if v.Primary != "request" || v.Requests != 66 || v.Exposure.NeverUsedSlots != 4 {
		t.Errorf("%+v", v)
	}
	for _, word := range []string{"lives: 1", "uptime beyond 1m0s", "neighbour: the plan has none", "NaN guard"} {
		if !strings.Contains(strings.Join(v.NotTested, "\n"), word) {
			t.Errorf("not tested does not say %q: %q", word, v.NotTested)
		}
	}
}

var update = flag.Bool("update", false, "rewrite golden files")

// The JSON of a verdict is a promise to scripts.
func TestVerdictJSON(t *testing.T) {
	s := cleanStory()
	s.requests[40].Faces = faced(engine.FaceNaN)
	s.requests = s.requests[:41]
	s.end.Why = whyFault
	got, err := json.MarshalIndent(s.verdict(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/verdict.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the neighbour did before the load proves nothing about it.
func TestNeighbourWorkDuringTheLoad(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to int64
		want     string
	}{
		"before": {0, 1000, "out-of-regime(neighbour-no-work): the neighbour finished 0 runs"},
		"during": {2000, 3000, "0 faults"},
		"across": {500, 1500, "0 faults"},
	} {
		s := cleanStory()
		s.plan += "neighbour: {}\n"
		s.end.LoadFromUS = 1000
		s.more = []entry{{recordNeighbour, neighbourRecord{Run: 1, StartUS: tt.from, EndUS: tt.to, Exit: exitOK, Results: 1, Tokens: 9}}}
		if v := s.verdict(t); !strings.HasPrefix(v.Reason, tt.want) {
			t.Errorf("%s: %s", name, v.Reason)
		}
	}
}

// A face can be excluded only on the requests that it could see.
func TestBlindRequestsDoNotCount(t *testing.T) {
	s := cleanStory()
	s.plan = strings.Replace(s.plan, "requests: 66", "requests: 66, logprobs_share: 0.5", 1)
	for i := range 33 {
		s.requests[2*i].ProbsAsked, s.requests[2*i].Observed = false, 0
	}
	v := s.verdict(t)
	near(t, "request", v.Bounds.RequestUpper95, upperBound(0, 33, 0.05))
	if v.Verdict != Inconclusive || v.Exposure.Faces[0] != (FaceExposure{FaceNaNWire, 33, upperBound(0, 33, 0.05)}) {
		t.Errorf("%s: %s, faces %v", v.Verdict, v.Reason, v.Exposure.Faces)
	}
}

// Whatever face whichever request has, the verdict is never pass; and with
// fewer requests no bound ever gets smaller.
func TestVerdictProperties(t *testing.T) {
	for _, face := range []string{engine.FaceNaN, engine.FaceUTF8, engine.FaceJSON, engine.FaceFormat, engine.FaceStatus,
		engine.FaceLoading, engine.FaceContext, FaceLeak} {
		for _, i := range []int{0, 1, 33, 65} {
			s := cleanStory()
			s.requests[i].Faces = faced(face)
			if v := s.verdict(t); v.Verdict == Pass {
				t.Errorf("request %d has %s and the verdict is pass", i, face)
			}
		}
	}
	last := Bounds{}
	for n := 66; n >= 0; n -= 6 {
		s := cleanStory()
		s.requests = s.requests[:n]
		b := s.verdict(t).Bounds
		for name, pair := range map[string][2]float64{
			"request": {last.RequestUpper95, b.RequestUpper95}, "icc": {last.RequestUpper95ICC01, b.RequestUpper95ICC01},
			"bin": {last.WorstBinUpper95, b.WorstBinUpper95}, "primary": {last.PrimaryUpper, b.PrimaryUpper},
			"never used": {last.NeverUsedSlotUpper95, b.NeverUsedSlotUpper95},
		} {
			if !(pair[1] >= pair[0]) {
				t.Errorf("%d requests: %s bound %v, with more it was %v", n, name, pair[1], pair[0])
			}
		}
		last = b
	}
}

// An edited ledger or plan never passes, and never turns a fail into less.
func TestEditedEvidence(t *testing.T) {
	s := cleanStory()
	raw := s.ledger(t)
	for i := 0; i < len(raw); i += 97 {
		changed := bytes.Clone(raw)
		changed[i] ^= 1
		v, err := judge([]byte(s.plan), []byte("resolved"), changed)
		if err != nil || v.Verdict == Pass {
			t.Fatalf("byte %d changed: %v, %v", i, v, err)
		}
	}
	for name, change := range map[string][2]string{
		"plan":     {strings.Replace(s.plan, "p0: 0.05", "p0: 0.06", 1), "resolved"},
		"resolved": {s.plan, "another"},
	} {
		v, err := judge([]byte(change[0]), []byte(change[1]), raw)
		if err != nil || v.Verdict != Inconclusive || !strings.Contains(v.Reason, "of this ledger") {
			t.Errorf("%s edited: %+v, %v", name, v, err)
		}
	}
	s.requests[5].Faces = faced(engine.FaceNaN)
	raw = s.ledger(t)
	at := bytes.LastIndex(raw, []byte(`"kind":"end"`))
	raw[at+2] ^= 1
	v, err := judge([]byte(s.plan), []byte("resolved"), raw)
	if err != nil || v.Verdict != Fail {
		t.Errorf("a fault before the damage: %+v, %v", v, err)
	}
	v, err = judge([]byte(s.plan), []byte("resolved"), nil)
	if err != nil || v.Verdict != Inconclusive {
		t.Errorf("an empty ledger: %+v, %v", v, err)
	}
}

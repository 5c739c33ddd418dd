package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/neighbour"
	"github.com/1bit-systems/pkg/engine"
)

func number(v float64) *float64 { return &v }

func logged(kind engine.LogKind, nanAbort bool) entry {
	return entry{recordLog, logRecord{Kind: kind, NaNAbort: nanAbort, Line: "a line"}}
}

// beside adds a neighbour to a life, and to the plan.
func (s *story) beside(runs ...neighbourRecord) {
	s.plan += "neighbour: {kind: ops}\n"
	s.only().beside(runs...)
}

// beside adds runs of a neighbour that prove their work when they end.
func (l *lifeStory) beside(runs ...neighbourRecord) {
	var sum neighbourSummary
	for _, r := range runs {
		l.more = append(l.more, entry{recordNeighbour, r})
		if l.end == nil || r.EndUS <= l.end.LoadFromUS || r.EndUS > l.end.LoadFromUS+l.end.LoadUS {
			continue
		}
		if sum.Unit = r.Unit; r.Units > 0 {
			sum.Units, sum.Runs = sum.Units+r.Units, sum.Runs+1
		}
		if r.Exit != exitOK && r.Exit != exitStopped {
			sum.Failed++
		}
	}
	if l.end != nil {
		sum.AliveUS = l.end.LoadUS
		l.end.Neighbour = &sum
	}
}

// Facts of a life and what they must be called: fault before invalid before out
// of regime before clean.
func TestClassificationOfOneLife(t *testing.T) {
	nanLine := func(l *lifeStory) { l.find(detect.NaN); l.more = append(l.more, logged(engine.LogNaN, false)) }
	tests := []struct {
		name    string
		change  func(*story, *lifeStory)
		verdict string
		reason  string
		regime  bool // the fault is flagged as out of regime
	}{
		{"1 a guard line after 34 of 66", func(s *story, l *lifeStory) { l.cut(34); nanLine(l) }, Fail, "fault(nan): nan was seen", false},
		{"2 all 66 clean", func(*story, *lifeStory) {}, Pass, "0 faults in 66 requests: the rate is at most 0.044375 per request at 95 % confidence, the plan asks for 0.05", false},
		{"3 an allocation failed above the band", func(s *story, l *lifeStory) {
			l.cut(0)
			l.startup = startupRecord{Problem: "exit", AllocFailed: true, GTTUsedGiB: number(112)}
		}, Inconclusive, "invalid(load-oom)", false},
		{"3 an allocation failed, and no band is asked for", func(s *story, l *lifeStory) {
			l.cut(0)
			s.plan = fmt.Sprintf(onePlan, "")
			l.startup = startupRecord{Problem: "exit", AllocFailed: true}
		}, Inconclusive, "invalid(load-oom)", false},
		{"3 an allocation failed within the band", func(s *story, l *lifeStory) {
			l.cut(0)
			l.startup = startupRecord{Problem: "exit", AllocFailed: true, GTTUsedGiB: number(102)}
		}, Fail, "fault(startup)", false},
		{"4 GTT below the band", func(s *story, l *lifeStory) { l.load.GTTUsedGiB = number(94) }, Inconclusive, "out-of-regime(gtt)", false},
		{"4 GTT above the band", func(s *story, l *lifeStory) { l.load.GTTUsedGiB = number(111) }, Inconclusive, "out-of-regime(gtt)", false},
		{"4 GTT on the edge of the band", func(s *story, l *lifeStory) { l.load.GTTUsedGiB = number(110) }, Pass, "0 faults", false},
		{"4 GTT not known", func(s *story, l *lifeStory) { l.load.GTTUsedGiB = nil }, Inconclusive, "out-of-regime(gtt): unknown GiB", false},
		{"5 a NaN out of the band", func(s *story, l *lifeStory) { l.load.GTTUsedGiB = number(80); l.cut(10); nanLine(l) }, Fail, "fault(nan): nan was seen (out of regime)", true},
		{"6 500 for a format after 10", func(s *story, l *lifeStory) { l.cut(11); l.face(10, detect.Format) }, Fail, "fault(face-b)", false},
		{"7 invalid UTF-8 and all else fine", func(s *story, l *lifeStory) { l.cut(66); l.face(65, detect.UTF8) }, Fail, "fault(face-b)", false},
		{"8 a request over its deadline, server alive", func(s *story, l *lifeStory) {
			l.cut(20)
			l.requests[19].Outcome = outcomeDeadline
			l.face(19, detect.Hang)
		}, Fail, "fault(hang)", false},
		{"9 runner killed, no face", func(s *story, l *lifeStory) { l.cut(20); l.end, s.unclosed, s.absent = nil, true, true }, Inconclusive, "invalid(harness)", false},
		{"9 runner killed after a face", func(s *story, l *lifeStory) {
			l.cut(20)
			l.face(19, detect.NaNWire)
			l.end, s.unclosed, s.absent = nil, true, true
		}, Fail, "fault(nan-wire)", false},
		{"9 host killed and the run resumed, but not lived again", func(s *story, l *lifeStory) { l.cut(20); l.end, l.resumed = nil, true }, Inconclusive, "invalid(harness)", false},
		{"9 runner told to stop", func(s *story, l *lifeStory) { l.cut(20); l.end.Why = whyInterrupted }, Inconclusive, "invalid(harness)", false},
		{"11 SIGABRT, the abort's text, no NaN line", func(s *story, l *lifeStory) {
			l.cut(20)
			l.find(detect.NaN)
			l.more = append(l.more, logged(engine.LogAbort, true))
			l.kill(int(unix.SIGABRT), false)
		}, Fail, "fault(nan, line-lost)", false},
		{"11 SIGABRT with the NaN line", func(s *story, l *lifeStory) {
			l.cut(20)
			nanLine(l)
			l.more = append(l.more, logged(engine.LogAbort, true))
			l.kill(int(unix.SIGABRT), false)
		}, Fail, "fault(nan): nan was seen; crash: ", false},
		{"12 no evictions although they are asked for", func(s *story, l *lifeStory) {
			s.plan = strings.Replace(s.plan, "gates: {", "gates: {evicted_ms: 1, ", 1)
			none := int64(0)
			l.end.EvictedMS = &none
		}, Inconclusive, "out-of-regime(no-exposure)", false},
		{"12 nobody counts evictions", func(s *story, l *lifeStory) {
			s.plan = strings.Replace(s.plan, "gates: {", "gates: {evicted_ms: 1, ", 1)
		}, Inconclusive, "out-of-regime(no-exposure)", false},
		{"12 evictions", func(s *story, l *lifeStory) {
			s.plan = strings.Replace(s.plan, "gates: {", "gates: {evicted_ms: 1, ", 1)
			some := int64(7)
			l.end.EvictedMS = &some
		}, Pass, "0 faults", false},
		{"13 a slot without requests", func(s *story, l *lifeStory) { l.end.Shape.Launches = map[int]int{0: 22, 2: 22, 3: 22} }, Inconclusive, "invalid(load-shape): slot 1 had 0 launches", false},
		{"13 a selection by prefix", func(s *story, l *lifeStory) { l.end.Shape.LCP = 1 }, Inconclusive, "invalid(load-shape): 1 of 66", false},
		{"14 the neighbour fails, and had worked enough", func(s *story, l *lifeStory) {
			s.beside(neighbourRecord{Run: 1, StartUS: 1000, EndUS: 9000, Exit: "exit status 1", Units: 40, Unit: "tests", Findings: []string{"NaN at index 3"}})
		}, Pass, "0 faults", false},
		{"14 the neighbour fails without work", func(s *story, l *lifeStory) {
			s.beside(neighbourRecord{Run: 1, StartUS: 1000, EndUS: 9000, Exit: "exit status 1"})
		}, Inconclusive, "out-of-regime(neighbour-no-work): the neighbour did 0 units of work in 0 runs during the load, the plan asks for 1", false},
		{"14 the neighbour was given up", func(s *story, l *lifeStory) {
			s.beside(neighbourRecord{Run: 1, StartUS: 1000, EndUS: 9000, Exit: exitOK, Units: 40})
			l.end.Neighbour = &neighbourSummary{Died: "exit status 1, three times"}
		}, Inconclusive, "out-of-regime(neighbour-died)", false},
		{"15 a null on the wire, silent log", func(s *story, l *lifeStory) { l.cut(66); l.face(65, detect.NaNWire) }, Fail, "fault(nan-wire): nan-wire was seen", false},
		{"15 a null on the wire and a guard line", func(s *story, l *lifeStory) { l.cut(66); l.face(65, detect.NaNWire); nanLine(l) }, Fail, "fault(nan): nan was seen; nan-wire: ", false},
		{"16 another request's nonce", func(s *story, l *lifeStory) { l.cut(66); l.face(65, detect.Leak) }, Fail, "fault(leak)", false},
		{"16 it is graver than what came first", func(s *story, l *lifeStory) {
			l.cut(66)
			l.face(60, detect.JSON)
			l.face(65, detect.Leak)
		}, Fail, "fault(leak): leak was seen; json: json was seen", false},
		{"17 the sequential control differs", func(s *story, l *lifeStory) { l.cut(0); l.find(detect.Corruption) }, Fail, "fault(corruption)", false},
		{"17 only under load, by rounding", func(s *story, l *lifeStory) { l.face(65, detect.Numeric) }, Pass, "0 faults", false},
		{"17 only under load, by rounding, and the plan gates on it", func(s *story, l *lifeStory) {
			s.plan += "faces: {numeric: gate}\nsentinels: {every: 5}\n"
			l.cut(66)
			l.face(65, detect.Numeric)
		}, Fail, "fault(numeric)", false},
		{"18 a watchdog", func(s *story, l *lifeStory) {
			l.cut(20)
			l.more = append(l.more, entry{recordWatchdog, watchdogRecord{Reason: "temperature", Value: 94, Limit: 93}})
			l.kill(int(unix.SIGTERM), false)
		}, Inconclusive, "invalid(watchdog): temperature was 94, the limit is 93", false},
		{"18 a watchdog, and the server crashes meanwhile", func(s *story, l *lifeStory) {
			l.cut(20)
			l.more = append(l.more, entry{recordWatchdog, watchdogRecord{Reason: watchPaused, Value: 2, Limit: 1}})
			l.kill(int(unix.SIGSEGV), false)
		}, Fail, "fault(crash, SIGSEGV)", false},
		{"18 a watchdog, and the server exits meanwhile", func(s *story, l *lifeStory) {
			l.cut(20)
			l.more = append(l.more, entry{recordWatchdog, watchdogRecord{Reason: watchPaused, Value: 2, Limit: 1}})
			l.kill(0, false)
		}, Fail, "fault(crash, exit 0)", false},
		{"18 a watchdog, and the server is killed for it", func(s *story, l *lifeStory) {
			l.cut(20)
			l.more = append(l.more, entry{recordWatchdog, watchdogRecord{Reason: watchMemory, Value: 1, Limit: 4}})
			l.kill(int(unix.SIGKILL), false)
			l.find(detect.Transport)
		}, Inconclusive, "invalid(watchdog)", false},
		{"18 a face, then a watchdog", func(s *story, l *lifeStory) {
			l.cut(20)
			l.face(19, detect.Transport)
			l.more = append(l.more, entry{recordWatchdog, watchdogRecord{Reason: "gtt-growth", Value: 25, Limit: 24}})
		}, Fail, "fault(transport)", false},

		{"SIGSEGV and the connections it broke", func(s *story, l *lifeStory) {
			l.cut(20)
			for i := 16; i < 20; i++ {
				l.requests[i].Outcome = outcomeNoAnswer
				l.face(i, detect.Transport)
			}
			l.kill(int(unix.SIGSEGV), false)
		}, Fail, "fault(crash, SIGSEGV): the server ended by itself; transport: ", false},
		{"SIGKILL without a kill for memory", func(s *story, l *lifeStory) { l.cut(20); l.kill(int(unix.SIGKILL), false) }, Fail, "fault(crash, SIGKILL)", false},
		{"an exit", func(s *story, l *lifeStory) { l.cut(20); l.kill(0, false) }, Fail, "fault(crash, exit 0)", false},
		{"killed for memory, with the connections that broke", func(s *story, l *lifeStory) {
			l.cut(20)
			l.requests[19].Outcome = outcomeNoAnswer
			l.face(19, detect.Transport)
			l.kill(int(unix.SIGKILL), true)
		}, Inconclusive, "invalid(oom-kill)", false},
		{"killed for memory after a face", func(s *story, l *lifeStory) { l.cut(20); l.face(3, detect.JSON); l.kill(int(unix.SIGKILL), true) }, Fail, "fault(face-b)", false},
		{"SIGSEGV while the kernel killed for memory", func(s *story, l *lifeStory) {
			l.cut(20)
			l.more = append(l.more, entry{recordExit, exitRecord{Signal: int(unix.SIGSEGV), OOMKilled: true}})
			l.find(detect.Crash)
		}, Fail, "fault(crash, SIGSEGV)", false},
		{"the GPU runtime's error ends the server", func(s *story, l *lifeStory) { l.cut(20); l.find(detect.HSA); l.kill(int(unix.SIGABRT), false) }, Fail, "fault(hsa)", false},
		{"one answer to every prompt", func(s *story, l *lifeStory) { l.alike(32, 0) }, Inconclusive, "invalid(load-shape): all 66 different prompts got the same answer", false},
		{"one answer to every prompt but the last", func(s *story, l *lifeStory) { l.alike(32, 65) }, Pass, "", false},
		{"one short answer to every prompt", func(s *story, l *lifeStory) { l.alike(7, 0) }, Pass, "", false},
		{"never all busy", func(s *story, l *lifeStory) { l.end.Shape.AllSlotsBusy = 29.4e6 }, Inconclusive, "invalid(load-shape): all 4 slots were busy for 0.49", false},
		{"no busy time known", func(s *story, l *lifeStory) { l.end.Shape.BusyUS = 0 }, Inconclusive, "invalid(load-shape)", false},
		{"fewer launches than answers", func(s *story, l *lifeStory) { l.end.Shape.Launches = map[int]int{0: 16, 1: 16, 2: 16, 3: 16} }, Inconclusive, "invalid(load-shape): the log shows 64 launches for 66 answers", false},
		{"context exceeded", func(s *story, l *lifeStory) {
			l.cut(66)
			l.requests[65].Findings = []detect.Finding{{Face: detect.Context, Grade: detect.Invalid, Detail: "Context size has been exceeded."}}
			l.end.Why = whyPlan
		}, Inconclusive, "invalid(plan): Context size", false},
		{"port taken", func(s *story, l *lifeStory) { l.cut(0); l.startup = startupRecord{Problem: "exit", PortTaken: true} }, Inconclusive, "invalid(port-taken)", false},
		{"killed for memory at load", func(s *story, l *lifeStory) {
			l.cut(0)
			l.startup = startupRecord{Problem: "exit", OOMKilled: true, Signal: int(unix.SIGKILL)}
		}, Inconclusive, "invalid(oom-kill)", false},
		{"SIGSEGV at load while the kernel killed for memory", func(s *story, l *lifeStory) {
			l.cut(0)
			l.startup = startupRecord{Problem: "exit", OOMKilled: true, Signal: int(unix.SIGSEGV)}
		}, Fail, "fault(startup)", false},
		{"hang at load while the kernel killed for memory", func(s *story, l *lifeStory) {
			l.cut(0)
			l.startup = startupRecord{Problem: "deadline", OOMKilled: true}
		}, Fail, "fault(startup)", false},
		{"exit at load", func(s *story, l *lifeStory) { l.cut(0); l.startup = startupRecord{Problem: "exit"} }, Fail, "fault(startup)", false},
		{"hang at load", func(s *story, l *lifeStory) { l.cut(0); l.startup = startupRecord{Problem: "deadline"} }, Fail, "fault(startup)", false},
		{"another device, which is a fault", func(s *story, l *lifeStory) { l.cut(0); l.find(detect.Device) }, Fail, "fault(device)", false},
		{"another device, which is no evidence", func(s *story, l *lifeStory) {
			l.cut(0)
			l.more = append(l.more, entry{recordFinding, findingRecord{Finding: detect.Finding{Face: detect.Device, Grade: detect.Invalid, Detail: "on the CPU"}}})
		}, Inconclusive, "invalid(device): on the CPU", false},
		{"memory is short at the first request", func(s *story, l *lifeStory) {
			s.plan = strings.Replace(s.plan, "gates: {", "gates: {mem_available_gib: 8, ", 1)
			l.load.MemAvailableGiB = number(7.9)
		}, Inconclusive, "out-of-regime(mem-available)", false},
		{"something of the life before was left", func(s *story, l *lifeStory) { l.cut(0); l.end.Why, l.end.Detail = whyTeardown, "a port is taken" }, Inconclusive, "invalid(teardown): a port is taken", false},
		{"59 of 66", func(s *story, l *lifeStory) { l.cut(59); l.end.Why = whyDone }, Inconclusive, "invalid(harness): only 59 of 66 requests were made", false},
		{"ended for a fault that is not there", func(s *story, l *lifeStory) { l.cut(59) }, Inconclusive, "invalid(harness): the arm was ended for a fault that the ledger does not hold", false},
		{"the server ended, and no face says so", func(s *story, l *lifeStory) {
			l.more = []entry{{recordExit, exitRecord{Signal: int(unix.SIGSEGV), Text: "signal 11"}}}
		}, Inconclusive, "invalid(harness): the server ended by itself", false},
		{"a load by time that was too short", func(s *story, l *lifeStory) {
			s.plan = strings.Replace(s.plan, "requests: 66", "duration: 2m", 1)
		}, Inconclusive, "invalid(harness): the load lasted 1m0s of 2m0s", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := oneLife()
			tt.change(s, s.only())
			v := s.verdict(t)
			want(t, v, tt.verdict, tt.reason)
			if len(v.ArmStates) != 1 {
				t.Fatalf("states %+v", v.ArmStates)
			}
			if got := v.ArmStates[0].OutOfRegime; got != tt.regime {
				t.Errorf("out of regime %v", got)
			}
			gating := slices.ContainsFunc(v.Faults, func(f Fault) bool { return f.Gates })
			if v.Verdict == Fail && (v.Arms.Fault != 1 || !gating) {
				t.Errorf("arms %+v, faults %v", v.Arms, v.Faults)
			}
			if v.Verdict != Fail && gating {
				t.Errorf("faults %v", v.Faults)
			}
		})
	}
}

// 5: a fault out of regime is never clean and blocks, but is not in the rate.
func TestClassificationIsNotInTheRate(t *testing.T) {
	s := manyLives(60, 60)
	s.plan = strings.Replace(s.plan, "slot: 5", "slot: 5"+bandOfGTT, 1) + "after_fault: go_on\n"
	for _, l := range s.lives {
		l.load.GTTUsedGiB = number(100)
	}
	s.lives[59].load.GTTUsedGiB = number(80)
	s.lives[59].cut(10)
	s.lives[59].face(9, detect.NaNWire)
	v := s.verdict(t)
	want(t, v, Fail, "fault(nan-wire): nan-wire was seen (out of regime)")
	if v.Arms != (ArmCounts{Clean: 59, Fault: 1, FaultOutOfRegime: 1}) || !v.Faults[0].OutOfRegime || !v.Faults[0].Gates {
		t.Errorf("arms %+v, fault %+v", v.Arms, v.Faults[0])
	}
	near(t, "in the regime", v.Bounds.ArmUpper95, 0.049508) // 0 of 59
}

// 10: thousands of guard lines and three answers are one fault.
func TestClassificationOneEpisode(t *testing.T) {
	s := oneLife()
	l := s.only()
	l.cut(30)
	for _, i := range []int{22, 26, 29} {
		l.requests[i].Slot = 2
		l.face(i, detect.NaNWire)
	}
	l.find(detect.NaN)
	l.more = append(l.more, logged(engine.LogNaN, false))
	l.end.LogLines = map[engine.LogKind]int{engine.LogNaN: 9000}
	v := s.verdict(t)
	want(t, v, Fail, "fault(nan)")
	if len(v.Faults) != 1 || v.Arms.Fault != 1 || v.ArmStates[0].Faults != 3 {
		t.Fatalf("faults %+v, arms %+v", v.Faults, v.Arms)
	}
	f := v.Faults[0]
	if f.Requests != 3 || f.Face != detect.NaN || *f.Request != 22 || *f.Slot != 2 || *f.AfterRequests != 23 || *v.ArmStates[0].ToFault != 23 {
		t.Errorf("%+v", f)
	}
	if diff := cmp.Diff(map[int]int{2: 3}, f.BySlot); diff != "" {
		t.Errorf("by slot (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int{2: 3}, v.Exposure.FaultedBySlot); diff != "" {
		t.Errorf("by slot in all (-want +got):\n%s", diff)
	}
	if r := v.Rows[0]; r.GuardLines != 9000 || r.NaN != 3 {
		t.Errorf("row %+v", r)
	}
}

// 14: what goes wrong in the neighbour has its own place.
func TestClassificationNeighbourHasItsOwnTable(t *testing.T) {
	s := oneLife()
	s.beside(
		neighbourRecord{Run: 1, StartUS: 1000, EndUS: 2000, Exit: "exit status 1", Units: 40, Unit: "tests", Findings: []string{"NaN at index 3"}},
		neighbourRecord{Run: 2, StartUS: 2000, EndUS: 3000, Exit: exitOK, Units: 41, Unit: "tests"})
	v := s.verdict(t)
	want(t, v, Pass, "0 faults")
	got := v.Exposure.Neighbour
	if got == nil || got.Kind != neighbour.Ops || got.Units != 81 || got.Unit != "tests" || got.Runs != 2 || got.FailedRuns != 1 || !slices.Equal(got.Findings, []string{"NaN at index 3"}) {
		t.Errorf("%+v", got)
	}
	if len(v.Faults) != 0 {
		t.Errorf("faults %v", v.Faults)
	}
}

// 17: what a plan does not gate on is told all the same.
func TestClassificationNumericIsTold(t *testing.T) {
	s := oneLife()
	s.plan += "sentinels: {every: 5}\n"
	s.only().requests[65].Kind = kindSentinel
	s.only().face(65, detect.Numeric)
	v := s.verdict(t)
	want(t, v, Pass, "0 faults")
	if len(v.Faults) != 1 || v.Faults[0].Gates || v.Faults[0].Face != detect.Numeric || *v.Faults[0].Request != 65 {
		t.Errorf("%+v", v.Faults)
	}
	row := faceRow(t, v, detect.Numeric)
	if row.Setting != "report" || row.Seen != 1 || row.N != 1 || row.First == nil || row.Excerpt != "excerpt of numeric" {
		t.Errorf("%+v", row)
	}
}

func faceRow(t *testing.T, v *Verdict, face string) FaceRow {
	t.Helper()
	i := slices.IndexFunc(v.Table, func(r FaceRow) bool { return r.Face == face })
	if i < 0 {
		t.Fatalf("no row of %s", face)
	}
	return v.Table[i]
}

// The JSON of a verdict is a promise to scripts.
func TestVerdictJSON(t *testing.T) {
	s := oneLife()
	s.beside(neighbourRecord{Kind: neighbour.Ops, Run: 1, StartUS: 1000, EndUS: 9000, Exit: exitOK, Units: 40, Unit: "tests"})
	s.only().cut(41)
	s.only().face(40, detect.NaNWire)
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
	var promised map[string]json.RawMessage
	if err := json.Unmarshal(got, &promised); err != nil {
		t.Fatal(err)
	}
	for parent, keys := range map[string][]string{
		"":       {"verdict", "reason", "plan_file_sha256", "plan_sha256", "package_digest", "arms", "requests", "faults", "primary", "bounds", "exposure", "not_tested"},
		"arms":   {"clean", "fault", "invalid", "out_of_regime"},
		"bounds": {"arm_upper_95", "request_upper_95", "request_upper_95_icc_0_1", "worst_bin_upper_95", "never_used_slot_upper_95"},
	} {
		from := promised
		if parent != "" {
			from = nil
			if err := json.Unmarshal(promised[parent], &from); err != nil {
				t.Fatal(err)
			}
		}
		for _, key := range keys {
			if _, ok := from[key]; !ok {
				t.Errorf("%q has no key %q", parent, key)
			}
		}
	}
}

package acceptance

import (
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

func notTested(v *Verdict, words string) bool {
	return strings.Contains(strings.Join(v.NotTested, "\n"), words)
}

// The plan names its unit; the life's bound needs no assumption, the
// request's needs one, and says what it is worth without.
func TestRuleUnit(t *testing.T) {
	s := manyLives(60, 80)
	v := s.verdict(t)
	want(t, v, Pass, "0 faults in 60 server lives: the rate is at most 0.048703 per server life at 95 % confidence, the plan asks for 0.05")
	b := v.Bounds
	near(t, "life", b.ArmUpper95, 0.048703)
	near(t, "request", b.RequestUpper95, 0.001995)
	near(t, "request, correlated by 0.1", b.RequestUpper95ICC01, 0.006767)
	near(t, "request, correlated by 0.5", b.RequestUpper95ICC05, 0.025629)
	near(t, "n, correlated by 0.1, in thousands", b.Clustering.EffectiveN01/1000, 0.441176)
	near(t, "life, jointly", b.ArmUpper95Joint, 0.059629)
	near(t, "request, jointly", b.RequestUpper95Joint, 0.002456)
	near(t, "while watched", b.AnytimeRequestUpper95, 0.006850)
	if b.Hold != "each" || v.Primary != PrimaryArm || b.PrimaryN != 60 {
		t.Errorf("%+v", b)
	}
	// By requests the same run shows what requests show.
	s.plan = strings.NewReplacer("primary: arm", "primary: request", "p0: 0.05", "p0: 0.002").Replace(s.plan)
	want(t, s.verdict(t), Pass, "0 faults in 1500 requests: the rate is at most 0.001995 per request")
	// By hours too: it was one.
	s.plan = strings.NewReplacer("primary: request", "primary: hour", "p0: 0.002", "p0: 3").Replace(s.plan)
	want(t, s.verdict(t), Pass, "0 faults in 1.00 hours of load: the rate is at most 2.995732 per hour")
	s.plan = strings.Replace(s.plan, "p0: 3", "p0: 2.9", 1)
	want(t, s.verdict(t), Inconclusive, "no fault seen, but the bound at 1.00 hours of load is 2.995732 > p0 2.9, needs 1.03 hours of load")
}

// An hour in which the server had nothing to do is no hour of load.
func TestRuleIdleHours(t *testing.T) {
	s := manyLives(60, 80)
	s.plan = strings.NewReplacer("primary: arm", "primary: hour", "p0: 0.05", "p0: 3").Replace(s.plan)
	for _, l := range s.lives {
		l.end.Shape.BusyUS, l.end.Shape.AllSlotsBusy = 6e6, 6e6
	}
	want(t, s.verdict(t), Inconclusive, "no fault seen, but the bound at 0.1 hours of load is 29.957323 > p0 3, needs 0.999 hours of load")
}

// Only the load's own lengths are strata, not that of a sentinel.
func TestRuleBinsAreOfTheLoad(t *testing.T) {
	s := manyLives(60, 80)
	bins := s.verdict(t).Bounds
	for _, l := range s.lives {
		for i := range l.requests[:5] {
			l.requests[i].Kind, l.requests[i].PromptTarget = kindSentinel, 600
		}
	}
	with := s.verdict(t).Bounds
	if len(with.BinUpper95) != 3 || len(bins.BinUpper95) != 3 || !(with.WorstBinUpper95 < 2*bins.WorstBinUpper95) {
		t.Errorf("%v, without sentinels %v", with.BinUpper95, bins.BinUpper95)
	}
}

// What is only reported fails nothing, and is not kept quiet.
func TestRuleOnlyReported(t *testing.T) {
	s := oneLife()
	s.plan += "faces: {nan-wire: report}\n"
	s.only().face(3, detect.NaNWire)
	v := s.verdict(t)
	want(t, v, Pass, "0 faults in 66 requests")
	if !strings.HasSuffix(v.Reason, "; not counted, for the plan only reports them: 1 of nan-wire") || v.Rows[0].OK != 65 || v.Rows[0].NaN != 1 {
		t.Errorf("%s, %+v", v.Reason, v.Rows[0])
	}
}

// One long life has a life's bound of 0.95, and says so.
func TestRuleOneLife(t *testing.T) {
	v := oneLife().verdict(t)
	near(t, "life", v.Bounds.ArmUpper95, 0.95)
	if !notTested(v, "lives: 1: one server start says little") || !notTested(v, "uptime beyond 1m0s") {
		t.Errorf("%q", v.NotTested)
	}
}

// Four lengths of prompt, and what holds of all of them together.
func TestRuleBins(t *testing.T) {
	s := manyLives(60, 80)
	s.plan = strings.Replace(s.plan, "requests: 25", "requests: 25, prompt_tokens: [24, 175, 300, 400]", 1)
	n := 0
	for _, l := range s.lives {
		for i := range l.requests {
			l.requests[i].PromptTarget = []int{24, 175, 300, 400}[n%4]
			n++
		}
	}
	b := s.verdict(t).Bounds
	near(t, "worst length", b.WorstBinUpper95, 0.007957)
	near(t, "all lengths jointly", b.WorstBinUpper95Joint, 0.011617)
	if len(b.BinUpper95) != 4 || len(b.SlotUpper95) != 4 {
		t.Errorf("lengths %v, slots %v", b.BinUpper95, b.SlotUpper95)
	}
}

// A length that the plan has and no request had is bounded by nothing.
func TestLengthNeverUsed(t *testing.T) {
	s := oneLife()
	s.plan = strings.Replace(s.plan, "requests: 66", "requests: 66, prompt_tokens: [24, 175, 300, 1000]", 1)
	if b := s.verdict(t).Bounds; b.WorstBinUpper95 != 1 || b.BinUpper95[1000] != 1 {
		t.Errorf("%+v", b.BinUpper95)
	}
}

// A face is excluded on the requests that it could see, and the
// blindest gating face counts.
func TestRuleBlindRequests(t *testing.T) {
	s := manyLives(60, 80)
	s.plan = strings.NewReplacer("requests: 25", "requests: 25, logprobs_share: 0.25", "primary: arm", "primary: request").Replace(s.plan)
	n := 0
	for _, l := range s.lives {
		for i := range l.requests {
			if n++; n%4 != 0 {
				l.requests[i].ProbsAsked, l.requests[i].Observed = false, 0
			}
		}
	}
	v := s.verdict(t)
	near(t, "request", v.Bounds.RequestUpper95, 0.007957)
	if row := faceRow(t, v, detect.NaNWire); row.N != 375 {
		t.Errorf("%+v", row)
	}
	if row := faceRow(t, v, detect.UTF8); row.N != 1500 {
		t.Errorf("%+v", row)
	}
	if i := slices.IndexFunc(v.Exposure.Faces, func(f FaceExposure) bool { return f.Face == detect.NaNWire }); i < 0 || v.Exposure.Faces[i].N != 375 {
		t.Errorf("%+v", v.Exposure.Faces)
	}
	if !notTested(v, "log-probabilities on 0.75 of the requests") {
		t.Errorf("%q", v.NotTested)
	}
	// Without that face the others decide, and it stands under what was not tested.
	s.plan += "faces: {nan-wire: off}\n"
	v = s.verdict(t)
	near(t, "request, without the face", v.Bounds.RequestUpper95, 0.001995)
	if !notTested(v, "nan-wire (") || faceRow(t, v, detect.NaNWire).N != 0 {
		t.Errorf("%q", v.NotTested)
	}
	// Told of, it does not count either.
	s.plan = strings.Replace(s.plan, "nan-wire: off", "nan-wire: report", 1)
	v = s.verdict(t)
	near(t, "request, the face only told of", v.Bounds.RequestUpper95, 0.001995)
	if !notTested(v, "nan-wire as a reason to fail") {
		t.Errorf("%q", v.NotTested)
	}
}

// An answer that is too short for a mark says nothing about leaks.
func TestRuleShortAnswers(t *testing.T) {
	s := oneLife()
	for i := range s.only().requests[:6] {
		s.only().requests[i].Chars, s.only().requests[i].TextSum = 11, 5
	}
	v := s.verdict(t)
	for _, f := range v.Table {
		if n := map[string]int{detect.Leak: 60, detect.NaNWire: 66}[f.Face]; n != 0 && f.N != n {
			t.Errorf("%s could show on %d, want %d", f.Face, f.N, n)
		}
	}
	if v.Bounds.PrimaryN != 60 || !notTested(v, "leaks on 6 answers that are too short") {
		t.Errorf("n %v, %q", v.Bounds.PrimaryN, v.NotTested)
	}
}

// Lives and hours are bounded by those lives alone in which every face
// that gates could have been seen.
func TestRuleBlindLives(t *testing.T) {
	blind := func(s *story, lives ...int) {
		for _, i := range lives {
			for k := range s.lives[i].requests {
				s.lives[i].requests[k].ProbsAsked, s.lives[i].requests[k].Observed = false, 0
			}
		}
	}
	s := manyLives(3, 4)
	s.plan = strings.Replace(s.plan, "p0: 0.05", "p0: 0.64", 1) // needs 3 lives
	want(t, s.verdict(t), Pass, "0 faults in 3 server lives")
	blind(s, 1)
	v := s.verdict(t)
	want(t, v, Inconclusive, "no fault seen, but the bound at 2 server lives is 0.776393 > p0 0.64")
	if v.Arms.Clean != 3 || v.Bounds.PrimaryN != 2 {
		t.Errorf("%+v, %v", v.Arms, v.Bounds.PrimaryN)
	}
	s.plan = strings.NewReplacer("primary: arm", "primary: hour", "p0: 0.64", "p0: 61").Replace(s.plan) // needs 3 minutes
	want(t, s.verdict(t), Inconclusive, "no fault seen, but the bound at 0.0333 hours of load")
	blind(s, 0, 2)
	want(t, s.verdict(t), Inconclusive, "the plan gates on nan-wire, and no request could have shown it")
	// Where the log-probabilities are not what the plan gates on, they are not needed.
	s.plan += "faces: {nan-wire: off}\n"
	want(t, s.verdict(t), Pass, "0 faults in 0.05 hours of load")
}

// A plan under which nothing gates can show nothing.
func TestRuleNothingGates(t *testing.T) {
	s := manyLives(3, 4)
	s.plan = strings.Replace(s.plan, "p0: 0.05", "p0: 0.64", 1)
	var off []string
	for _, f := range detect.Faces() {
		if f.Name != detect.Context { // gates, and is never a fault
			off = append(off, f.Name+": off")
		}
	}
	s.plan += "faces: {" + strings.Join(off, ", ") + "}\n"
	want(t, s.verdict(t), Inconclusive, "no face of fault gates")
	p, err := ParsePlan([]byte(s.plan))
	if err != nil {
		t.Fatal(err)
	}
	if notes := p.Notes(); len(notes) == 0 || !strings.HasPrefix(notes[0], "cannot pass: no face of fault gates") {
		t.Errorf("%q", notes)
	}
}

// What is off is not looked for, and what is reported does not fail.
func TestRuleSettings(t *testing.T) {
	for setting, tt := range map[string]struct {
		verdict string
		faults  int
	}{"gate": {Fail, 1}, "report": {Pass, 1}, "off": {Pass, 0}} {
		s := oneLife()
		s.plan += "faces: {utf8: " + setting + "}\n"
		s.only().face(65, detect.UTF8)
		v := s.verdict(t)
		want(t, v, tt.verdict, "")
		if len(v.Faults) != tt.faults {
			t.Errorf("%s: %v", setting, v.Faults)
		}
	}
}

// Without its sensor a face is not tested, and a plan that gates on
// it by name cannot pass.
func TestRuleAbsentSensor(t *testing.T) {
	s := oneLife()
	s.only().load.KernelLog = "no kernel log may be read"
	v := s.verdict(t)
	want(t, v, Pass, "0 faults")
	if !notTested(v, "kernel (") || faceRow(t, v, detect.Kernel).N != 0 {
		t.Errorf("%q", v.NotTested)
	}
	s.plan += "faces: {kernel: gate}\n"
	want(t, s.verdict(t), Inconclusive, "the plan gates on kernel, and nothing could have shown it: the kernel's log was not read")
	s.only().load.KernelLog = ""
	if v := s.verdict(t); v.Verdict != Pass || faceRow(t, v, detect.Kernel).N != 1 {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
}

// A sentinel's face is seen on sentinels alone.
func TestRuleSentinels(t *testing.T) {
	s := oneLife()
	s.plan += "sentinels: {every: 6}\n"
	for i := range 11 {
		s.only().requests[6*i].Kind = kindSentinel
	}
	s.only().more = append(s.only().more, entry{recordProbe, probeRecord{}})
	v := s.verdict(t)
	if row := faceRow(t, v, detect.Corruption); row.N != 12 {
		t.Errorf("%+v", row)
	}
	near(t, "request", v.Bounds.RequestUpper95, 0.044375)
	if !notTested(v, "corruption on other requests than the 11 that had a known answer") {
		t.Errorf("%q", v.NotTested)
	}
}

package acceptance

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
)

// stories runs a property over random stories, the same every time.
func stories(t *testing.T, n int, property func(*testing.T, *rand.Rand)) {
	t.Helper()
	for i := range n {
		if t.Run(fmt.Sprint(i), func(t *testing.T) { property(t, rand.New(rand.NewPCG(uint64(i), 1))) }); t.Failed() {
			return
		}
	}
}

// randomStory is a run of a few lives, some of which went wrong in some way,
// and of which some were replaced.
func randomStory(r *rand.Rand) *story {
	n := 2 + r.IntN(4)
	s := manyLives(n, 99)
	s.plan += "after_fault: go_on\nneighbour: {kind: bench}\n"
	var lives []*lifeStory
	for _, l := range s.lives {
		for r.IntN(4) == 0 { // a life that is no evidence comes before
			bad := cleanLife(25)
			bad.start.Life = l.start.Life
			spoil(r, bad)
			lives = append(lives, bad)
		}
		atWork(r, l)
		if r.IntN(5) == 0 {
			addFault(r, l)
		}
		lives = append(lives, l)
	}
	s.lives = lives
	s.unclosed = r.IntN(6) == 0
	return s
}

func atWork(r *rand.Rand, l *lifeStory) {
	var runs []neighbourRecord
	for i := range 1 + r.IntN(3) {
		from := int64(r.IntN(50e6))
		runs = append(runs, neighbourRecord{Run: i + 1, StartUS: from, EndUS: from + 5e6, Exit: exitOK, Units: 1000, Unit: "tokens"})
	}
	l.beside(runs...)
}

// spoil makes a life invalid or out of regime.
func spoil(r *rand.Rand, l *lifeStory) {
	switch r.IntN(7) {
	case 0:
		l.end.Shape.LCP = 1
	case 1:
		l.end.Why, l.end.Detail = whyInterrupted, "stopped"
	case 2:
		l.requests, l.end.Why = l.requests[:r.IntN(25)], whyFault
		l.kill(int(unix.SIGKILL), true)
	case 3:
		l.requests, l.end, l.resumed = l.requests[:r.IntN(25)], nil, true
	case 4:
		l.requests, l.startup = nil, startupRecord{Problem: "exit", PortTaken: true}
	case 5:
		l.more = append(l.more, entry{recordWatchdog, watchdogRecord{Reason: "temperature", Value: 95, Limit: 93}})
	case 6: // out of regime: no neighbour did anything
		return
	}
	atWork(r, l)
}

// addFault gives a life a fault of a random face, and traces after it.
func addFault(r *rand.Rand, l *lifeStory) {
	gating := []string{
		detect.NaNWire, detect.UTF8, detect.JSON, detect.Format, detect.Status, detect.InBand, detect.Transport,
		detect.Hang, detect.Leak, detect.Empty,
	}
	if len(l.requests) == 0 || r.IntN(4) == 0 {
		l.find([]string{detect.NaN, detect.HSA, detect.Kernel, detect.Corruption, detect.Crash, detect.Restart}[r.IntN(6)])
	} else {
		i := r.IntN(len(l.requests))
		l.face(i, gating[r.IntN(len(gating))])
		if r.IntN(2) == 0 {
			l.face(min(i+1, len(l.requests)-1), gating[r.IntN(len(gating))])
		}
	}
	if l.end != nil {
		l.end.Why = whyFault
	}
}

// withoutTimes leaves what does not depend on where in the ledger a record
// stands.
func withoutTimes(v *Verdict) *Verdict {
	v.Ledger = LedgerHead{}
	for i := range v.Faults {
		v.Faults[i].At = time.Time{}
		for j := range v.Faults[i].Traces {
			v.Faults[i].Traces[j].First = time.Time{}
		}
	}
	for i := range v.Table {
		v.Table[i].First = nil
	}
	return v
}

// Judged twice is judged the same.
func TestSameBytesSameVerdict(t *testing.T) {
	stories(t, 40, func(t *testing.T, r *rand.Rand) {
		s := randomStory(r)
		if diff := cmp.Diff(s.verdict(t), s.verdict(t)); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}

// Whatever a run was, with one more fault it fails.
func TestAFaultNeverHelps(t *testing.T) {
	stories(t, 120, func(t *testing.T, r *rand.Rand) {
		s := randomStory(r)
		before := s.verdict(t)
		i := r.IntN(len(s.lives))
		for s.lives[i].startup.Problem != "" {
			i = r.IntN(len(s.lives))
		}
		broken := slices.ContainsFunc(s.lives[i].more, func(e entry) bool { return e.kind == recordExit || e.kind == recordWatchdog })
		addFault(r, s.lives[i])
		after := s.verdict(t)
		if after.Verdict != Fail && !broken { // what a kill from outside breaks off is no fault
			t.Errorf("%s: %s, before %s: %s", after.Verdict, after.Reason, before.Verdict, before.Reason)
		}
		if before.Verdict == Fail && after.Verdict != Fail || after.Verdict == Pass {
			t.Errorf("a fault turned %s into %s", before.Verdict, after.Verdict)
		}
		if b, a := before.Bounds, after.Bounds; a.ArmUpper95 < b.ArmUpper95 && after.Arms.Fault == before.Arms.Fault {
			t.Errorf("life bound fell from %v to %v", b.ArmUpper95, a.ArmUpper95)
		}
	})
}

// Lives that are no evidence leave every bound as it was.
func TestInvalidLivesNeverChangeBounds(t *testing.T) {
	stories(t, 80, func(t *testing.T, r *rand.Rand) {
		s := randomStory(r)
		before := s.verdict(t).Bounds
		life := 1 + r.IntN(slices.MaxFunc(s.lives, func(a, b *lifeStory) int { return a.start.Life - b.start.Life }).start.Life)
		// Before the first life of that number: afterwards it would not be replaced.
		at := slices.IndexFunc(s.lives, func(l *lifeStory) bool { return l.start.Life == life })
		bad := cleanLife(25)
		bad.start.Life = life
		spoil(r, bad)
		s.lives = slices.Insert(s.lives, at, bad)
		after := s.verdict(t).Bounds
		if s.unclosed && at == len(s.lives)-2 {
			return // the life that goes on is in the live bound
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("(-without +with):\n%s", diff)
		}
	})
}

// Records that say nothing about each other may come in any order.
func TestOrderOfIndependentRecords(t *testing.T) {
	stories(t, 60, func(t *testing.T, r *rand.Rand) {
		s := randomStory(r)
		entries := s.entries()
		shuffled := slices.Clone(entries)
		for from := 0; from < len(shuffled); from++ {
			if shuffled[from].kind != recordLoad {
				continue
			}
			to := from + 1
			for to < len(shuffled) && !slices.Contains([]string{recordEnd, recordStart, recordResume, recordHost}, shuffled[to].kind) {
				to++
			}
			shuffleIndependent(r, shuffled[from+1:to])
		}
		v := withoutTimes(judged(t, s.plan, chained(t, !s.unclosed, entries...)))
		again := withoutTimes(judged(t, s.plan, chained(t, !s.unclosed, shuffled...)))
		if diff := cmp.Diff(v, again); diff != "" {
			t.Errorf("(-in order +shuffled):\n%s", diff)
		}
	})
}

// shuffleIndependent moves runs of the neighbour and lines of the log anywhere,
// and, where there is no fault, the requests among each other. A fault and what
// was in flight then are not independent.
func shuffleIndependent(r *rand.Rand, part []entry) {
	fault := func(e entry) bool {
		q, ok := e.data.(requestRecord)
		return !ok && e.kind != recordNeighbour || len(q.Findings) > 0
	}
	if !slices.ContainsFunc(part, fault) {
		r.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
		return
	}
	var fixed, loose []entry
	for _, e := range part {
		if e.kind == recordNeighbour || e.kind == recordLog {
			loose = append(loose, e)
		} else {
			fixed = append(fixed, e)
		}
	}
	r.Shuffle(len(loose), func(i, j int) { loose[i], loose[j] = loose[j], loose[i] })
	for i := range part {
		if n := len(fixed) + len(loose); r.IntN(n) < len(loose) {
			part[i], loose = loose[0], loose[1:]
		} else {
			part[i], fixed = fixed[0], fixed[1:]
		}
	}
}

// A tail that was torn off is as if it had not been written.
func TestTornTail(t *testing.T) {
	s := oneLife()
	s.only().requests = s.only().requests[:12]
	s.only().face(8, detect.JSON)
	raw := s.ledger(t)
	for cut := range len(raw) {
		if cut%7 != 0 { // every position within a line comes up, in one line or another
			continue
		}
		v := judged(t, s.plan, raw[:cut])
		whole := raw[:bytes.LastIndexByte(raw[:cut], '\n')+1]
		same := judged(t, s.plan, whole)
		same.Notes, v.Notes = nil, nil
		if diff := cmp.Diff(same, v); diff != "" {
			t.Fatalf("cut at %d:\n%s", cut, diff)
		}
		if v.Verdict == Pass {
			t.Fatalf("cut at %d: pass", cut)
		}
	}
}

// One edited byte, anywhere in a run that passes, and it does not pass.
func TestOneEditedByteNeverPasses(t *testing.T) {
	s := &story{plan: "name: small\nmodel: m.gguf\nload: {requests: 8}\ngates: {min_launches_per_slot: 2}\np0: 0.5\n", lives: []*lifeStory{cleanLife(8)}}
	raw := s.ledger(t)
	want(t, judged(t, s.plan, raw), Pass, "0 faults in 8 requests")
	changed := bytes.Clone(raw)
	for i := range raw {
		changed[i] ^= 1
		if v := judged(t, s.plan, changed); v.Verdict == Pass {
			t.Fatalf("byte %d changed from %q to %q: %s", i, raw[i], changed[i], v.Reason)
		}
		changed[i] = raw[i]
	}
	plan := []byte(s.plan)
	for i := range plan {
		plan[i] ^= 1
		if v, err := judge(plan, []byte("resolved"), bytes.NewReader(raw)); err == nil && v.Verdict == Pass {
			t.Fatalf("byte %d of the plan changed to %q: %s", i, plan[i], v.Reason)
		}
		plan[i] ^= 1
	}
}

// With fewer requests, and with fewer lives, no bound gets smaller.
func TestBoundsOfLess(t *testing.T) {
	check := func(what string, more, less Bounds) {
		t.Helper()
		for name, pair := range map[string][2]float64{
			"life": {more.ArmUpper95, less.ArmUpper95}, "request": {more.RequestUpper95, less.RequestUpper95},
			"0.1": {more.RequestUpper95ICC01, less.RequestUpper95ICC01}, "0.5": {more.RequestUpper95ICC05, less.RequestUpper95ICC05},
			"length": {more.WorstBinUpper95, less.WorstBinUpper95}, "first": {more.NeverUsedSlotUpper95, less.NeverUsedSlotUpper95},
			"hour": {more.HourUpper95, less.HourUpper95}, "primary": {more.PrimaryUpper, less.PrimaryUpper},
			"watched": {more.AnytimeRequestUpper95, less.AnytimeRequestUpper95}, "lengths": {more.WorstBinUpper95Joint, less.WorstBinUpper95Joint},
		} {
			if !(pair[1] >= pair[0]) {
				t.Errorf("%s: %s bound %v, with more it was %v", what, name, pair[1], pair[0])
			}
		}
	}
	var last *Bounds
	for n := 66; n >= 0; n -= 6 {
		s := oneLife()
		s.plan = fmt.Sprintf("name: fewer\nmodel: m.gguf\nload: {requests: %d}\ngates: {min_launches_per_slot: 1}\np0: 0.05\n", max(n, 1))
		s.only().requests = s.only().requests[:n]
		b := s.verdict(t).Bounds
		if last != nil {
			check(fmt.Sprintf("%d requests", n), *last, b)
		}
		last = &b
	}
	last = nil
	for n := 12; n >= 0; n-- {
		s := manyLives(12, 12)
		s.lives = s.lives[:n]
		b := s.verdict(t).Bounds
		if last != nil {
			check(fmt.Sprintf("%d lives", n), *last, b)
		}
		last = &b
	}
	if last.ArmUpper95 != 1 || last.RequestUpper95 != 1 || last.WorstBinUpper95 != 1 || last.AnytimeRequestUpper95 != 1 || !(last.HourUpper95 > 1e9) {
		t.Errorf("without evidence: %+v", *last)
	}
}

// What is no number meets no gate and passes no bound.
func TestNaNMeetsNothing(t *testing.T) {
	nan := math.NaN()
	p, err := ParsePlan([]byte(fmt.Sprintf(onePlan, bandOfGTT+", mem_available_gib: 8")))
	if err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]loadRecord{"gtt": {GTTUsedGiB: &nan, MemAvailableGiB: number(9)}, "mem-available": {GTTUsedGiB: number(100), MemAvailableGiB: &nan}} {
		a := arm{plan: p, load: &load}
		if reason, _ := a.outOfRegime(); reason != name {
			t.Errorf("%s: %q", name, reason)
		}
	}
	above := arm{plan: p, startup: &startupRecord{Problem: "exit", AllocFailed: true, GTTUsedGiB: &nan}}
	if cause := above.startupCause(); cause != "load-oom" {
		t.Errorf("an allocation that failed, GTT no number: %q", cause)
	}
	s := oneLife()
	p, err = ParsePlan([]byte(s.plan))
	if err != nil {
		t.Fatal(err)
	}
	j := newJudging(p, p.FileSHA256(), sumOf([]byte("resolved")))
	summary, err := scanLedger(bytes.NewReader(s.ledger(t)), j.take)
	if err != nil {
		t.Fatal(err)
	}
	v := j.verdict(summary)
	if v.Verdict != Pass {
		t.Fatal(v.Reason)
	}
	v.Bounds.PrimaryUpper = nan
	if verdict, reason := j.decide(summary, v); verdict != Inconclusive {
		t.Errorf("%s: %s", verdict, reason)
	}
}

// What a face could have been seen by depends on nothing that a sight leaves out.
func TestSightIsAllThatCounts(t *testing.T) {
	stories(t, 300, func(t *testing.T, r *rand.Rand) {
		q := requestRecord{
			Outcome: []string{outcomeAnswered, outcomeDeadline, outcomeNoAnswer}[r.IntN(3)], Kind: []string{kindUnique, kindSentinel}[r.IntN(2)],
			Status: []int{0, 200, 400, 500, 503}[r.IntN(5)], ProbsAsked: r.IntN(2) == 0, Predicted: r.IntN(3) * 16, Observed: r.IntN(3) * 16,
			Chars: r.IntN(3) * 8, TextSum: r.Int64N(2),
		}
		whole := detect.Request{
			Outcome: q.Outcome, Kind: q.Kind, Status: q.Status, ProbsAsked: q.ProbsAsked, Predicted: q.Predicted, Observed: q.Observed,
			Short: q.TextSum != 0 && q.Chars < 12,
		}
		for _, f := range detect.Faces() {
			if got, want := detect.Sees(f.Name, sightOf(&q).request()), detect.Sees(f.Name, whole); got != want {
				t.Errorf("%s: %v by its sight, %v by itself: %+v", f.Name, got, want, q)
			}
		}
	})
}

// Nothing that stands in a ledger makes a judge fail, and no ledger that was
// not written by a run passes.
func FuzzJudge(f *testing.F) {
	s := oneLife()
	s.only().requests = s.only().requests[:3]
	s.only().more = append(s.only().more, logged(engine.LogNaN, false))
	for _, e := range s.entries() {
		raw := chained(f, false, e)
		if l, err := parseBody(raw[:len(raw)-1-tailSize]); err == nil {
			f.Add(l.Kind, []byte(l.Data))
		}
	}
	f.Add(recordStart, []byte(`{"arm":-1,"planned":9,"life":7}`))
	f.Add(recordEnd, []byte(`{"load_us":-5,"shape":{"launches":{"-1":3}}}`))
	f.Add(recordRequest, []byte(`{"id":-1,"slot":-7,"end_us":-9223372036854775808,"intended_us":5}`))
	f.Add("nonsense", []byte(`{}`))
	plan := []byte(s.plan)
	p, err := ParsePlan(plan)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		j := newJudging(p, p.FileSHA256(), sumOf([]byte("resolved")))
		n := 0
		put := func(e entry) {
			raw := chained(t, false, e)
			l, err := parseBody(raw[:len(raw)-1-tailSize])
			if err != nil {
				t.Fatal(err)
			}
			n++
			l.Seq = n
			_ = j.take(&record{line: l})
		}
		for _, e := range s.entries()[:4] {
			put(e)
		}
		_ = j.take(&record{line: line{Seq: n + 1, Kind: kind, Data: data}})
		for _, e := range s.entries()[4:] {
			put(e)
		}
		v := j.verdict(&ledgerSummary{Records: n, Closed: true})
		if v.Verdict == Pass {
			t.Fatalf("%s %s: pass with 3 of 66 requests: %s", kind, data, v.Reason)
		}
		for name, b := range map[string]float64{"life": v.Bounds.ArmUpper95, "request": v.Bounds.RequestUpper95, "length": v.Bounds.WorstBinUpper95} {
			if !(b > 0 && b <= 1) {
				t.Fatalf("%s bound is %v", name, b)
			}
		}
	})
}

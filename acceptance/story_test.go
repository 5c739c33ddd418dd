package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// near compares to six digits after the point.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 5.1e-7) {
		t.Errorf("%s = %.7f, want %.6f", what, got, want)
	}
}

// A story is a run in the making: what a test changes of a clean one.
type story struct {
	plan     string
	lives    []*lifeStory
	unclosed bool
	absent   bool // there is no record of the host afterwards
}

// lifeStory is one life of a story.
type lifeStory struct {
	start    startRecord
	startup  startupRecord
	load     loadRecord
	requests []requestRecord
	more     []entry // after the requests
	end      *endRecord
	resumed  bool // a runner went on after this life
}

const (
	onePlan = `name: judged
model: m.gguf
load: {requests: 66}
gates: {min_launches_per_slot: 5%s}
p0: 0.05
`
	bandOfGTT = ", gtt_used_gib: {min: 95, max: 110}"
	manyPlan  = `name: many
model: m.gguf
load: {requests: 25}
gates: {min_launches_per_slot: 5}
arms: [{name: candidate, lives: %d}]
attempts: %d
primary: arm
p0: 0.05
`
)

// oneLife is a clean run of one life of 66 requests.
func oneLife() *story {
	l := cleanLife(66)
	gtt := 102.0
	l.load.GTTUsedGiB = &gtt
	return &story{plan: fmt.Sprintf(onePlan, bandOfGTT), lives: []*lifeStory{l}}
}

// manyLives is a clean run of so many lives of 25 requests.
func manyLives(n, attempts int) *story {
	s := &story{plan: fmt.Sprintf(manyPlan, n, attempts)}
	for i := range n {
		l := cleanLife(25)
		l.start.Life = i + 1
		s.lives = append(s.lives, l)
	}
	return s
}

func cleanLife(requests int) *lifeStory {
	l := &lifeStory{start: startRecord{Life: 1}, end: &endRecord{
		Why: whyDone, LoadFromUS: 1000, LoadUS: 60e6,
		Shape: shape{
			Slots: 4, KVUnified: true, Launches: map[int]int{}, LRU: requests, NeverUsed: 4, FirstSlots: []int{0, 1, 2, 3},
			BusyUS: 60e6, AllSlotsBusy: 49.2e6,
		},
	}}
	for i := range requests {
		l.requests = append(l.requests, requestRecord{
			ID: i, PromptTarget: []int{24, 175, 300}[i%3], ProbsAsked: true, Outcome: outcomeAnswered, Status: 200,
			Slot: i % 4, Predicted: 32, Observed: 32, IntendedUS: int64(i), StartUS: int64(i), EndUS: int64(i) + 5000,
		})
		l.end.Shape.Launches[i%4]++
	}
	return l
}

// alike gives all requests the same answer, but the one with that index, if it is
// not 0.
func (l *lifeStory) alike(nPredict, but int) {
	for i := range l.requests {
		r := &l.requests[i]
		r.NPredict, r.Chars, r.TextSum = nPredict, 40, 7
		if i == but && i > 0 {
			r.TextSum++
		}
	}
}

// only gives the first life.
func (s *story) only() *lifeStory { return s.lives[0] }

// cut keeps the first n requests: the life ended with the last of them.
func (l *lifeStory) cut(n int) {
	l.requests = l.requests[:n]
	if l.end != nil {
		l.end.Why = whyFault
	}
}

// face gives a request a finding.
func (l *lifeStory) face(i int, face string) {
	l.requests[i].Findings = append(l.requests[i].Findings, fault(face))
}

// find adds findings of no request.
func (l *lifeStory) find(faces ...string) {
	for _, face := range faces {
		l.more = append(l.more, entry{recordFinding, findingRecord{Finding: fault(face)}})
	}
}

func fault(face string) detect.Finding {
	return detect.Finding{Face: face, Grade: detect.Fault, Detail: face + " was seen", Excerpt: "excerpt of " + face}
}

// kill ends the server by a signal, as all that watch it tell.
func (l *lifeStory) kill(signal int, oom bool) {
	exit := exitRecord{Signal: signal, Text: fmt.Sprintf("signal %d", signal), OOMKilled: oom}
	grade := detect.Fault
	if oom {
		grade = detect.Invalid
	}
	l.more = append(l.more, entry{recordExit, exit},
		entry{recordFinding, findingRecord{Finding: detect.Finding{Face: detect.Crash, Grade: grade, Detail: "the server ended by itself"}}})
}

// entries are the records of the run, without the closing one.
func (s *story) entries() []entry {
	all := []entry{
		{recordOpen, openRecord{
			Schema: ledgerSchema, PlanFileSHA256: sumOf([]byte(s.plan)), PlanSHA256: sumOf([]byte("resolved")), Package: "p", PackageDigest: "sha256:x",
		}},
		{recordHost, hostRecord{When: "before"}},
	}
	for i, l := range s.lives {
		l.start.Arm = i + 1
		all = append(all, entry{recordStart, l.start}, entry{recordStartup, l.startup})
		if l.startup.Problem == "" {
			all = append(all, entry{recordLoad, l.load})
		}
		for _, r := range l.requests {
			all = append(all, entry{recordRequest, r})
		}
		all = append(all, l.more...)
		if l.end != nil {
			all = append(all, entry{recordEnd, *l.end})
		}
		if l.resumed {
			all = append(all, entry{recordResume, resumeRecord{Note: "the runner was killed"}})
		}
	}
	if !s.absent {
		all = append(all, entry{recordHost, hostRecord{When: "after"}})
	}
	return all
}

// ledger writes the story down.
func (s *story) ledger(t testing.TB) []byte { return chained(t, !s.unclosed, s.entries()...) }

// verdict judges the story.
func (s *story) verdict(t testing.TB) *Verdict {
	t.Helper()
	return judged(t, s.plan, s.ledger(t))
}

func judged(t testing.TB, plan string, ledger []byte) *Verdict {
	t.Helper()
	v, err := judge([]byte(plan), []byte("resolved"), bytes.NewReader(ledger))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// chained makes the bytes of a ledger without a file, a second a record.
func chained(t testing.TB, closed bool, entries ...entry) []byte {
	t.Helper()
	at, n := fixedClock(), 0
	var out, head []byte
	c := newChain()
	add := func(kind string, data any) {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		n++
		from := len(out)
		out = c.appendLine(out, line{Seq: n, At: at(), Kind: kind, Data: raw}, head)
		head = bytes.Clone(lineSum(out[from : len(out)-1]))
	}
	for _, e := range entries {
		if e.kind == recordClose {
			continue
		}
		add(e.kind, e.data)
	}
	if closed {
		add(recordClose, closing{Count: n, Head: string(head)})
	}
	return out
}

// want checks verdict and the beginning of its reason.
func want(t *testing.T, v *Verdict, verdict, reason string) {
	t.Helper()
	if v.Verdict != verdict || !strings.HasPrefix(v.Reason, reason) {
		t.Errorf("%s: %s\nwant %s: %s", v.Verdict, v.Reason, verdict, reason)
	}
}

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// A history is as small as its picture needs, however much there is to tell:
// a million requests and as many warnings must fit beside a desktop.
func TestHistoryIsSmall(t *testing.T) {
	const n = 15_000
	s := oneLife()
	s.plan = strings.Replace(s.plan, "requests: 66", fmt.Sprint("requests: ", n), 1)
	life := cleanLife(n)
	for i := range life.requests {
		life.requests[i].Findings = []detect.Finding{{Face: detect.Text, Grade: detect.Warning, Detail: fmt.Sprint("the character '!' 20 times at ", i)}}
		life.requests[i].EndUS = int64(i) + 1500
	}
	s.lives = []*lifeStory{life}
	dir := t.TempDir()
	for name, content := range map[string][]byte{PlanName: []byte(s.plan), ResolvedName: []byte("{}"), LedgerName: s.ledger(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, life = nil, nil
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	h, err := ReadHistory(dir)
	if err != nil {
		t.Fatal(err)
	}
	grown := int64(heap()) - int64(before)
	if len(h.Answers) != n || h.Answers[7].MS != 1.5 || h.Answers[7].Seconds < 1 {
		t.Errorf("%d answers, %+v", len(h.Answers), h.Answers[7])
	}
	// The findings of the story come one a second, so that none is left out.
	if len(h.Findings) != n {
		t.Errorf("%d findings", len(h.Findings))
	}
	h.Findings = nil
	if each := float64(int64(heap())-int64(before)) / n; each > 16 {
		t.Errorf("%.1f bytes a request without its finding (%d with)", each, grown/n)
	}
	runtime.KeepAlive(h)
}

// Of very many findings of a face one a second is kept, and every fault.
func TestHistoryLeavesOut(t *testing.T) {
	h := &History{gates: map[string]bool{detect.NaNWire: true}, latest: nil}
	h.latest = map[string]time.Time{}
	at := fixedClock()()
	for i := range 2 * manyFindings {
		h.found(at.Add(time.Duration(i)*time.Millisecond), 1, detect.Finding{Face: detect.Text, Grade: detect.Warning})
	}
	if n := len(h.Findings); n < manyFindings || n > manyFindings+11 {
		t.Errorf("%d of %d within 20 seconds", n, 2*manyFindings)
	}
	n := len(h.Findings)
	for range 3 {
		h.found(at, 1, detect.Finding{Face: detect.NaNWire, Grade: detect.Fault})
	}
	if len(h.Findings) != n+3 {
		t.Errorf("%d of 3 faults", len(h.Findings)-n)
	}
}

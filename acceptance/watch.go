package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/stats"
)

// Status is what the ledger of a run tells while it grows.
type Status struct {
	Progress
	Running bool     // a runner holds the evidence folder
	Closed  bool     // the run has ended
	Verdict *Verdict // once the run has ended or its runner is gone
}

// ErrNotBegun says that an evidence folder has no run, and that nobody is about
// to begin one.
var ErrNotBegun = errors.New("nothing has begun here, and nobody is at it: what started the run says why (of a unit: journalctl)")

// beginPatience is how long a folder may lie there until somebody holds it:
// before that the packages are compared with their manifests.
const beginPatience = 2 * time.Minute

// Watch follows a run by its ledger alone: it calls f every so often, until the
// run has ended or its runner is gone, and a last time then, with the verdict.
// A folder in which nothing has begun yet is waited for, two minutes at most and
// for as long as a runner holds it. The error wraps ErrNotBegun if none begins.
func Watch(ctx context.Context, dir string, every time.Duration, f func(Status)) error {
	return watch(ctx, dir, every, beginPatience, f)
}

func watch(ctx context.Context, dir string, every, patience time.Duration, f func(Status)) error {
	w := &watcher{dir: dir}
	lost := time.NewTimer(patience)
	defer lost.Stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for begun, held := false, false; ; {
		// First who runs, then what is there: a run that ends in between is seen whole.
		running, err := isHeld(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
		if err := w.read(); err != nil {
			v, unjudged := JudgeDir(dir)
			if running || unjudged != nil {
				return fmt.Errorf("watch %s: %w", dir, err)
			}
			f(Status{Verdict: v}) // that the ledger is damaged
			return nil
		}
		if held = held || running; running {
			lost.Reset(patience)
		}
		begun = begun || !w.first.IsZero()
		s := w.status()
		s.Running = running
		if begun && (w.closed || !running) {
			if s.Verdict, err = JudgeDir(dir); err != nil {
				return err
			}
			f(s)
			return nil
		}
		f(s)
		if held && !running && !begun {
			return fmt.Errorf("watch %s: %w", dir, ErrNotBegun)
		}
		waiting := lost.C
		if begun {
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-waiting:
			return fmt.Errorf("watch %s: %w", dir, ErrNotBegun)
		case <-tick.C:
		}
	}
}

// A watcher reads a ledger as far as it has grown.
type watcher struct {
	dir    string
	plan   *Plan
	offset int64
	closed bool

	seen        past
	first, last time.Time
	phase       string
	loadFrom    time.Time
	requests    int // in all lives
	own         int // in this one
	faults      int
	lost        int
	done        int64
}

// read takes in the whole lines that are new.
func (w *watcher) read() error {
	if w.plan == nil {
		raw, err := readInput(filepath.Join(w.dir, PlanName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if w.plan, err = ParsePlan(raw); err != nil {
			return err
		}
	}
	f, err := os.Open(filepath.Join(w.dir, LedgerName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := eachLine(io.NewSectionReader(f, w.offset, 1<<62-w.offset), w.take)
	w.offset += size
	return err
}

func (w *watcher) take(r *record) error {
	if w.first.IsZero() {
		w.first = r.At
	}
	w.last = r.At
	var found []detect.Finding
	switch r.Kind {
	case recordStart:
		w.phase, w.own, w.loadFrom = phaseStart, 0, time.Time{}
	case recordSentinel:
		w.phase = phaseSentinels
	case recordLoad:
		w.phase, w.loadFrom = phaseLoad, r.At
	case recordRequest:
		q, err := decode[requestRecord](r.line)
		if err != nil {
			return err
		}
		if q.Outcome != outcomeCensored {
			w.requests++
			w.own++
		}
		found = q.Findings
	case recordFinding:
		q, err := decode[findingRecord](r.line)
		if err != nil {
			return err
		}
		found = []detect.Finding{q.Finding}
	case recordProbe:
		w.phase = phaseProbe
	case recordEnd:
		q, err := decode[endRecord](r.line)
		if err != nil {
			return err
		}
		w.ended(q)
	case recordClose:
		w.closed = true
	}
	for _, f := range found {
		if f.Grade == detect.Fault {
			w.faults++
		}
	}
	return w.seen.take(r)
}

// ended counts a life that is over.
func (w *watcher) ended(q *endRecord) {
	w.phase = phaseEnd
	switch q.Why {
	case whyDone, whyFault:
		w.done += w.weight()
	default:
		w.lost++
	}
	w.own = 0
}

// weight is what the life that goes on adds to the total.
func (w *watcher) weight() int64 {
	n := len(w.seen.starts)
	if n == 0 {
		return 0
	}
	s := w.seen.starts[n-1]
	if s.Planned < 0 || s.Planned >= len(w.plan.Arms) {
		return 0
	}
	return weight(w.plan.life(s.Planned, max(1, s.Life)).Load)
}

func (w *watcher) status() Status {
	s := Status{Closed: w.closed}
	if w.plan == nil {
		s.Phase = "nothing has begun yet"
		return s
	}
	s.Progress = Progress{
		Phase: w.phase, Lives: len(w.plan.Lives()), Life: len(w.seen.starts), Replaced: w.lost, Requests: w.requests, Faults: w.faults,
		Done: w.done, Elapsed: w.last.Sub(w.first),
	}
	for _, life := range w.plan.Lives() {
		s.Total += weight(life.Load)
	}
	if n := len(w.seen.starts); n > 0 {
		s.Arm = w.seen.starts[n-1].Name
	}
	if w.phase == phaseLoad && w.last.After(w.loadFrom) {
		seconds := w.last.Sub(w.loadFrom).Seconds()
		s.RequestsPerSecond = float64(w.own) / seconds
		s.Done += min(int64(w.own), w.weight())
	}
	s.Left = left(s.Elapsed, s.Done, s.Total)
	if w.requests > 0 {
		s.Bound = stats.Anytime(float64(w.faults), float64(w.requests), 0.05)
	}
	return s
}

// left is how much longer it takes if it goes on as it did; 0 if nobody can
// tell.
func left(elapsed time.Duration, done, total int64) time.Duration {
	if done <= 0 || done >= total {
		return 0
	}
	return time.Duration(float64(elapsed) * float64(total-done) / float64(done))
}

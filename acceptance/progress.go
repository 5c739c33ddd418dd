package acceptance

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/acceptance/stats"
)

// Progress is the state of a run, a few times a second.
type Progress struct {
	Phase             string        // of the life that goes on
	Life, Lives       int           // the how manieth of the plan's; Life counts up to Lives+replaced
	Arm               string        // its condition
	Replaced          int           // lives that were no evidence
	Done              int64         // of Total: requests, and seconds of lives that run for a time
	Total             int64         //
	Requests          int           // that ended, in all lives
	Faults            int           // in all lives
	BusyShare         float64       // of the busy time of this life, all slots busy
	RequestsPerSecond float64       // of this life
	Elapsed           time.Duration // since the run began or was resumed
	Left              time.Duration // as it looks; 0: nobody can tell yet
	Bound             float64       // anytime-valid upper bound on faults a request; it may be watched, and decides nothing
}

// String says it in one short line.
func (p Progress) String() string {
	var b strings.Builder
	if p.Lives > 1 {
		fmt.Fprintf(&b, "life %d of %d (%s), ", p.Life, p.Lives+p.Replaced, p.Arm)
	}
	if p.Phase != phaseLoad {
		b.WriteString(p.Phase)
	} else {
		if p.BusyShare > 0 { // who only reads the ledger does not know it
			fmt.Fprintf(&b, "all slots busy %.0f %%, ", 100*p.BusyShare)
		}
		fmt.Fprintf(&b, "%.1f/s", p.RequestsPerSecond)
	}
	fmt.Fprintf(&b, ", %d requests, %d faults", p.Requests, p.Faults)
	if p.Requests > 0 {
		fmt.Fprintf(&b, " (rate < %.4f)", p.Bound)
	}
	if p.Left > 0 {
		fmt.Fprintf(&b, ", %s left", p.Left.Round(time.Second))
	}
	return b.String()
}

// Phases of a life.
const (
	phaseStart     = "starting the server"
	phaseSentinels = "asking the sentinels"
	phaseNeighbour = "waiting for the neighbour"
	phaseLoad      = "load"
	phaseProbe     = "asking the quiet server"
	phaseEnd       = "ending"
)

// A tracker adds up the lives of a run for those who look on.
type tracker struct {
	w     *walk
	began time.Time
	total int64

	mu                     sync.Mutex
	done                   int64 // of the lives that have ended
	inherited              int64 // of those before the run was resumed
	requests, faults, lost int
}

func newTracker(w *walk) *tracker {
	t := &tracker{w: w, began: w.o.Now()}
	for _, p := range w.lives {
		t.total += weight(p.Load)
	}
	return t
}

// weight is how much a life adds to the total.
func weight(l Load) int64 {
	if l.Requests > 0 {
		return int64(l.Requests)
	}
	return int64(time.Duration(l.Duration).Seconds())
}

// inherit counts a life that another runner has recorded.
func (t *tracker) inherit(p Load, state ArmState, requests int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(p, state, requests)
	t.inherited = t.done
}

// lived counts a life that has ended.
func (t *tracker) lived(l *life, state ArmState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	t.add(l.plan.Load, state, l.ended)
}

func (t *tracker) add(p Load, state ArmState, requests int) {
	t.requests += requests
	t.faults += state.Faults
	switch state.State {
	case stateClean, stateFault:
		t.done += weight(p)
	default:
		t.lost++
	}
}

// tell calls the progress function, one call at a time.
func (t *tracker) tell(l *life) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Progress{
		Lives: len(t.w.lives), Life: l.begin.Arm, Arm: l.begin.Name, Replaced: t.lost, Done: t.done, Total: t.total,
		BusyShare: l.log.busyShare(), Elapsed: t.w.o.Now().Sub(t.began), Requests: t.requests, Faults: t.faults,
	}
	l.mu.Lock()
	p.Phase = l.phase
	p.Requests += l.ended
	p.Faults += l.faults
	own := int64(l.ended)
	if from := l.from; from > 0 {
		to := l.us()
		if l.to > 0 {
			to = l.to
		}
		seconds := float64(to-from) / 1e6
		if seconds > 0 {
			p.RequestsPerSecond = float64(l.ended) / seconds
		}
		if l.plan.Load.Requests == 0 {
			own = int64(seconds)
		}
	}
	l.mu.Unlock()
	p.Done += min(own, weight(l.plan.Load))
	p.Left = left(p.Elapsed, p.Done-t.inherited, p.Total-t.inherited)
	if p.Requests > 0 {
		p.Bound = stats.Anytime(float64(p.Faults), float64(p.Requests), 0.05)
	}
	t.w.o.Progress(p)
}

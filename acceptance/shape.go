package acceptance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// shape is what the launch and release lines of one life say about its load.
type shape struct {
	Slots        int         `json:"slots"` // as the server started with; 0: the log does not say
	KVUnified    bool        `json:"kv_unified"`
	Launches     map[int]int `json:"launches"` // by slot
	LRU          int         `json:"lru"`
	LCP          int         `json:"lcp"`
	ByID         int         `json:"by_id"`
	NeverUsed    int         `json:"never_used"`            // launches that were the first of their slot
	FirstSlots   []int       `json:"first_slots,omitempty"` // the slots whose first task fell into the load
	BusyUS       int64       `json:"busy_us"`               // at least one slot busy
	AllSlotsBusy int64       `json:"all_slots_busy_us"`
	Unpaired     int         `json:"unpaired"`             // releases without launch, launches without selection
	Unreleased   int         `json:"unreleased,omitempty"` // launches on a slot that the log had not seen released
}

// busyShare is the share of the busy time in which every slot was busy.
func (s shape) busyShare() float64 {
	if s.BusyUS <= 0 {
		return 0
	}
	return float64(s.AllSlotsBusy) / float64(s.BusyUS)
}

// launched counts the launches of all slots.
func (s shape) launched() int {
	n := 0
	for _, k := range s.Launches {
		n += k
	}
	return n
}

// slotLog follows the slots through the log. Selection, launch and release of
// one slot are joined by its id. Only what falls into the load is counted.
type slotLog struct {
	shape    shape
	parallel int // slots that the plan asks for
	selected map[int]string
	busy     map[int]bool
	used     map[int]bool
	last     time.Duration
	loading  bool
	launches int               // in and out of the load
	counted  map[slotTask]bool // tasks of the load that were put on their slot by the beginning of their prompt
	lcp      []span            // those of them that have ended
	may      []span            // requests that may be
}

// slotTask names a task of one server.
type slotTask struct{ slot, task int }

// span is a request's or a task's time on a slot, µs.
type span struct {
	slot       int // -1: the answer does not tell
	from, to   int64
	similarity float64 // of a task
}

// sameText is the similarity from which on a prompt is one that the slot has
// just had.
const sameText = 0.9

// maxSpans bounds the tasks that are kept: with so many the load has failed.
const maxSpans = 10_000

func newSlotLog(parallel int) *slotLog {
	return &slotLog{
		shape: shape{Launches: map[int]int{}}, parallel: parallel,
		selected: map[int]string{}, busy: map[int]bool{}, used: map[int]bool{}, counted: map[slotTask]bool{},
	}
}

// open begins the account: what came before was not part of the load.
func (s *slotLog) open() { s.loading = true }

// freeze ends it: what comes after is not part of the load.
func (s *slotLog) freeze() { s.loading = false }

// add takes one event, and when it was.
func (s *slotLog) add(ev engine.LogEvent, at time.Duration) {
	switch ev.Kind {
	case engine.LogStartup:
		s.shape.Slots, s.shape.KVUnified = ev.Slots, ev.KVUnified
	case engine.LogSelected:
		s.selected[ev.Slot] = ev.How
	case engine.LogLaunch:
		s.elapse(at)
		s.launches++
		if s.loading {
			s.launch(ev.Slot)
			if s.selected[ev.Slot] == engine.SelectedLCP && len(s.counted) < maxSpans {
				s.counted[slotTask{ev.Slot, ev.Task}] = true
			}
		}
		delete(s.selected, ev.Slot)
		s.busy[ev.Slot], s.used[ev.Slot] = true, true
	case engine.LogRelease:
		s.elapse(at)
		if s.loading && !s.busy[ev.Slot] {
			s.shape.Unpaired++
		}
		delete(s.busy, ev.Slot)
	}
}

func (s *slotLog) launch(slot int) {
	if s.busy[slot] {
		s.shape.Unreleased++
	}
	switch s.selected[slot] {
	case engine.SelectedLRU:
		s.shape.LRU++
	case engine.SelectedLCP:
		s.shape.LCP++
	case engine.SelectedID:
		s.shape.ByID++
	default:
		s.shape.Unpaired++
	}
	if !s.used[slot] {
		s.shape.NeverUsed++
		s.shape.FirstSlots = append(s.shape.FirstSlots, slot)
	}
	s.shape.Launches[slot]++
}

// task takes one task that has ended. It is of the load if its launch was,
// whenever it ended.
func (s *slotLog) task(t engine.Task) {
	if key := (slotTask{t.Slot, t.ID}); s.counted[key] && len(s.lcp) < maxSpans {
		delete(s.counted, key)
		s.lcp = append(s.lcp, span{t.Slot, t.Launched.Microseconds(), t.Released.Microseconds(), t.Similarity})
	}
}

// exempt names a request that may be put on a slot by its beginning, since it
// is asked again and again.
func (s *slotLog) exempt(request span) { s.may = append(s.may, request) }

// exempted counts the tasks that are those requests: the same slot, and within
// the request's time as far as two clocks agree. Where answers do not tell their
// slot the prompt must be the one that the slot had.
func (s *slotLog) exempted() int {
	const slack = 250_000 // µs
	n, from := 0, 0
	slices.SortFunc(s.may, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, request := range s.may {
		for from < len(s.lcp) && s.lcp[from].to < request.from-slack-maxTaskUS {
			from++
		}
		for i := from; i < len(s.lcp); i++ {
			t := &s.lcp[i]
			same := t.slot == request.slot || request.slot < 0 && t.similarity >= sameText
			if same && t.slot >= 0 && t.from >= request.from-slack && t.to <= request.to+slack {
				t.slot = -1 // no task is two requests
				n++
				break
			}
		}
	}
	return n
}

// maxTaskUS is longer than any task: those that ended so long before a request
// are passed over for all later ones.
const maxTaskUS = int64(time.Hour / time.Microsecond)

// elapse accounts for the time since the event before. Lines of two threads may
// come a little out of order; time does not run back.
func (s *slotLog) elapse(at time.Duration) {
	if d := (at - s.last).Microseconds(); d > 0 && s.loading {
		if len(s.busy) > 0 {
			s.shape.BusyUS += d
		}
		if len(s.busy) >= s.parallel {
			s.shape.AllSlotsBusy += d
		}
	}
	s.last = max(s.last, at)
}

// mostUnreleased is the share of launches whose slot was never seen released
// before, as one in so many, from which on the log does not tell how long slots
// were busy. A line may be lost when two of the server's threads write at once.
const mostUnreleased = 50

// problem says why a life did not have the load that its plan means, or "".
func (s shape) problem(p *Plan, answered int) string {
	parallel, q := p.Server.Parallel, *p.Gates.AllSlotsBusyShare
	switch {
	case s.Slots != 0 && s.Slots != parallel:
		return fmt.Sprintf("the server made %d slots, the plan asks for %d", s.Slots, parallel)
	case s.Slots != 0 && *p.Server.KVUnified && !s.KVUnified:
		return "the server did not unify the slots' memory, the plan asks for it"
	case s.launched() == 0 && answered > 0:
		return "the server's log tells nothing of its slots: nothing shows that they were busy at once, nor how they were chosen"
	case s.launched() < answered:
		return fmt.Sprintf("the log shows %d launches for %d answers", s.launched(), answered)
	}
	for slot := range parallel {
		if n := s.Launches[slot]; n < p.Gates.MinLaunchesPerSlot {
			return fmt.Sprintf("slot %d had %d launches, the plan asks for %d on each of %d slots", slot, n, p.Gates.MinLaunchesPerSlot, parallel)
		}
	}
	switch {
	case s.Unreleased*mostUnreleased > s.launched():
		return fmt.Sprintf("%d of %d launches were on a slot that the log had not seen released: it does not show when slots were busy", s.Unreleased, s.launched())
	case s.LCP > 0:
		return fmt.Sprintf("%d of %d requests were put on a slot by the beginning of their prompt, none may be", s.LCP, s.launched())
	case !(s.busyShare() >= q):
		return fmt.Sprintf("all %d slots were busy for %.2f of the busy time, the plan asks for %.2f", parallel, s.busyShare(), q)
	}
	return ""
}

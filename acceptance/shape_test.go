package acceptance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

const twoSlots = `0.00.000.100 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 8192, kv_unified = 'true'
0.01.000.000 I slot get_availabl: id  0 | task -1 | selected slot by LRU, n_tokens = 0, t_last = -1
0.01.000.000 I slot launch_slot_: id  0 | task 1 | processing task, is_child = 0
0.02.000.000 I slot get_availabl: id  1 | task -1 | selected slot by LRU, n_tokens = 0, t_last = -1
0.02.000.000 I slot launch_slot_: id  1 | task 2 | processing task, is_child = 0
0.05.000.000 I slot      release: id  0 | task 1 | stop processing: n_tokens = 9, truncated = 0
0.06.000.000 I slot      release: id  1 | task 2 | stop processing: n_tokens = 9, truncated = 0
0.16.000.000 I slot get_availabl: id  0 | task -1 | selected slot by LCP similarity, f_sim_best = 0.923 (> 0.100 thold), f_keep = 0.811
0.16.000.000 I slot launch_slot_: id  0 | task 3 | processing task, is_child = 0
0.17.000.000 I slot      release: id  0 | task 3 | stop processing: n_tokens = 9, truncated = 0
`

func shapeOf(log string, parallel int, read func(i int) time.Duration) shape {
	s := newSlotLog(parallel)
	s.open()
	i := 0
	for text := range strings.Lines(log) {
		if ev, ok := engine.ParseLogLine(text); ok {
			ev.Read = read(i)
			s.add(ev, ev.At())
		}
		i++
	}
	return s.shape
}

func TestShape(t *testing.T) {
	never := func(int) time.Duration { return 99 * time.Hour } // the log's own times count
	want := shape{
		Slots: 2, KVUnified: true, Launches: map[int]int{0: 2, 1: 1}, LRU: 2, LCP: 1, NeverUsed: 2, FirstSlots: []int{0, 1},
		BusyUS: 6e6, AllSlotsBusy: 3e6,
	}
	got := shapeOf(twoSlots, 2, never)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	near(t, "share", got.busyShare(), 0.5)

	// Without times in the log, those of reading stand in.
	bare := strings.NewReplacer("0.0", "#0.0", "0.1", "#0.1").Replace(twoSlots)
	var lines []string
	for text := range strings.Lines(bare) {
		_, rest, _ := strings.Cut(text, " I ")
		lines = append(lines, rest)
	}
	at := []time.Duration{0, 1, 1, 2, 2, 5, 6, 16, 16, 17}
	got = shapeOf(strings.Join(lines, ""), 2, func(i int) time.Duration { return at[i] * time.Second })
	if got.BusyUS != 6e6 || got.AllSlotsBusy != 3e6 {
		t.Errorf("by reading: busy %d, all %d", got.BusyUS, got.AllSlotsBusy)
	}
}

// Only what falls into the load counts, and a slot that was used before it is
// not one that was never used.
func TestShapeIsOfTheLoad(t *testing.T) {
	s := newSlotLog(1)
	line := func(text string, at time.Duration) {
		ev, ok := engine.ParseLogLine(text)
		if !ok {
			t.Fatal(text)
		}
		s.add(ev, at)
	}
	const launch, release = "slot launch_slot_: id  0 | task 1 | processing task", "slot release: id  0 | task 1 | stop processing: n_tokens = 9, truncated = 0"
	line(launch, time.Second)
	line(release, 2*time.Second)
	s.open()
	line(launch, 3*time.Second)
	line(release, 4*time.Second)
	s.freeze()
	line(launch, 5*time.Second)
	line(release, 6*time.Second)
	if s.shape.Launches[0] != 1 || s.shape.Unpaired != 1 || s.shape.NeverUsed != 0 || s.shape.BusyUS != 1e6 {
		t.Errorf("%+v", s.shape)
	}
}

// A log without release lines makes every slot look busy all the time: it proves
// nothing about the load.
func TestShapeWithoutReleases(t *testing.T) {
	plan, err := ParsePlan([]byte("name: x\nmodel: m\np0: 0.5\nload: {requests: 100}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		lost int // releases
		want string
	}{
		{0, "all 4 slots were busy for 0.00 of the busy time"}, // one request at a time
		{2, "all 4 slots were busy for 0.0"},
		{3, "3 of 100 launches were on a slot that the log had not seen released"},
		{90, "90 of 100 launches"},
	} {
		s := newSlotLog(4)
		s.open()
		for i := range 100 {
			at := time.Duration(i) * time.Second
			s.add(engine.LogEvent{Kind: engine.LogSelected, Slot: i % 4, How: engine.SelectedLRU}, at)
			s.add(engine.LogEvent{Kind: engine.LogLaunch, Slot: i % 4}, at)
			if i >= tt.lost {
				s.add(engine.LogEvent{Kind: engine.LogRelease, Slot: i % 4}, at+time.Second)
			}
		}
		if got := s.shape.problem(plan, 100); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%d lost: %q, want %q", tt.lost, got, tt.want)
		}
	}
}

// taskOf has a task launched now, and gives it as it will be when it has ended.
func (s *slotLog) taskOf(id, slot int, how string, similarity float64, from, to time.Duration) engine.Task {
	s.add(engine.LogEvent{Kind: engine.LogSelected, Slot: slot, How: how, Similarity: similarity}, from)
	s.add(engine.LogEvent{Kind: engine.LogLaunch, Slot: slot, Task: id}, from)
	s.add(engine.LogEvent{Kind: engine.LogRelease, Slot: slot, Task: id}, to)
	return engine.Task{ID: id, Slot: slot, How: how, Similarity: similarity, Launched: from, Released: to}
}

// A sentinel may be put on a slot by its beginning; no other request may, even
// if it was on the same slot or at the same time.
func TestShapeExemptsSentinels(t *testing.T) {
	const second = time.Second
	s := newSlotLog(2)
	s.open()
	for _, task := range []engine.Task{
		s.taskOf(1, 0, engine.SelectedLCP, 1, 10*second, 11*second),
		s.taskOf(2, 1, engine.SelectedLCP, 1, 10*second, 11*second),
		s.taskOf(3, 0, engine.SelectedLCP, 1, 20*second, 21*second),
		s.taskOf(4, 1, engine.SelectedLRU, 0, 20*second, 21*second),
	} {
		s.task(task)
	}
	s.exempt(span{slot: 1, from: 19_990_000, to: 21_010_000}) // was put on its slot by age
	s.exempt(span{slot: 0, from: 9_990_000, to: 11_010_000})
	if n := s.exempted(); n != 1 {
		t.Errorf("%d tasks are sentinels, want 1", n)
	}
}

// A task is of the load if its launch is, whenever it is told of: what is taken
// off is never more than what was counted.
func TestShapeExemptsByLaunch(t *testing.T) {
	const second = time.Second
	s := newSlotLog(1)
	before := s.taskOf(1, 0, engine.SelectedLCP, 1, 1*second, 2*second)
	s.open()
	s.task(before)
	under := s.taskOf(2, 0, engine.SelectedLCP, 1, 3*second, 4*second)
	s.freeze()
	s.task(under)
	s.exempt(span{slot: 0, from: 990_000, to: 2_010_000})
	s.exempt(span{slot: 0, from: 2_990_000, to: 4_010_000})
	if n := s.exempted(); n != 1 || s.shape.LCP != 1 {
		t.Errorf("%d of %d tasks are sentinels, want 1 of 1", n, s.shape.LCP)
	}
}

// Where answers do not name their slot, a sentinel is a prompt that the slot has
// just had.
func TestShapeExemptsWithoutSlot(t *testing.T) {
	const second = time.Second
	s := newSlotLog(2)
	s.open()
	s.task(s.taskOf(1, 0, engine.SelectedLCP, 0.3, 1*second, 2*second)) // shares a beginning
	s.task(s.taskOf(2, 1, engine.SelectedLCP, 1, 1*second, 2*second))
	for range 2 {
		s.exempt(span{slot: -1, from: 990_000, to: 2_010_000})
	}
	if n := s.exempted(); n != 1 {
		t.Errorf("%d tasks are sentinels, want 1", n)
	}
}

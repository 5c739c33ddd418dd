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
	i := 0
	for text := range strings.Lines(log) {
		if ev, ok := engine.ParseLogLine(text); ok {
			s.add(ev, read(i))
		}
		i++
	}
	return s.shape
}

func TestShape(t *testing.T) {
	never := func(int) time.Duration { return 99 * time.Hour } // the log's own times count
	want := shape{
		Slots: 2, KVUnified: true, Launches: map[int]int{0: 2, 1: 1}, LRU: 2, LCP: 1, NeverUsed: 2,
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

func TestShapeFreezes(t *testing.T) {
	s := newSlotLog(1)
	launch, _ := engine.ParseLogLine("slot launch_slot_: id  0 | task 1 | processing task")
	s.add(launch, time.Second)
	s.freeze()
	s.add(launch, 2*time.Second)
	if s.shape.Launches[0] != 1 || s.shape.Unpaired != 1 {
		t.Errorf("%+v", s.shape)
	}
}

func TestBenchTokens(t *testing.T) {
	out := `{"n_prompt": 64, "n_gen": 0, "samples_ns": [ 1, 2, 3 ]}
{"n_prompt": 0, "n_gen": 32, "samples_ns": [ 1, 2, 3 ]}
load_backend: loaded CPU backend
{"n_prompt": 64, "n_gen": 0, "samples_ns": []}
{"n_prompt": 64, "n_gen": 0, "samples_ns": [ 1 ]}`
	if results, tokens := benchTokens([]byte(out)); results != 2 || tokens != 288 {
		t.Errorf("%d results, %d tokens; the last line is not whole", results, tokens)
	}
}

func FuzzBenchTokens(f *testing.F) {
	f.Add([]byte(`{"n_prompt": 64, "n_gen": 0, "samples_ns": [ 1, 2, 3 ]}` + "\n"))
	f.Add([]byte(`{"n_prompt": -64, "n_gen": 9223372036854775807, "samples_ns": [ 1 ]}` + "\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		if results, tokens := benchTokens(out); tokens < 0 || results == 0 && tokens != 0 {
			t.Fatalf("%d results, %d tokens", results, tokens)
		}
	})
}

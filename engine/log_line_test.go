package engine

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseLogLine(t *testing.T) {
	const ms = time.Millisecond
	none := LogEvent{}
	tests := []struct {
		line string
		want LogEvent // the zero value: no event
	}{
		{"0.35.546.614 I slot get_availabl: id  1 | task -1 | selected slot by LRU, n_tokens = 0, t_last = -1",
			LogEvent{Kind: LogSelected, Timed: true, Time: 35546*ms + 614*time.Microsecond, Level: 'I', Slot: 1, Task: -1, How: SelectedLRU, NeverUsed: true}},
		{"slot get_availabl: id 2 | task -1 | selected slot by LRU, t_last = 8125001",
			LogEvent{Kind: LogSelected, Slot: 2, Task: -1, How: SelectedLRU}},
		{"slot get_availabl: id  3 | task -1 | selected slot by LCP similarity, f_sim_best = 0.252 (> 0.100 thold), f_keep = 0.472",
			LogEvent{Kind: LogSelected, Slot: 3, Task: -1, How: SelectedLCP}},
		{"slot get_availabl: id  3 | task -1 | selected slot by LCP similarity, sim_best = 1.000 (> 0.100 thold), f_keep = 0.989",
			LogEvent{Kind: LogSelected, Slot: 3, Task: -1, How: SelectedLCP}},
		{"slot get_availabl: id  0 | task -1 | selected slot by lcs similarity, lcs_len = 3, similarity = 0.500000",
			LogEvent{Kind: LogSelected, Slot: 0, Task: -1, How: SelectedLCP}},
		{"slot get_availabl: id  0 | task -1 | selected slot by id (0)",
			LogEvent{Kind: LogSelected, Slot: 0, Task: -1, How: SelectedID}},
		{"slot launch_slot_: id 2 | task 218 | processing task, is_child = 0", LogEvent{Kind: LogLaunch, Slot: 2, Task: 218}},
		{"slot      release: id 3 | task 187 | stop processing: n_tokens = 262", LogEvent{Kind: LogRelease, Slot: 3, Task: 187, Tokens: 262}},
		{"121.17.400.005 I slot      release: id  0 | task 9 | stop processing: n_past = 12, truncated = 1",
			LogEvent{Kind: LogRelease, Timed: true, Time: 121*time.Minute + 17400*ms + 5*time.Microsecond, Level: 'I', Task: 9, Tokens: 12, Truncated: true}},
		{"[41001] 0.09.000.001 I slot      release: id  0 | task 1 | stop processing: n_tokens = 200, truncated = 0",
			LogEvent{Kind: LogRelease, Router: 41001, Timed: true, Time: 9000*ms + time.Microsecond, Level: 'I', Task: 1, Tokens: 200}},
		{"slot print_timing: id  3 | task 0 | prompt processing, n_tokens =   1024, progress = 0.42, t =   1.70 s / 600.00 tokens per second", none},
		{"slot print_timing: id  3 | task 0 | n_gen = 40, tg = 30.12 t/s, tg_3s = 29.80 t/s", none},
		{"slot print_timing: id  3 | task 0 |        eval time =    2000.00 ms /    60 tokens (   33.33 ms per token,    30.00 tokens per second)",
			LogEvent{Kind: LogTiming, Slot: 3}},
		{"prompt eval time =     210.40 ms /    31 tokens (    6.79 ms per token,   147.34 tokens per second)", LogEvent{Kind: LogTiming, Slot: -1, Task: -1}},
		{"0.01.320.932 W srv  try_clear_id: purging slot 0 with 1907 tokens", none},
		{"0.01.320.932 W slot   operator(): id  1 | task 2871 | need to evaluate at least 1 token for each active slot (n_past = 9, task.n_tokens() = 9)", none},
		{"0.00.300.000 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 262144, kv_unified = 'true'",
			LogEvent{Kind: LogStartup, Timed: true, Time: 300 * ms, Level: 'I', Slot: -1, Task: -1, Slots: 4, KVUnified: true}},
		{"srv          init: initializing slots, n_slots = 2", LogEvent{Kind: LogStartup, Slot: -1, Task: -1, Slots: 2}},
		{"0.10.000.000 E srv    send_error: task id = 12, error: Context size has been exceeded.",
			LogEvent{Kind: LogContext, Timed: true, Time: 10 * time.Second, Level: 'E', Slot: -1, Task: 12}},
		{"0.10.000.000 E srv    send_error: task id = 12, error: Compute error.", none},
		{"HRX returned NaN logits at vocab index 7 - refusing to sample a silently wrong token (engine#123)",
			LogEvent{Kind: LogNaN, Slot: -1, Task: -1, NaN: &NaNGuard{Count: 1, First: 7, Last: 7, Contiguous: true}}},
		{"367.05.963.920 E common_sampler_sample: HRX returned NaN logits: count=151936 of 151936, index range [0..151935], contiguous=yes, continuing=no (engine#315)",
			LogEvent{Kind: LogNaN, Timed: true, Time: 367*time.Minute + 5963*ms + 920*time.Microsecond, Level: 'E', Slot: -1, Task: -1,
				NaN: &NaNGuard{Count: 151936, Of: 151936, First: 0, Last: 151935, Contiguous: true}}},
		{"[60671] 0.36.386.802 E common_sampler_sample: HRX returned NaN logits: count=2 of 32, index range [3..9], contiguous=no, continuing=yes (engine#315)",
			LogEvent{Kind: LogNaN, Router: 60671, Timed: true, Time: 36386*ms + 802*time.Microsecond, Level: 'E', Slot: -1, Task: -1,
				NaN: &NaNGuard{Count: 2, Of: 32, First: 3, Last: 9, Continuing: true}}},
		{"367.05.963.920 E common_sampler_sample: HRX returned NaN logits: count=151936 of 151936,", // wrapped by whoever copied it
			LogEvent{Kind: LogNaN, Timed: true, Time: 367*time.Minute + 5963*ms + 920*time.Microsecond, Level: 'E', Slot: -1, Task: -1,
				NaN: &NaNGuard{Count: 151936, Of: 151936}}},
		{"/home/x/llama.cpp/common/sampling.cpp:620: HRX: NaN logits (engine#123)", LogEvent{Kind: LogAbort, Slot: -1, Task: -1, NaNAbort: true}},
		{"/src/ggml.c:99: GGML_ASSERT(a == b) failed", LogEvent{Kind: LogAbort, Slot: -1, Task: -1}},
		{"terminate called after throwing an instance of 'std::runtime_error'", LogEvent{Kind: LogAbort, Slot: -1, Task: -1}},
		{"0.00.100.000 E alloc: hrx_allocator_allocate_buffer: HSA_STATUS_ERROR_OUT_OF_RESOURCES", LogEvent{Kind: LogAlloc, Timed: true, Time: 100 * ms, Level: 'E', Slot: -1, Task: -1}},
		{"0.00.100.000 E hrx: HSA_STATUS_ERROR_EXCEPTION", LogEvent{Kind: LogDevice, Timed: true, Time: 100 * ms, Level: 'E', Slot: -1, Task: -1}},
		{"0.00.100.000 E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
			LogEvent{Kind: LogBind, Timed: true, Time: 100 * ms, Level: 'E', Slot: -1, Task: -1}},
		{`0.01.000.000 I srv  log: prompt: "HRX returned NaN logits: count=1 of 2"`, none},
		{`0.01.000.000 D que post: prompt: "slot      release: id  0 | task 9 | stop processing: n_tokens = 20"`, none},
		{"", none},
	}
	for _, tt := range tests {
		got, ok := ParseLogLine(tt.line)
		if !ok {
			got = none
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(LogEvent{}, "Detail")); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", tt.line, diff)
		}
	}
}

// One line a kind, in the order of the files.
func TestParseLogShapes(t *testing.T) {
	want := map[string]string{
		"log-shapes/a-2024.log":        "launch 0/7, release 0/7, timing -1/-1, timing -1/-1, timing -1/-1",
		"log-shapes/b-2026.log":        "selected 3/-1, launch 3/0, timing 3/0, timing 3/0, release 3/0, launch 0/9, release 0/9",
		"log-shapes/c-router.log":      "release 0/1",
		"log-shapes/d-2024-json.log":   "timing 0/7",
		"log-shapes/e-colour.log":      "launch 0/0",
		"log-shapes/f-words.log":       "release 0/0",
		"log-shapes/h-server-died.log": "abort -1/-1",
		"null-or-nan/f-abort.log":      "abort -1/-1, abort -1/-1, abort -1/-1 nan",
		"null-or-nan/g-banner.log":     "",
	}
	for name, want := range want {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(raw)) {
			if ev, ok := ParseLogLine(line); ok {
				text := string(ev.Kind) + " " + strconv.Itoa(ev.Slot) + "/" + strconv.Itoa(ev.Task)
				if ev.NaNAbort {
					text += " nan"
				}
				got = append(got, text)
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzParseLogLine(f *testing.F) {
	for _, name := range []string{"log-shapes/a-2024.log", "log-shapes/b-2026.log", "log-shapes/c-router.log",
		"log-shapes/d-2024-json.log", "log-shapes/e-colour.log", "log-shapes/f-words.log", "null-or-nan/f-abort.log"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		ev, ok := ParseLogLine(line)
		if ok && ev.Kind == "" {
			t.Fatalf("%q: an event without a kind", line)
		}
		if ev.Kind == LogNaN && (ev.NaN == nil || !strings.Contains(line, "NaN logits") && !strings.Contains(line, "\x1b") && !strings.HasPrefix(line, "{")) {
			t.Fatalf("%q: a NaN out of nowhere", line)
		}
	})
}

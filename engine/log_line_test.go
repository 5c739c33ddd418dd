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
			LogEvent{Kind: LogSelected, Slot: 3, Task: -1, How: SelectedLCP, Similarity: 0.252}},
		{"slot get_availabl: id  3 | task -1 | selected slot by LCP similarity, sim_best = 1.000 (> 0.100 thold), f_keep = 0.989",
			LogEvent{Kind: LogSelected, Slot: 3, Task: -1, How: SelectedLCP, Similarity: 1}},
		{"slot get_availabl: id  0 | task -1 | selected slot by lcs similarity, lcs_len = 3, similarity = 0.500000",
			LogEvent{Kind: LogSelected, Slot: 0, Task: -1, How: SelectedLCP, Similarity: 0.5}},
		{"slot get_availabl: id  0 | task -1 | selected slot by id (0)",
			LogEvent{Kind: LogSelected, Slot: 0, Task: -1, How: SelectedID}},
		{"slot launch_slot_: id 2 | task 218 | processing task, is_child = 0", LogEvent{Kind: LogLaunch, Slot: 2, Task: 218}},
		{"slot launch_slot_: id 2 | task 218 | processing task, is_child = 1", LogEvent{Kind: LogLaunch, Slot: 2, Task: 218, Child: true}},
		{"slot launch_slot_: id 2 | task 218 | processing task, is_child = 0 or not", none},
		{"slot launch_slot_: id 2 | task -1 | sampler chain: logits -> penalties", none},
		{"slot      release: id x | task 1 | stop processing: n_tokens = 1", none},
		{"slot release: id 1 | task | stop processing: n_tokens = 1", none},
		{"slot two words: id 1 | task 1 | stop processing: n_tokens = 1", none},
		{"slot update_slots: id  0 | task 7 | new prompt, n_ctx_slot = 2048, n_keep = 0, n_prompt_tokens = 31", LogEvent{Kind: LogPrompt, Task: 7, Tokens: 31}},
		{"slot   operator(): id  2 | task 17 | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = 7001", LogEvent{Kind: LogPrompt, Slot: 2, Task: 17, Tokens: 7001}},
		{"slot      release: id 3 | task 187 | stop processing: n_tokens = 262", LogEvent{Kind: LogRelease, Slot: 3, Task: 187, Tokens: 262}},
		{"121.17.400.005 I slot      release: id  0 | task 9 | stop processing: n_past = 12, truncated = 1",
			LogEvent{Kind: LogRelease, Timed: true, Time: 121*time.Minute + 17400*ms + 5*time.Microsecond, Level: 'I', Task: 9, Tokens: 12, Truncated: true}},
		{"[41001] 0.09.000.001 I slot      release: id  0 | task 1 | stop processing: n_tokens = 200, truncated = 0",
			LogEvent{Kind: LogRelease, Router: 41001, Timed: true, Time: 9000*ms + time.Microsecond, Level: 'I', Task: 1, Tokens: 200}},
		{"slot print_timing: id  3 | task 0 | prompt processing, n_tokens =   1024, progress = 0.42, t =   1.70 s / 600.00 tokens per second", LogEvent{Kind: LogProgress, Slot: 3}},
		{"slot print_timing: id  3 | task 0 | n_gen = 40, tg = 30.12 t/s, tg_3s = 29.80 t/s", LogEvent{Kind: LogProgress, Slot: 3}},
		{"slot print_timing: id  3 | task 0 | n_decoded =     40, tg =  30.12 t/s", LogEvent{Kind: LogProgress, Slot: 3}},
		{"slot print_timing: id  3 | task 0 |        eval time =    2000.00 ms /    60 tokens (   33.33 ms per token,    30.00 tokens per second)",
			LogEvent{Kind: LogTiming, Slot: 3, Phase: PhaseEval, MS: 2000, Tokens: 60}},
		{"slot print_timing: id  3 | task 0 |       total time =    5174.55 ms /   212 tokens", LogEvent{Kind: LogTiming, Slot: 3, Phase: PhaseTotal, MS: 5174.55, Tokens: 212}},
		{"slot print_timing: id  3 | task 0 |        eval time =       0.00 ms /     1 tokens (    -nan ms per token,      inf tokens per second)",
			LogEvent{Kind: LogTiming, Slot: 3, Phase: PhaseEval, Tokens: 1}},
		{"slot print_timing: id  3 | task 0 |    graphs reused =        190", LogEvent{Kind: LogGraphs, Slot: 3, GraphsReused: 190}},
		{"slot print_timing: id  3 | task 0 |   graph reallocs =          0    /     0        (same size) / (changed size)", none},
		{"slot print_timing: id  3 | task 0 | ", none},
		{"prompt eval time =     210.40 ms /    31 tokens (    6.79 ms per token,   147.34 tokens per second)", LogEvent{Kind: LogTiming, Slot: -1, Task: -1, Phase: PhasePrompt, MS: 210.4, Tokens: 31}},
		{"0.01.320.932 W srv  try_clear_id: purging slot 0 with 1907 tokens",
			LogEvent{Kind: LogPurge, Timed: true, Time: 1320*ms + 932*time.Microsecond, Level: 'W', Slot: 0, Task: -1, Tokens: 1907}},
		{"0.01.877.854 W srv          stop: cancel task, id_task = 78",
			LogEvent{Kind: LogCancel, Timed: true, Time: 1877*ms + 854*time.Microsecond, Level: 'W', Slot: -1, Task: 78}},
		{"srv        update:  - cache state: 6 prompts, 0.044 MiB (limits: 8192.000 MiB, 8192 tokens, 31717832 est)",
			LogEvent{Kind: LogCache, Slot: -1, Task: -1, Entries: 6, MiB: 0.044}},
		{"srv  update_slots: all slots are idle", LogEvent{Kind: LogIdle, Slot: -1, Task: -1}},
		{"srv  log_server_r: done request: POST /completion 127.0.0.1 200", LogEvent{Kind: LogHTTP, Slot: -1, Task: -1, Path: "/completion", Status: 200}},
		{"srv  log_server_r: request: GET /a b 999 c 127.0.0.1 404", LogEvent{Kind: LogHTTP, Slot: -1, Task: -1, Path: "/a b 999 c", Status: 404}},
		{"srv  log_server_r: request: GET /x", none},
		{`srv  log_server_r: request:  {"prompt":"POST / 127.0.0.1 200 done"}`, none},
		{"0.01.320.932 W slot   operator(): id  1 | task 2871 | need to evaluate at least 1 token for each active slot (n_past = 9, task.n_tokens() = 9)", none},
		{"0.00.300.000 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 262144, kv_unified = 'true'",
			LogEvent{Kind: LogStartup, Timed: true, Time: 300 * ms, Level: 'I', Slot: -1, Task: -1, Slots: 4, Context: 262144, KVUnified: true}},
		{"srv          init: initializing slots, n_slots = 2", LogEvent{Kind: LogStartup, Slot: -1, Task: -1, Slots: 2}},
		{"0.10.000.000 E srv    send_error: task id = 12, error: Context size has been exceeded.",
			LogEvent{Kind: LogContext, Timed: true, Time: 10 * time.Second, Level: 'E', Slot: -1, Task: 12}},
		{"0.10.000.000 E srv    send_error: task id = 12, error: Compute error.",
			LogEvent{Kind: LogError, Timed: true, Time: 10 * time.Second, Level: 'E', Slot: -1, Task: 12}},
		{"srv  llama_server: initializing ...", none},
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
		{"load_tensors: offloaded 7/33 layers to GPU", LogEvent{Kind: LogOffload, Slot: -1, Task: -1, Offloaded: 7, Layers: 33}},
		{"0.00.100.000 I llm_load_tensors: offloaded 33/33 layers to GPU", LogEvent{Kind: LogOffload, Timed: true, Time: 100 * ms, Level: 'I', Slot: -1, Task: -1, Offloaded: 33, Layers: 33}},
		{"llama_prepare_model_devices: using device CUDA0 (NVIDIA H200) (0000:0b:00.0) - 143167 MiB free", LogEvent{Kind: LogUsing, Slot: -1, Task: -1, Device: "CUDA0"}},
		{"0.00.007.285 I load_backend: loaded CPU backend from /x/libggml-cpu-haswell.so", LogEvent{Kind: LogBackend, Timed: true, Time: 7*ms + 285*time.Microsecond, Level: 'I', Slot: -1, Task: -1, Device: "CPU"}},
		{"load_backend: failed to find ggml_backend_init in /x/libggml-cuda.so", LogEvent{Kind: LogMissing, Slot: -1, Task: -1}},
		{"warning: no usable GPU found, --gpu-layers option will be ignored", LogEvent{Kind: LogNoGPU, Slot: -1, Task: -1}},
		{`0.01.000.000 D que    post: prompt: "load_tensors: offloaded 7/33 layers to GPU"`, none},
		{`{"level":"INFO","msg":"slot is processing task","slot_id":1,"task_id":6}`, LogEvent{Kind: LogLaunch, Level: 'I', Slot: 1, Task: 6}},
		{`{"level":"INFO","msg":"slot released","id_slot":1,"id_task":6,"n_past":39,"truncated":true}`,
			LogEvent{Kind: LogRelease, Level: 'I', Slot: 1, Task: 6, Tokens: 39, Truncated: true}},
		{`{"level":"INFO","msg":"generation eval time =   18433.79 ms /   224 runs   (  267.16 ms per token)","slot_id":0,"task_id":0}`,
			LogEvent{Kind: LogTiming, Level: 'I', Phase: PhaseEval, MS: 18433.79, Tokens: 224}},
		{`{"level":"INFO","msg":"          total time =   27103.62 ms","slot_id":0,"task_id":0}`, LogEvent{Kind: LogTiming, Level: 'I', Phase: PhaseTotal, MS: 27103.62}},
		{`{"level":"INFO","msg":"initializing slots","n_slots":2}`, LogEvent{Kind: LogStartup, Level: 'I', Slot: -1, Task: -1, Slots: 2}},
		{`{"level":"INFO","msg":"all slots are idle"}`, LogEvent{Kind: LogIdle, Level: 'I', Slot: -1, Task: -1}},
		{"\x1b[0m0.01.000.000 \x1b[1;32mI \x1b[0mslot launch_slot_: id  0 | task 0 | processing task\x1b[0m\r\n",
			LogEvent{Kind: LogLaunch, Timed: true, Time: time.Second, Level: 'I'}},
		{"[41001] ", none},
		{"{", none},
		{"0.01.000.000 I srv    load_model: loading model '/models/HSA_STATUS_ERROR.gguf'", none},
		{"0.01.000.000 T srv    load_model: Queue error", none},
		{"0.35.5x6.614 I slot launch_slot_: id 2 | task 218 | processing task", none},
		{"0.35.546.61", none},
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
		"log-shapes/a-2024.log":        "launch 0/7, prompt 0/7, release 0/7, timing -1/-1, timing -1/-1, timing -1/-1, idle -1/-1, http -1/-1",
		"log-shapes/b-2026.log":        "selected 3/-1, launch 3/0, progress 3/0, timing 3/0, progress 3/0, timing 3/0, release 3/0, launch 0/9, release 0/9",
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

package incident

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/systemd"
)

const testUnit = "llm.service"

var reTestLine = regexp.MustCompile(`^(\d\d:\d\d:\d\d(?:\.\d+)?) ([\w-]+)(?:\[(\d+)\])? (.*)$`)

// entriesOf reads a short form of a journal: "07:45:12.1 1bit[2133] text" a line, "== invocation boot" before the lines
// of a run. What systemd says gets the ids and fields that it has today, or in the older form none.
func entriesOf(t *testing.T, text string, older bool) []systemd.Entry {
	t.Helper()
	var entries []systemd.Entry
	invocation, boot := "", "boot-1"
	day := "2026-10-23T"
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.TrimLeft(line, "\t")
		if rest, ok := strings.CutPrefix(line, "== "); ok {
			words := strings.Fields(rest)
			invocation = words[0]
			if len(words) > 1 {
				boot = words[1]
			}
			if len(words) > 2 {
				day = words[2] + "T"
			}
			continue
		}
		f := reTestLine.FindStringSubmatch(line)
		if f == nil {
			t.Fatalf("no line of a journal: %q", line)
		}
		at, err := time.Parse(time.RFC3339Nano, day+f[1]+"Z")
		if err != nil {
			t.Fatal(err)
		}
		message := f[4]
		if q, err := strconv.Unquote(message); err == nil {
			message = q
		}
		e := systemd.Entry{At: at, Boot: boot, Message: message, Unit: testUnit, Invocation: invocation, Identifier: f[2], PID: atoi(f[3]),
			Cursor: fmt.Sprint(len(entries)), Fields: map[string]string{}}
		if older {
			e.Invocation = ""
		} else if f[2] == "systemd" {
			identify(&e)
		}
		entries = append(entries, e)
	}
	return entries
}

func identify(e *systemd.Entry) {
	s := strings.TrimPrefix(e.Message, testUnit+": ")
	field := func(id, key, pattern string) bool {
		m := regexp.MustCompile(pattern).FindStringSubmatch(s)
		if m == nil {
			return false
		}
		if e.ID = id; key != "" {
			e.Fields[key] = m[1]
		}
		return true
	}
	if m := regexp.MustCompile(`^Main process exited, code=(\w+), status=(\d+)`).FindStringSubmatch(s); m != nil {
		e.ID, e.Fields["EXIT_CODE"], e.Fields["EXIT_STATUS"] = systemd.IDProcessExited, m[1], m[2]
	}
	_ = field(systemd.IDUnitStarted, "", `^Started `) || field(systemd.IDUnitStarting, "", `^Starting `) || field(systemd.IDUnitStopping, "", `^Stopping `) ||
		field(systemd.IDUnitStopped, "", `^Stopped `) || field(systemd.IDUnitSucceeded, "", `^Deactivated `) ||
		field(systemd.IDFailureResult, "UNIT_RESULT", `result '([\w-]+)'`) || field(systemd.IDRestartScheduled, "N_RESTARTS", `counter is at (\d+)`) ||
		field(systemd.IDOOM, "", `killed by the OOM killer`) || field(systemd.IDOOMD, "", `^systemd-oomd killed`)
}

// wanted is what a case expects of the report.
type wanted struct {
	at, code, signal, result, cause, signature string
	status                                     int // -1: none
	counter                                    int // -1: none
	gaveUp                                     string
	guards, others                             int
}

const serverStart = `
	10:00:00.0 systemd Started llm.service - a model.
	10:00:01.0 1bit[20] 0.00.900.000 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'true'
	10:00:01.1 1bit[20] 0.01.000.000 I main: server is listening on http://127.0.0.1:8095
	10:00:02.0 1bit[20] 0.01.900.000 I slot get_availabl: id  1 | task -1 | selected slot by LRU, t_last = -1
	10:00:02.0 1bit[20] 0.01.900.000 I slot launch_slot_: id  1 | task 0 | processing task, is_child = 0`

func TestEndings(t *testing.T) {
	gib := int64(64 << 20)
	cases := map[string]struct {
		journal string
		change  func(*Evidence)
		want    *wanted // nil: no bad end
		text    []string
	}{
		"a crash with a core dump": {
			journal: "== a" + serverStart + `
				10:00:05.0 systemd-coredump[33] "Process 20 (llama-server) of user 1000 dumped core.\n\nStack trace of thread 20:\n#0  0x00007f00 n/a (libc.so.6 + 0x1)\n#1  0x000055 ggml_compute_forward (libggml.so + 0x2)\n#2  0x000055 _ZN12server_queue10start_loopEv (llama-server + 0x3)"
				10:00:05.1 systemd llm.service: Main process exited, code=dumped, status=11/SEGV
				10:00:05.1 systemd llm.service: Failed with result 'core-dump'.
				10:00:15.1 systemd llm.service: Scheduled restart job, restart counter is at 3.
				== b
				10:00:15.2 systemd Started llm.service - a model.
				10:00:16.0 1bit[50] 0.00.156.670 I srv  llama_server: listening on http://127.0.0.1:41047`,
			want: &wanted{at: "10:00:05.1", code: "dumped", signal: "SIGSEGV", result: "core-dump", cause: "a crash (SIGSEGV)", signature: "sigsegv ggml_compute_forward", status: -1, counter: 3},
			text: []string{"dumped by SIGSEGV", "`ggml_compute_forward <- server_queue::start_loop`", "restart counter 3", "ready 10:00:16"},
		},
		"a guard of the first version, and SIGABRT": {
			journal: "== a" + serverStart + `
				10:00:05.0 1bit[20] 0.04.900.000 E common_sampler_sample: HRX returned NaN logits at vocab index 77
				10:00:05.0 1bit[20] /src/common/sampling.cpp:600: HRX: NaN logits
				10:00:05.1 systemd llm.service: Main process exited, code=killed, status=6/ABRT
				10:00:05.1 systemd llm.service: Failed with result 'signal'.`,
			want: &wanted{at: "10:00:05", code: "killed", signal: "SIGABRT", result: "signal", cause: "the engine's NaN guard stopped it", signature: "nan-abort one-index never-used-slot common_sampler_sample", status: -1, counter: -1, guards: 1},
			text: []string{"NaN logits, the first at index 77", "on slot 1, task 0"},
		},
		"the kernel's OOM killer": {
			journal: "== a" + serverStart + `
				10:00:05.1 systemd llm.service: A process of this unit has been killed by the OOM killer.
				10:00:05.2 systemd llm.service: Main process exited, code=killed, status=9/KILL
				10:00:05.2 systemd llm.service: Failed with result 'oom-kill'.
				10:00:06.2 systemd llm.service: Scheduled restart job, restart counter is at 1.`,
			change: func(e *Evidence) {
				e.State.MemoryMax = &gib
				e.OOM = []OOMKill{{At: e.Entries[0].At.Add(5 * time.Second), PID: 20, Process: "llama-server", Group: "/user.slice/llm.service", Task: "/user.slice/llm.service",
					Text: "Memory cgroup out of memory: Killed process 20 (llama-server) total-vm:1kB"}}
			},
			want: &wanted{at: "10:00:05.2", code: "killed", signal: "SIGKILL", result: "oom-kill", cause: "the kernel's OOM killer (MemoryMax=64M)", signature: "oom-kill kernel", status: -1, counter: 1},
			text: []string{"**this service's**", "oom-kill"},
		},
		"systemd-oomd": {
			journal: "== a" + serverStart + `
				10:00:05.1 systemd llm.service: systemd-oomd killed 3 process(es) in this unit.
				10:00:05.2 systemd llm.service: Main process exited, code=killed, status=9/KILL
				10:00:05.2 systemd llm.service: Failed with result 'oom-kill'.`,
			want: &wanted{at: "10:00:05.2", code: "killed", signal: "SIGKILL", result: "oom-kill", cause: "systemd-oomd, which ends what presses on memory", signature: "oom-kill systemd-oomd", status: -1, counter: -1},
		},
		"the whole host out of memory": {
			journal: "== a" + serverStart + `
				10:00:05.2 systemd llm.service: Main process exited, code=killed, status=9/KILL
				10:00:05.2 systemd llm.service: Failed with result 'signal'.`,
			change: func(e *Evidence) {
				e.OOM = []OOMKill{{PID: 20, Process: "llama-server", Text: "Out of memory: Killed process 20 (llama-server)"}}
			},
			want: &wanted{at: "10:00:05.2", code: "killed", signal: "SIGKILL", result: "signal", cause: "the kernel's OOM killer (the whole host was short of memory)", signature: "oom-kill kernel", status: -1, counter: -1},
		},
		"the start limit": {
			journal: `== a
				10:00:00.0 systemd Started llm.service - a model.
				10:00:00.1 1bit[20] 0.00.010.000 E main: failed to load the model
				10:00:00.2 systemd llm.service: Main process exited, code=exited, status=1/FAILURE
				10:00:00.2 systemd llm.service: Failed with result 'exit-code'.
				10:00:00.3 systemd llm.service: Scheduled restart job, restart counter is at 1.
				== b
				10:00:00.4 systemd Started llm.service - a model.
				10:00:00.5 systemd llm.service: Main process exited, code=exited, status=1/FAILURE
				10:00:00.5 systemd llm.service: Failed with result 'exit-code'.
				10:00:00.6 systemd llm.service: Scheduled restart job, restart counter is at 2.
				10:00:00.6 systemd Stopped llm.service - a model.
				10:00:00.7 systemd llm.service: Start request repeated too quickly.
				10:00:00.7 systemd llm.service: Failed with result 'exit-code'.
				10:00:00.7 systemd Failed to start llm.service - a model.`,
			want: &wanted{at: "10:00:00.5", code: "exited", result: "start-limit-hit", status: 1, counter: 2, gaveUp: "start limit hit", others: 1, signature: "start-limit exit-1",
				cause: "exit status 1; then systemd gave up, since it had been started too often (start limit)"},
			text: []string{"systemd gave up: start limit hit", "1 other bad end of this unit"},
		},
		"a stop that was asked for": {
			journal: "== a" + serverStart + `
				10:00:05.1 systemd Stopping llm.service - a model...
				10:00:05.2 systemd llm.service: Deactivated successfully.
				10:00:05.2 systemd Stopped llm.service - a model.`,
			text: []string{"no bad end", "has not ended badly"},
		},
		"a restart that was asked for, of a server that ends with a signal": {
			journal: "== a" + serverStart + `
				10:00:05.1 systemd Stopping llm.service - a model...
				10:00:05.2 systemd llm.service: Main process exited, code=killed, status=15/TERM
				10:00:05.2 systemd Stopped llm.service - a model.
				== b
				10:00:05.3 systemd Started llm.service - a model.`,
		},
		"a crash while it stops": {
			journal: "== a" + serverStart + `
				10:00:05.1 systemd Stopping llm.service - a model...
				10:00:05.2 systemd llm.service: Main process exited, code=dumped, status=11/SEGV
				10:00:05.2 systemd llm.service: Failed with result 'core-dump'.
				10:00:05.2 systemd Stopped llm.service - a model.`,
			want: &wanted{at: "10:00:05.2", code: "dumped", signal: "SIGSEGV", result: "core-dump", cause: "a crash (SIGSEGV); a stop had been asked for", signature: "sigsegv", status: -1, counter: -1},
		},
		"a stop that took too long": {
			journal: "== a" + serverStart + `
				10:00:05.1 systemd Stopping llm.service - a model...
				10:01:35.1 systemd llm.service: State 'stop-sigterm' timed out. Killing.
				10:01:35.2 systemd llm.service: Killing process 20 (llama-server) with signal SIGKILL.
				10:01:35.3 systemd llm.service: Main process exited, code=killed, status=9/KILL
				10:01:35.3 systemd llm.service: Failed with result 'timeout'.`,
			want: &wanted{at: "10:01:35.3", code: "killed", signal: "SIGKILL", result: "timeout", signature: "stop-timeout", status: -1, counter: -1,
				cause: "a timeout of its stop: it did not end in time and was killed (TimeoutStopSec=); a stop had been asked for"},
		},
		"a start that took too long": {
			journal: `== a
				10:00:00.0 systemd Starting llm.service - a model...
				10:01:30.0 systemd llm.service: start operation timed out. Terminating.
				10:01:30.1 systemd llm.service: Failed with result 'timeout'.
				10:01:30.1 systemd Failed to start llm.service - a model.`,
			want: &wanted{at: "10:01:30.1", result: "timeout", signature: "start-timeout", status: -1, counter: -1,
				cause: "a timeout of its start: the service was not ready in time (TimeoutStartSec=)"},
		},
		"the watchdog": {
			journal: "== a" + serverStart + `
				10:00:35.1 systemd llm.service: Watchdog timeout (limit 30s)!
				10:00:35.1 systemd llm.service: Killing process 20 (llama-server) with signal SIGABRT.
				10:00:35.2 systemd llm.service: Main process exited, code=killed, status=6/ABRT
				10:00:35.2 systemd llm.service: Failed with result 'watchdog'.`,
			want: &wanted{at: "10:00:35.2", code: "killed", signal: "SIGABRT", result: "watchdog", signature: "watchdog", status: -1, counter: -1,
				cause: "systemd's watchdog: the service did not say in time that it is alive"},
		},
		"SIGKILL from somebody": {
			journal: "== a" + serverStart + `
				10:00:05.2 systemd llm.service: Main process exited, code=killed, status=9/KILL
				10:00:05.2 systemd llm.service: Failed with result 'signal'.`,
			want: &wanted{at: "10:00:05.2", code: "killed", signal: "SIGKILL", result: "signal", signature: "sigkill", status: -1, counter: -1,
				cause: "SIGKILL from somebody: neither systemd nor the OOM killer says it was theirs"},
		},
		"systemctl kill": {
			journal: "== a" + serverStart + `
				10:00:05.1 systemd llm.service: Sent signal SIGKILL to main process 20 (llama-server) on client request.
				10:00:05.2 systemd llm.service: Main process exited, code=killed, status=9/KILL
				10:00:05.2 systemd llm.service: Failed with result 'signal'.`,
			want: &wanted{at: "10:00:05.2", code: "killed", signal: "SIGKILL", result: "signal", signature: "sigkill", status: -1, counter: -1,
				cause: "SIGKILL on request of a client of systemd's (systemctl kill)"},
		},
		"SIGTERM from somebody": {
			journal: "== a" + serverStart + `
				10:00:05.2 systemd llm.service: Deactivated successfully.
				10:00:15.2 systemd llm.service: Scheduled restart job, restart counter is at 1.
				== b
				10:00:15.3 systemd Started llm.service - a model.`,
			want: &wanted{at: "10:00:05.2", result: "success", signature: "result-success", status: -1, counter: 1,
				cause: "its own end, which systemd calls a success: exit status 0, or a SIGTERM, SIGINT, SIGHUP or SIGPIPE that systemd did not send"},
		},
		"a program that is not there": {
			journal: `== a
				10:00:00.0 systemd Started llm.service - a model.
				10:00:00.0 systemd llm.service: Main process exited, code=exited, status=203/EXEC
				10:00:00.0 systemd llm.service: Failed with result 'exit-code'.`,
			want: &wanted{at: "10:00:00", code: "exited", result: "exit-code", status: 203, counter: -1, signature: "exit-203",
				cause: "its program could not be started (203/EXEC): the file is missing or cannot be executed"},
		},
		"power loss": {
			journal: "== a boot-1" + serverStart + `
				== b boot-2 2026-10-24
				08:00:00.0 systemd Started llm.service - a model.`,
			want: &wanted{at: "10:00:02", signature: "host-down", status: -1, counter: -1,
				cause: "the host went down under it: power loss, a reset, or a shutdown that the journal did not keep"},
			text: []string{"the host went down under it", "Slot 1 was at task 0"},
		},
		"a shutdown": {
			journal: "== a boot-1" + serverStart + `
				10:00:05.1 systemd Stopping llm.service - a model...
				== b boot-2 2026-10-24
				08:00:00.0 systemd Started llm.service - a model.`,
		},
		"two deaths": {
			journal: "== a" + serverStart + `
				10:00:05.0 1bit[20] /src/ggml.c:99: GGML_ASSERT(a == b) failed
				10:00:05.1 systemd llm.service: Main process exited, code=killed, status=6/ABRT
				10:00:05.1 systemd llm.service: Failed with result 'signal'.
				10:00:15.1 systemd llm.service: Scheduled restart job, restart counter is at 1.
				== b
				10:00:15.2 systemd Started llm.service - a model.
				10:00:20.1 systemd llm.service: Main process exited, code=killed, status=11/SEGV
				10:00:20.1 systemd llm.service: Failed with result 'signal'.
				10:00:30.1 systemd llm.service: Scheduled restart job, restart counter is at 2.
				== c
				10:00:30.2 systemd Started llm.service - a model.`,
			want: &wanted{at: "10:00:20.1", code: "killed", signal: "SIGSEGV", result: "signal", cause: "a crash (SIGSEGV)", signature: "sigsegv", status: -1, counter: 2, others: 1},
			text: []string{"the engine gave up"},
		},
		"an assertion": {
			journal: "== a" + serverStart + `
				10:00:05.0 1bit[20] /src/ggml.c:99: GGML_ASSERT(a == b) failed
				10:00:05.1 systemd llm.service: Main process exited, code=killed, status=6/ABRT
				10:00:05.1 systemd llm.service: Failed with result 'signal'.
				10:00:05.0 1bit[20] /lib/x.so(ggml_abort+0x1) [0x7f]
				10:00:05.0 1bit[20] /bin/x(_Z3fooi+0x1) [0x7f]`,
			want: &wanted{at: "10:00:05", code: "killed", signal: "SIGABRT", result: "signal", cause: "the engine gave up", signature: "abort ggml.c foo", status: -1, counter: -1},
		},
		"the server dies under a front end": {
			journal: "== a" + serverStart + `
				10:00:05.0 1bit[20] 0.04.900.000 E common_sampler_sample: HRX returned NaN logits: count=5 of 9, index range [1..8], contiguous=no, continuing=no (engine#315)
				10:00:05.0 1bit[20] /src/common/sampling.cpp:600: HRX: NaN logits
				10:00:06.0 1bit[10] 1bit serve: GTT 90.0 of 120.0 GiB free, MemAvailable 80.5 GiB
				10:00:07.0 1bit[44] 0.00.900.000 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'true'
				10:00:07.1 1bit[44] 0.01.000.000 I main: server is listening on http://127.0.0.1:8095`,
			want: &wanted{at: "10:00:05", status: -1, counter: -1, guards: 1, signature: "server-died nan-abort some-logits never-used-slot common_sampler_sample",
				cause: "the server (pid 20) ended: stopped by the engine's NaN guard; the main process went on and started another (pid 44), from what it was itself started with; systemd's restart counter did not move"},
			text: []string{"GTT 90.0 of 120.0 GiB free, MemAvailable 80.5 GiB", "5 of 9 logits are NaN, index range 1 to 8, not contiguous"},
		},
		"kill -9 of the server under a front end": {
			journal: "== a" + serverStart + `
				10:00:07.0 1bit[44] 0.00.900.000 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'true'`,
			want: &wanted{at: "10:00:02", status: -1, counter: -1, signature: "server-died silent",
				cause: "the server (pid 20) ended: without a word of why, as after a signal; the main process went on and started another (pid 44), from what it was itself started with; systemd's restart counter did not move"},
		},
		"a guard that goes on": {
			journal: "== a" + serverStart + `
				10:00:05.0 1bit[20] 0.04.900.000 E common_sampler_sample: HRX returned NaN logits: count=9 of 9, index range [0..8], contiguous=yes, continuing=yes (engine#315)
				10:00:06.0 1bit[20] 0.05.900.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 20, truncated = 0`,
			text: []string{"has not ended badly, but its NaN guard spoke 1 time", "NaN in all 9 logits on a never-used slot (slot 1, task 0)"},
		},
		"a crash after a prompt that holds a stack": {
			journal: "== a" + serverStart + `
				10:00:04.0 1bit[20] /src/ggml.c:99: GGML_ASSERT(a == b) failed
				10:00:04.0 1bit[20] #0  0x00007f8b in evil () from /x
				10:00:04.5 1bit[20] 0.04.400.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 20, truncated = 0
				10:00:05.1 systemd llm.service: Main process exited, code=killed, status=11/SEGV
				10:00:05.1 systemd llm.service: Failed with result 'signal'.`,
			want: &wanted{at: "10:00:05.1", code: "killed", signal: "SIGSEGV", result: "signal", cause: "a crash (SIGSEGV)", signature: "sigsegv", status: -1, counter: -1},
			text: []string{"there is no backtrace in the log"},
		},
		"a model that is not there": {
			journal: `== a
				10:00:00.0 systemd Started llm.service - a model.
				10:00:00.1 1bit[20] 0.00.100.000 E gguf_init_from_file: failed to open GGUF file '/m.gguf' (No such file or directory)
				10:00:00.1 1bit[20] 0.00.100.100 E srv  llama_server: exiting due to model loading error
				10:00:00.2 systemd llm.service: Main process exited, code=exited, status=1/FAILURE
				10:00:00.2 systemd llm.service: Failed with result 'exit-code'.`,
			want: &wanted{at: "10:00:00.2", code: "exited", result: "exit-code", status: 1, counter: -1, signature: "exit-1", cause: "exit status 1"},
			text: []string{"# llm.service: ended with exit status 1\n", "1 of the last in its log:** `0.00.100.000 E gguf_init_from_file: failed to open", "2 of the last in its log:**"},
		},
		"lines after the end, and of the run before among the next": {
			journal: "== a" + serverStart + `
				10:00:05.1 systemd llm.service: Main process exited, code=exited, status=1/FAILURE
				10:00:05.1 systemd llm.service: Failed with result 'exit-code'.
				10:00:05.2 1bit[20] 0.02.000.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 20, truncated = 0
				10:00:05.3 systemd llm.service: Scheduled restart job, restart counter is at 1.`,
			want: &wanted{at: "10:00:05.1", code: "exited", result: "exit-code", status: 1, counter: 1, signature: "exit-1", cause: "exit status 1"},
		},
	}
	for name, c := range cases {
		for _, older := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/older=%v", name, older), func(t *testing.T) {
				e := &Evidence{Unit: testUnit, Host: "box", Entries: entriesOf(t, c.journal, older)}
				if c.change != nil {
					c.change(e)
				}
				r := Analyse(e)
				checkWanted(t, r, c.want)
				text := r.Markdown()
				for _, s := range c.text {
					if !strings.Contains(text, s) {
						t.Errorf("the report does not say %q:\n%s", s, text)
					}
				}
			})
		}
	}
}

// Ends before the time that was asked for do not count, and where the evidence is about one, later ones are not it.
func TestWhichEnd(t *testing.T) {
	e := &Evidence{Unit: testUnit, Entries: entriesOf(t, "== a"+serverStart+`
		10:00:05.1 systemd llm.service: Main process exited, code=killed, status=6/ABRT
		== b
		10:10:00.0 systemd Started llm.service - a model.
		10:10:05.1 systemd llm.service: Main process exited, code=killed, status=11/SEGV
		== c
		10:20:00.0 systemd Started llm.service - a model.`, false)}
	first := e.Entries[0].At
	at := first.Add(6 * time.Second)
	for name, c := range map[string]struct {
		ended     *time.Time
		notBefore time.Time
		signal    string
		others    int
	}{
		"the last":                {nil, time.Time{}, "SIGSEGV", 1},
		"of a part":               {nil, first.Add(5 * time.Minute), "SIGSEGV", 1},
		"the one that was looked": {&at, time.Time{}, "SIGABRT", 1},
		"none in that time":       {nil, first.Add(15 * time.Minute), "", 2},
	} {
		e.Ended, e.NotBefore = c.ended, c.notBefore
		r := Analyse(e)
		signal := ""
		if r.Ending != nil {
			signal = r.Ending.Signal
		}
		if signal != c.signal || len(r.Others) != c.others {
			t.Errorf("%s: %s and %d others", name, signal, len(r.Others))
		}
	}
}

func checkWanted(t *testing.T, r *Report, want *wanted) {
	t.Helper()
	if want == nil {
		if r.Ending != nil {
			t.Fatalf("it ended badly: %+v", *r.Ending)
		}
		return
	}
	if r.Ending == nil {
		t.Fatal("no bad end was found")
	}
	got := wanted{at: r.Ending.At.Format("15:04:05.999"), code: r.Ending.Code, signal: r.Ending.Signal, result: r.Ending.Result, cause: r.Ending.Cause,
		signature: r.Signature, status: -1, counter: -1, guards: len(r.Guard), others: len(r.Others)}
	if r.Ending.Status != nil {
		got.status = *r.Ending.Status
	}
	if r.Restart != nil {
		got.gaveUp = r.Restart.GaveUp
		if r.Restart.Counter != nil {
			got.counter = *r.Restart.Counter
		}
	}
	if diff := cmp.Diff(*want, got, cmp.AllowUnexported(wanted{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

package incident

import (
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// frontStart is serverStart under a front end that says nothing.
var frontStart = strings.ReplaceAll(serverStart, "1bit[20]", "llama-server[21]")

// What systemd, the kernel or a log say decides an end only where it fits how and when the main process ended.
func TestEndingsThatFit(t *testing.T) {
	const aborts = `
		10:00:04.0 1bit[20] /src/ggml/src/ggml-hrx.cpp:123: GGML_ASSERT(x) failed
		10:00:04.0 1bit[20] #0  0x00007f00 in evil_function () from /x`
	for name, c := range map[string]struct {
		journal          string
		cause, signature string // "" and "": no bad end
		at               string
		others           int
		text             []string
	}{
		"the OOM killer and a child": {journal: "== a" + frontStart + `
				10:00:07.0 systemd llm.service: A process of this unit has been killed by the OOM killer.
				10:00:08.0 llama-server[40] 0.00.900.000 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'true'
				10:30:09.0 llama-server[40] 0.01.900.000 I slot launch_slot_: id  0 | task 0 | processing task, is_child = 0`,
			cause: "the server (pid 21) ended: killed by the kernel's OOM killer", signature: "server-died oom-kill kernel", at: "10:00:07"},
		"an old kill of a helper, and a crash": {journal: "== a" + serverStart + `
				10:30:00.0 systemd llm.service: A process of this unit has been killed by the OOM killer.
				15:00:00.0 systemd llm.service: Main process exited, code=dumped, status=11/SEGV
				15:00:00.0 systemd llm.service: Failed with result 'core-dump'.`,
			cause: "a crash (SIGSEGV)", signature: "sigsegv", at: "15:00:00", others: 1},
		"an old core dump of a helper": {journal: "== a" + serverStart + `
				10:30:00.0 systemd-coredump[33] "Process 50 (helper) of user 1000 dumped core.\n\nStack trace of thread 50:\n#1  0x000055 helper_main (x + 0x2)"
				15:00:00.0 systemd llm.service: Main process exited, code=exited, status=1/FAILURE
				15:00:00.0 systemd llm.service: Failed with result 'exit-code'.`,
			cause: "exit status 1", signature: "exit-1", at: "15:00:00", others: 1, text: []string{"process 50 of the unit dumped core"}},
		"a core dump of the server, and its front end exits": {journal: "== a" + frontStart + `
				10:00:09.0 systemd-coredump[33] "Process 21 (llama-server) of user 1000 dumped core.\n\nStack trace of thread 21:\n#1  0x000055 run (x + 0x2)"
				10:00:10.0 systemd llm.service: Main process exited, code=exited, status=1/FAILURE`,
			cause: "exit status 1, after process 21 had crashed", signature: "exit-1 run", at: "10:00:10"},
		"a crash, and a timeout of ExecStopPost=": {journal: "== a" + serverStart + `
				10:01:00.0 systemd llm.service: Main process exited, code=killed, status=11/SEGV
				10:01:30.0 systemd llm.service: State 'stop-post' timed out. Terminating.
				10:01:30.1 systemd llm.service: Failed with result 'signal'.`,
			cause: "a crash (SIGSEGV)", signature: "sigsegv", at: "10:01:00"},
		"RuntimeMaxSec=": {journal: "== a" + serverStart + `
				10:01:00.0 systemd llm.service: Service reached runtime time limit. Stopping.
				10:01:00.1 systemd llm.service: Main process exited, code=killed, status=15/TERM
				10:01:00.1 systemd llm.service: Failed with result 'timeout'.`,
			cause: "its own time limit", signature: "runtime-limit", at: "10:01:00.1", text: []string{"ended by its own time limit", "RuntimeMaxSec="}},
		"ExecStartPre= fails": {journal: `== a
				10:00:00.0 systemd Starting llm.service - a model...
				10:00:05.0 systemd llm.service: Control process exited, code=exited, status=3/NOTIMPLEMENTED
				10:00:05.0 systemd llm.service: Failed with result 'exit-code'.`,
			cause: "one of its other commands (ExecStartPre=, ExecStartPost=, ExecStop= or ExecStopPost=) failed with exit status 3", signature: "control exit-3", at: "10:00:05"},
		"ExecStartPost= fails, and systemd ends the main process": {journal: "== a" + serverStart + `
				10:00:05.0 systemd llm.service: Control process exited, code=killed, status=9/KILL
				10:00:05.1 systemd llm.service: Main process exited, code=killed, status=15/TERM
				10:00:05.1 systemd llm.service: Failed with result 'signal'.`,
			cause: "ExecStopPost=) ended by SIGKILL", signature: "control sigkill", at: "10:00:05.1"},
		"a real-time signal": {journal: "== a" + serverStart + `
				10:00:05.0 systemd llm.service: Main process exited, code=killed, status=40/RTMIN+6`,
			cause: "a crash (SIGRTMIN+6)", signature: "sigrtmin+6", at: "10:00:05"},
		"no file of variables": {journal: `== a
				10:00:00.0 systemd llm.service: Failed to load environment files: No such file or directory
				10:00:00.0 systemd llm.service: Failed to run 'start' task: No such file or directory
				10:00:00.0 systemd llm.service: Failed with result 'resources'.`,
			cause: "systemd, which could not start it: Failed to load environment files: No such file or directory", signature: "result-resources", at: "10:00:00"},
		"a unit that it needs": {journal: `== a
				10:00:00.0 systemd Dependency failed for llm.service - a model.
				10:00:00.0 systemd llm.service: Job llm.service/start failed with result 'dependency'.`,
			cause: "a unit that it needs, which did not start", signature: "result-dependency", at: "10:00:00"},
		"not ready": {journal: `== a
				10:00:00.0 systemd Starting llm.service - a model...
				10:00:01.0 systemd llm.service: Failed with result 'protocol'.`,
			cause: "an end before it had said that it is ready", signature: "result-protocol", at: "10:00:01"},
		"systemctl kill -s ABRT": {journal: "== a" + serverStart + `
				10:00:05.0 systemd llm.service: Sent signal SIGABRT to main process 20 (llama-server) on client request.
				10:00:05.1 systemd llm.service: Main process exited, code=killed, status=6/ABRT`,
			cause: "SIGABRT on request of a client", signature: "sigabrt", at: "10:00:05.1"},
		"an assertion in a prompt, and SIGKILL": {journal: "== a" + serverStart + aborts + `
				10:00:09.0 systemd llm.service: Main process exited, code=killed, status=9/KILL`,
			cause: "SIGKILL from somebody", signature: "sigkill", at: "10:00:09"},
		"an assertion in a prompt, and a crash": {journal: "== a" + serverStart + aborts + `
				10:00:09.0 systemd llm.service: Main process exited, code=killed, status=11/SEGV`,
			cause: "a crash (SIGSEGV)", signature: "sigsegv", at: "10:00:09"},
		"an assertion in a prompt, and 137": {journal: "== a" + serverStart + aborts + `
				10:00:09.0 systemd llm.service: Main process exited, code=exited, status=137/n/a`,
			cause: "exit status 137, as of a server that ended by SIGKILL", signature: "exit-137", at: "10:00:09"},
		"two servers, one of which dies early": {journal: "== a" + serverStart + strings.ReplaceAll(strings.TrimPrefix(frontStart, "\n\t10:00:00.0 systemd Started llm.service - a model."), "[21]", "[22]") + `
				10:00:05.0 llama-server[22] 0.04.900.000 E common_sampler_sample: HRX returned NaN logits: count=9 of 9, index range [0..8], contiguous=yes, continuing=no
				10:00:05.0 llama-server[22] /src/common/sampling.cpp:432: NaN logits
				10:00:06.0 1bit[20] 0.05.900.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 262, truncated = 0
				11:00:30.0 1bit[20] 59.29.900.000 I slot launch_slot_: id  0 | task 9 | processing task, is_child = 0
				12:00:00.0 systemd llm.service: Main process exited, code=exited, status=1/FAILURE`,
			cause: "exit status 1", signature: "exit-1", at: "12:00:00", others: 1, text: []string{"the server (pid 22) ended: stopped by the engine's NaN guard"}},
		"an idle server": {journal: "== a" + frontStart + `
				10:00:03.0 llama-server[21] 0.02.900.000 I slot      release: id  1 | task 0 | stop processing: n_tokens = 262, truncated = 0
				17:45:13.0 llama-server[40] 0.00.900.000 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'true'`,
			cause: "the server (pid 21) ended: without a word of why", signature: "server-died silent", at: "10:00:03",
			text: []string{"ended between 2026-10-23 10:00:03Z, its last sign of life, and 2026-10-23 17:45:13Z", "after at least 2.0 s"}},
		"a front end that says how its server died": {journal: "== a" + frontStart + `
				10:05:03.0 1bit[20] 1bit: llama-server was killed by signal 11; starting it again
				10:05:04.0 llama-server[40] 0.00.900.000 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'true'`,
			cause: "the server (pid 21) ended: by SIGSEGV, as another process of the unit wrote", signature: "server-died sigsegv", at: "10:05:03",
			text: []string{`# llm.service: its server ended and the main process went on (SIGSEGV)`}},
		"an idle server and power loss": {journal: "== a boot-1" + serverStart + `
				== b boot-2
				20:05:00.0 systemd Started llm.service - a model.`,
			cause: hostDown, signature: "host-down", at: "10:00:02", text: []string{"between 2026-10-23 10:00:02Z, its last sign of life, and 2026-10-23 20:05:00Z"}},
		"the guard, then power loss": {journal: "== a boot-1" + serverStart + `
				10:00:05.0 1bit[20] 0.04.900.000 E common_sampler_sample: HRX returned NaN logits: count=9 of 9, index range [0..8], contiguous=yes, continuing=no
				== b boot-2
				20:05:00.0 systemd Started llm.service - a model.`,
			cause:     "the engine's NaN guard stopped it; how its process ended is not told, for the host went down",
			signature: "nan-abort whole-vocabulary never-used-slot common_sampler_sample", at: "10:00:05"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Analyse(&Evidence{Unit: testUnit, Entries: entriesOf(t, c.journal, false)})
			d := r.Ending
			if d == nil {
				t.Fatal("no bad end")
			}
			if !strings.Contains(d.Cause, c.cause) || r.Signature != c.signature || d.At.Format("15:04:05.999") != c.at || len(r.Others) != c.others {
				t.Errorf("%s at %s, %q, others %+v", d.Cause, d.At.Format("15:04:05.999"), r.Signature, r.Others)
			}
			text := r.Markdown()
			for _, s := range c.text {
				if !strings.Contains(text, s) {
					t.Errorf("the report does not say %q:\n%s", s, text)
				}
			}
			if strings.Contains(text, "evil_function <-") || strings.Contains(r.Title, "not told") {
				t.Errorf("the report says what it should not:\n%s", text)
			}
		})
	}
}

// An end that is not the run's has one name, however much the run goes on to write.
func TestEventOfAServerThatAnotherReplaced(t *testing.T) {
	journal := "== a" + frontStart + `
		10:00:07.0 systemd llm.service: A process of this unit has been killed by the OOM killer.
		10:00:08.0 llama-server[40] 0.00.900.000 I srv    load_model: initializing, n_slots = 2, n_ctx_slot = 4096, kv_unified = 'true'`
	first := Analyse(&Evidence{Unit: testUnit, Entries: entriesOf(t, journal, false)}).Event
	later := Analyse(&Evidence{Unit: testUnit, Entries: entriesOf(t, journal+"\n10:05:00.0 llama-server[40] 5.00.000.000 I slot launch_slot_: id  0 | task 0 | processing task, is_child = 0", false)}).Event
	if first == "" || first != later {
		t.Errorf("%q, later %q", first, later)
	}
}

// A clock that is set forward makes no year of uptime.
func TestUptimeOverAClockThatWasSet(t *testing.T) {
	e := &Evidence{Unit: testUnit, Entries: entriesOf(t, "== a"+serverStart+`
		10:01:00.0 systemd llm.service: Main process exited, code=killed, status=11/SEGV`, false)}
	first := e.Entries[0].At
	for i := range e.Entries {
		e.Entries[i].Monotonic = time.Minute + e.Entries[i].At.Sub(first)
		if e.Entries[i].ID != systemd.IDProcessExited {
			e.Entries[i].At = e.Entries[i].At.AddDate(0, -9, 0)
		}
	}
	r := Analyse(e)
	if up := *r.Ending.UptimeS; up != 60 {
		t.Errorf("%v s", up)
	}
	if text := r.Markdown(); !strings.Contains(text, "the host's clock was set while the service ran") {
		t.Error(text)
	}
}

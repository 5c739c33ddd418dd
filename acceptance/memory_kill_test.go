package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/engine"
)

var killed = victim{pids: []int{40, 4711}, scope: "1bit-soak-a-0001-server-1.scope"}

// journalRows are lines of a journal, and whether they prove that killed was.
var journalRows = []struct {
	fields, message string
	proof           bool
}{
	{`"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0"`, "Out of memory: Killed process 4711 (llama-server) total-vm:8118236kB, anon-rss:8098448kB", true},
	{`"_TRANSPORT":"kernel"`, "Memory cgroup out of memory: Kill process 4711 (llama-server) score 572 or sacrifice child", true},
	{`"_TRANSPORT":"kernel"`, "Out of memory: Killed process 471 (llama-server) total-vm:8118236kB", false},
	{`"_TRANSPORT":"kernel","SYSLOG_FACILITY":"1"`, "Out of memory: Killed process 4711 (llama-server)", false},
	{`"SYSLOG_IDENTIFIER":"llama"`, "Out of memory: Killed process 4711 (llama-server)", false},
	{`"SYSLOG_IDENTIFIER":"earlyoom"`, `sending SIGTERM to process 4711 uid 1000 "llama-server": badness 800, VmRSS 100 MiB`, true},
	{`"SYSLOG_IDENTIFIER":"earlyoom"`, `sending SIGKILL to process 4711 "llama-server": badness 800, VmRSS 100 MiB`, true},
	{`"SYSLOG_IDENTIFIER":"earlyoom"`, `process 4711 exited after 1.9 seconds`, false},
	{`"SYSLOG_IDENTIFIER":"systemd-oomd"`, "Killed /user.slice/user@1000.service/app.slice/1bit-soak-a-0001-server-1.scope due to memory pressure for /user.slice being 51.07% > 50.00% for > 20s with reclaim activity", true},
	{`"SYSLOG_IDENTIFIER":"systemd-oomd"`, "Marked /app.slice/1bit-soak-a-0001-server-1.scope for killing due to memory pressure", true},
	{`"SYSLOG_IDENTIFIER":"systemd-oomd"`, "Killed /app.slice/1bit-soak-a-0002-server-1.scope due to memory pressure", false},
	{`"SYSLOG_IDENTIFIER":"systemd"`, "1bit-soak-a-0001-server-1.scope: systemd-oomd killed 12 process(es) in this unit.", true},
	{`"SYSLOG_IDENTIFIER":"systemd"`, "1bit-soak-a-0001-server-1.scope: Failed with result 'oom-kill'.", true},
	{`"SYSLOG_IDENTIFIER":"systemd"`, "1bit-soak-a-0001-server-1.scope: Failed with result 'signal'.", false},
}

func journalRow(t testing.TB, fields, message string) string {
	text, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"__REALTIME_TIMESTAMP":"1",%s,"MESSAGE":%s}`, fields, text)
}

func TestProofOfAKill(t *testing.T) {
	for _, tt := range journalRows {
		if got := killed.named([]byte(journalRow(t, tt.fields, tt.message))); (got != "") != tt.proof || tt.proof && got != tt.message {
			t.Errorf("%s %q: %q, want proof %v", tt.fields, tt.message, got, tt.proof)
		}
		if got := (victim{pids: []int{1}}).named([]byte(journalRow(t, tt.fields, tt.message))); got != "" {
			t.Errorf("of another server: %q", got)
		}
	}
	for status, want := range map[engine.ExitStatus]bool{{Code: -1, Signal: 9}: true, {Code: 0}: true, {Code: 143}: true, {Code: 1}: false, {Code: -1, Signal: 11}: false} {
		if mayBeVictim(status) != want {
			t.Errorf("%s: want %v", status, want)
		}
	}
}

// What the control group of the server counts is proof where it is the server's own.
func TestProofOfTheControlGroup(t *testing.T) {
	v := killed
	v.root = t.TempDir()
	for _, group := range []string{"", "/app.slice/" + killed.scope} {
		dir := filepath.Join(v.root, "sys/fs/cgroup", group)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for n := range 2 {
			if err := os.WriteFile(filepath.Join(dir, "memory.events"), fmt.Appendf(nil, "max 7\noom 3\noom_kill %d\noom_group_kill 0\n", n), 0o644); err != nil {
				t.Fatal(err)
			}
			v.group = group
			if got := v.proof(t.Context()); (got != "") != (group != "" && n > 0) {
				t.Errorf("%q with %d kills: %q", group, n, got)
			}
		}
	}
}

// A server that a guard of memory ends is no evidence if the guard says so, and
// a crash if nobody does.
func TestKilledByAGuardOfMemory(t *testing.T) {
	for name, tt := range map[string]struct{ signal, says, want string }{
		"earlyoom": {"KILL", `sending SIGKILL to process PID uid 0 "llama-server": badness 800, VmRSS 9 MiB`, "invalid(oom-kill): "},
		"another":  {"KILL", `sending SIGKILL to process 1 uid 0 "llama-server": badness 800, VmRSS 9 MiB`, "fault(crash, SIGKILL)"},
		"a crash":  {"SEGV", `sending SIGTERM to process PID uid 0 "llama-server": badness 800, VmRSS 9 MiB`, "fault(crash, exit 2)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, root := fakePackage(t, "works"), t.TempDir()
			row := journalRow(t, `"SYSLOG_IDENTIFIER":"earlyoom"`, tt.says)
			says := filepath.Join(root, "says")
			script := "#!/bin/sh\ncat " + says + "\n"
			if err := errors.Join(os.MkdirAll(filepath.Join(root, "usr/bin"), 0o755), os.Mkdir(filepath.Join(root, "proc"), 0o755)); err != nil {
				t.Fatal(err)
			}
			writeScript(t, filepath.Join(root, "usr/bin/journalctl"), script)
			behind(t, p, fmt.Sprintf("echo '%s' | sed \"s/PID/$$/\" > %s\n", row, says)+amidWork("kill -"+tt.signal+" $$"))
			v := soak(t, RunOptions{Plan: fakePlan(t, p, "", "load: {requests: 3000, prompt_tokens: [24], n_predict: [20]}\n"), Package: p, Root: root})
			if !strings.HasPrefix(v.Reason, tt.want) {
				t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, tt.want)
			}
		})
	}
}

func FuzzJournalRow(f *testing.F) {
	for _, tt := range journalRows {
		f.Add([]byte(journalRow(f, tt.fields, tt.message)))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		line := killed.named(row)
		if line != "" && !strings.Contains(line, "4711") && !strings.Contains(line, "40") && !strings.Contains(line, killed.scope) {
			t.Errorf("%q proves it", line)
		}
	})
}

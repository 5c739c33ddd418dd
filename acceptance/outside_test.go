package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager/store"
)

// behind puts a script in front of the package's fake server, which it starts as
// $FAKE. It is not run for --version.
func behind(t *testing.T, p *store.Package, script string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/bash\nexport %s=1\nFAKE=%s\ncase \"$*\" in *--version*) exec $FAKE \"$@\";; esac\n%s\n", beFake, self, script)
	writeScript(t, filepath.Join(p.Path, "llama-server"), text)
}

// amidWork is a script for behind: it starts the server and runs a command when that is in the middle of its load.
func amidWork(command string) string {
	return `while [ -e /proc/$$/fd/2 ]; do
	if [ "$(grep -c launch_slot_ /proc/$$/fd/2)" -ge 20 ]; then ` + command + `; break; fi
	sleep 0.02
done &
exec $FAKE "$@"`
}

// A kill for memory somewhere on the host, in one life, is no excuse for a server
// that fails in a later one.
func TestKillForMemoryExcusesNoLaterLife(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"start": {"kill -SEGV $$", "fault(startup)"},
		"load":  {amidWork("kill -KILL $$"), "fault(crash, SIGKILL)"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, root := fakePackage(t, "works"), t.TempDir()
			again := filepath.Join(root, "again")
			behind(t, p, fmt.Sprintf("if [ -e %s ]; then %s; fi\ntouch %[1]s\nexec $FAKE \"$@\"", again, tt.script))
			if err := os.MkdirAll(filepath.Join(root, "proc"), 0o755); err != nil {
				t.Fatal(err)
			}
			kills := func(n int) {
				replaceFile(t, filepath.Join(root, "proc/vmstat"), fmt.Sprintf("oom_kill %d\n", n))
			}
			kills(7)
			plan := fakePlan(t, p, "", "attempts: 4\narms: [{name: a, lives: 2}]\nload: {duration: 1s, prompt_tokens: [24], n_predict: [20]}\n")
			v := soak(t, RunOptions{Plan: plan, Package: p, Root: root, Progress: func(s Progress) {
				if s.Requests > 5 {
					kills(8)
				}
			}})
			if v.Verdict != Fail || !strings.HasPrefix(v.Reason, tt.want) {
				t.Errorf("%s: %s", v.Verdict, v.Reason)
			}
		})
	}
}

// A life that lasts too long is no excuse for a request that hangs in it; one
// that is only slow is no evidence.
func TestLifeWatchdogExcusesNoHang(t *testing.T) {
	for fault, tt := range map[string]struct{ life, deadline, want string }{
		"hang@40": {"5s", "4900ms", "fault(hang)"}, // it starts and comes to the hang in that time on a busy machine too
		"":        {"1500ms", "1400ms", "invalid(watchdog): life was "},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			p := fakePackage(t, "works")
			plan := fakePlan(t, p, fault, fmt.Sprintf(
				"attempts: 1\nwatchdogs: {life: %s}\nload: {requests: 100000, prompt_tokens: [24], n_predict: [20], request_deadline: %s}\n", tt.life, tt.deadline))
			v := soak(t, RunOptions{Plan: plan, Package: p})
			if !strings.HasPrefix(v.Reason, tt.want) {
				t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, tt.want)
			}
		})
	}
}

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
	if err := os.WriteFile(filepath.Join(p.Path, "llama-server"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A kill for memory somewhere on the host, in one life, is no excuse for a server
// that fails in a later one.
func TestKillForMemoryExcusesNoLaterLife(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"start": {"kill -SEGV $$", "fault(startup)"},
		"load":  {"sleep 0.5 && kill -KILL $$ & exec $FAKE \"$@\"", "fault(crash, SIGKILL)"},
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
				if err := os.WriteFile(filepath.Join(root, "proc/vmstat"), fmt.Appendf(nil, "oom_kill %d\n", n), 0o644); err != nil {
					t.Error(err)
				}
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
	for fault, want := range map[string]string{
		"hang@40": "fault(hang)",
		"":        "invalid(watchdog): life was ",
	} {
		p := fakePackage(t, "works")
		plan := fakePlan(t, p, fault, "attempts: 1\nwatchdogs: {life: 1500ms}\nload: {requests: 100000, prompt_tokens: [24], n_predict: [20], request_deadline: 1400ms}\n")
		v := soak(t, RunOptions{Plan: plan, Package: p})
		if !strings.HasPrefix(v.Reason, want) {
			t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, want)
		}
	}
}

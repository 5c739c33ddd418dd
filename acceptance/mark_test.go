package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/1bit-systems/pkg/packager/store"
)

// relaunch changes the launcher of a fake package's server.
func relaunch(t *testing.T, p *store.Package, old, new string) {
	t.Helper()
	path := filepath.Join(p.Path, "llama-server")
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(script), old, new, 1)
	if text == string(script) {
		t.Fatalf("no %q in %s", old, script)
	}
	writeScript(t, path, text)
}

// What leaves its process group is found by its mark, ended and told of, without
// a systemd too.
func TestProcessThatLeavesItsGroup(t *testing.T) {
	p := fakePackage(t, "works")
	relaunch(t, p, "exec ", "[ \"$1\" = --version ] || setsid sleep 4242 &\nexec ")
	dir := filepath.Join(t.TempDir(), "evidence")
	v := soak(t, RunOptions{Plan: fakePlan(t, p, "", ""), Package: p, Evidence: dir})
	noneLeft(t, "sleep\x004242")
	if notes := strings.Join(v.Notes, "\n"); v.Verdict != Pass || !strings.Contains(notes, "arm 1: ended what had left its process group: process ") || !strings.Contains(notes, "(sleep 4242)") {
		t.Errorf("%s: %s; %s", v.Verdict, v.Reason, notes)
	}
}

// A runner and its watchers that are killed at once leave the child of a
// launcher, whose group then has no leader. Who goes on ends it.
func TestGroupWithoutLeaderIsEnded(t *testing.T) {
	p := fakePackage(t, "works")
	relaunch(t, p, "exec ", "")
	k := newKillable(t, p, fakePlan(t, p, "", "attempts: 3\nload: {requests: 600, prompt_tokens: [24], n_predict: [20]}\n"))
	runner := k.start(t)
	until(t, "requests", func() bool { return k.recorded() > 4 })
	for _, watcher := range running("read line") {
		var pid int
		fmt.Sscan(watcher, &pid)
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if strings.Contains(string(stat), fmt.Sprintf(" %d ", runner.Process.Pid)) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	runner.Process.Kill()
	runner.Wait()
	if len(running(filepath.Join(p.Path, "m.gguf"))) == 0 {
		t.Fatal("nothing was left")
	}
	v, err := k.resume(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	noneLeft(t, p.Path)
	if notes := strings.Join(v.Notes, "\n"); v.Verdict != Pass || !strings.Contains(notes, "ended what was left of it: process ") {
		t.Errorf("%s: %s; %s", v.Verdict, v.Reason, notes)
	}
}

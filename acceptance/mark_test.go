package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
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
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
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

// Only what is provably of a run is ended.
func TestSearchForMarked(t *testing.T) {
	start := func(env ...string) int {
		cmd := exec.Command("/bin/sleep", "4243")
		cmd.Env = env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd.Process.Pid
	}
	run := runID()
	old := start(markOf(run))
	ticks, _ := engine.StartTicks("/proc", old)
	s := search{"/proc", markOf(run), ticks + 1}
	if list := s.find(); len(list) != 0 {
		t.Errorf("found %v, which is older than the run", list)
	}
	s.since = ticks
	start(markOf(run)+"0", "OTHER="+markOf(run))
	start(markVariable + "=" + runID())
	start()
	if diff := cmp.Diff([]marked{{old, ticks}}, s.find(), cmp.AllowUnexported(marked{})); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if err := s.kill(marked{old, ticks + 1}); err != nil || len(s.find()) != 1 {
		t.Errorf("another process of the same number was killed (%v)", err)
	}
	ended, err := s.end(t.Context())
	if diff := cmp.Diff([]string{fmt.Sprintf("process %d (/bin/sleep 4243)", old)}, ended); err != nil || diff != "" {
		t.Errorf("%v, ended (-want +got):\n%s", err, diff)
	}
	if n := len(running("sleep\x004243")); n != 3 {
		t.Errorf("%d of the 3 others are left", n)
	}
}

// A runner and its watchers that are killed at once leave the child of a
// launcher, whose group then has no leader. Who goes on ends it.
func TestGroupWithoutLeaderIsEnded(t *testing.T) {
	p := fakePackage(t, "works")
	relaunch(t, p, "exec ", "")
	k := newKillable(t, p, fakePlan(t, p, "", "attempts: 3\nload: {requests: 300, prompt_tokens: [24], n_predict: [20]}\n"))
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

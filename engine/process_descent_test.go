package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Who has ended and is not waited for is a child still, and what it has left is looked for.
func TestChildren(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if !slices.Contains(Children("/proc", os.Getpid()), pid) || !slices.Contains(Descendants("/proc", os.Getpid()), pid) || !HasChildren() {
		t.Error("a child is not found")
	}
	if Parent("/proc", pid) != os.Getpid() {
		t.Errorf("its parent is %d", Parent("/proc", pid))
	}
	cmd.Process.Kill()
	for end := time.Now().Add(time.Minute); slices.Contains(Descendants("/proc", os.Getpid()), pid); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("what was killed counts as living")
		}
	}
	if !slices.Contains(Children("/proc", os.Getpid()), pid) || !HasChildren() {
		t.Error("a child that has ended is not found")
	}
	cmd.Wait()
	if slices.Contains(Children("/proc", os.Getpid()), pid) {
		t.Error("a child that was waited for is found")
	}
}

// A process lives while one of its threads does, also if its first one has ended.
func TestFirstThreadEnded(t *testing.T) {
	proc := t.TempDir()
	for pid, rest := range map[int]string{
		11: "S 1 11 11 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5054295",
		12: "Z 1 11 11 0 -1 0 0 0 0 0 0 0 0 0 20 0 6 0 5054295",
		13: "Z 1 11 11 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5054295",
		14: "T 1 12 12 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5054295",
	} {
		dir := filepath.Join(proc, fmt.Sprint(pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stat"), fmt.Appendf(nil, "%d (a b) %s 0 0\n", pid, rest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int{11, 12}, GroupMembers(proc, 11)); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{11, 12, 14}, Descendants(proc, 1)); diff != "" {
		t.Errorf("descendants (-want +got):\n%s", diff)
	}
	if IsStopped(proc, 11) || !IsStopped(proc, 14) || IsStopped(proc, 15) {
		t.Error("14 alone is stopped")
	}
}

// What is stopped hears of a signal.
func TestSignalOfWhatIsStopped(t *testing.T) {
	p, err := StartProcess(t.Context(), ProcessOptions{Program: "/bin/sh", Args: []string{"-c", "kill -STOP $$"}})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !IsStopped("/proc", p.PID()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not stop")
		}
	}
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.Exited():
	case <-time.After(time.Minute):
		t.Error("it stays stopped")
	}
	if err := p.Stop(t.Context(), 0); err != nil {
		t.Error(err)
	}
}

package engine

import (
	"bytes"
	"context"
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

// Only what is provably of a piece of work is ended.
func TestMark(t *testing.T) {
	start := func(env ...string) int {
		cmd := exec.Command("/bin/sleep", "4243")
		cmd.Env = env
		if os.Getuid() == 0 { // root sees the work also where it has become another user
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd.Process.Pid
	}
	text := fmt.Sprintf("ONEBIT_TEST=%d-%d", os.Getpid(), BootTicks())
	old := start(text)
	ticks, _ := StartTicks("/proc", old)
	m := Mark{"/proc", text, ticks + 1}
	if list, err := m.Members(); len(list) != 0 || err != nil {
		t.Errorf("found %v (%v), which is older than the work", list, err)
	}
	m.Since = ticks
	others := []int{start(text+"0", "OTHER="+text), start("ONEBIT_TEST=another"), start()}
	list, err := m.Members()
	if diff := cmp.Diff([]int{old}, list); err != nil || diff != "" {
		t.Errorf("%v, found (-want +got):\n%s", err, diff)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended, err := m.End(ctx)
	if diff := cmp.Diff([]string{fmt.Sprintf("process %d (/bin/sleep 4243)", old)}, ended); err != nil || diff != "" {
		t.Errorf("%v, ended (-want +got):\n%s", err, diff)
	}
	for _, pid := range others {
		if b, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "cmdline")); !bytes.Contains(b, []byte("4243")) {
			t.Errorf("process %d, which is another's, was ended", pid)
		}
	}
}

// A number that is another process's when the signal is to be sent gets none.
func TestSignalEachAsksAgain(t *testing.T) {
	cmd := exec.Command("/bin/sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	asked := 0
	SignalEach(func() []int {
		if asked++; asked == 1 {
			return []int{cmd.Process.Pid}
		}
		return nil
	}, 9)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	if fields := statFields("/proc", cmd.Process.Pid); len(fields) == 0 || slices.Contains([]string{"Z", "X"}, string(fields[0])) {
		t.Error("it was killed")
	}
	SignalEach(func() []int { return []int{cmd.Process.Pid} }, 9)
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
}

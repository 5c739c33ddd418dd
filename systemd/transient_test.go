package systemd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A scope holds what leaves its process group, and is gone with the last of it.
func TestScopeHoldsWhatLeavesTheGroup(t *testing.T) {
	if !inside(t, false) {
		return
	}
	m, ctx := connectHere(t), limited(t)
	cmd := exec.Command("/bin/sh", "-c", "read line; setsid sleep 300 & wait")
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const name = "onebit-test-1.scope"
	if err := m.StartScope(ctx, name, "a test", cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := m.StartScope(ctx, name, "a test", os.Getpid()); err == nil {
		t.Error("two scopes have one name")
	}
	hold.Close()
	group, err := m.ScopeGroup(ctx, name)
	if err != nil || !strings.HasSuffix(group, "/"+name) {
		t.Fatalf("control group %q, %v", group, err)
	}
	members := func() []int {
		pids, err := Processes("/proc", "/sys/fs/cgroup", &Unit{ID: name, ControlGroup: group})
		if err != nil {
			t.Error(err)
		}
		return pids
	}
	for len(members()) < 2 && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if len(members()) != 1 {
		t.Errorf("left in the scope: %v", members())
	}
	if scopes, err := m.Scopes(ctx, "onebit-test-*"); err != nil || !slices.Contains(scopes, name) {
		t.Errorf("scopes %v, %v", scopes, err)
	}
	if err := m.KillUnit(ctx, name, int32(syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil {
		if _, err := m.ScopeGroup(ctx, name); errors.Is(err, ErrNoUnit) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err := m.KillUnit(ctx, name, int32(syscall.SIGKILL)); err != nil {
		t.Errorf("a scope that is gone: %v", err)
	}
}

// A transient service gets its words as they are, and says so if it cannot be executed.
func TestTransientService(t *testing.T) {
	if !inside(t, false) {
		return
	}
	m, ctx := connectHere(t), limited(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	s := TransientService{
		Name: "onebit-test.service", Description: "a test", Dir: dir, Output: out,
		Args: []string{"/bin/sh", "-c", `echo "$0|$1|$A|$PWD"; exec sleep 300`, "100% $HOME ${A}", "a  b;"},
		Env:  []string{"A=one two"},
	}
	if err := m.StartTransientService(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := m.StartTransientService(ctx, s); err == nil {
		t.Error("two services have one name")
	}
	want := "100% $HOME ${A}|a  b;|one two|" + dir + "\n"
	for ctx.Err() == nil {
		if b, _ := os.ReadFile(out); len(b) > 0 {
			if string(b) != want {
				t.Errorf("it got %q, want %q", b, want)
			}
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if result, err := m.Stop(ctx, s.Name); err != nil || result != "done" {
		t.Errorf("stop: %s, %v", result, err)
	}
	s.Name, s.Args = "onebit-test-fails.service", []string{"/bin/sh", "-c", "sleep 0.3; exit 6"}
	if err := m.StartTransientService(ctx, s); err != nil {
		t.Fatal(err)
	}
	for ctx.Err() == nil { // one that failed gives its name free
		err := m.StartTransientService(ctx, s)
		if err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Fatal("the name of a service that failed is taken")
	}
	if _, err := m.Stop(ctx, s.Name); err != nil {
		t.Error(err)
	}
	s.Name, s.Args = "onebit-test-none.service", []string{"/nothing/here"}
	if err := m.StartTransientService(ctx, s); err == nil {
		t.Error("a program that is not there was started")
	}
	s.Args = []string{"sh"}
	if err := m.StartTransientService(ctx, s); err == nil {
		t.Error("a program without a path was started")
	}
}

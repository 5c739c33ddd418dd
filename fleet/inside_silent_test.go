package fleet_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// A manager that is there and hangs does not keep a rollback from writing.
func testSilentManager(t *testing.T, in *inside) {
	s := in.stopped(t, "silent", "aaa0001")
	s.switchTo("bbb0002")
	m, err := in.host.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := *in.host
	h.Connect = func(context.Context) (*systemd.Manager, error) { return m, nil } // it answered until now
	out, err := exec.Command("systemctl", "show", "--property=MainPID", "--value", "user@"+strconv.Itoa(in.uid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || pid <= 1 {
		t.Fatal(pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	back, err := h.Rollback(ctx, s.unit, fleet.RollbackOptions{})
	cancel()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err != nil || back.Loaded || !strings.Contains(strings.Join(back.Notes, "; "), "does not answer") {
		t.Fatalf("%+v, %v", back, err)
	}
	s.wantFiles("zz-1bit.conf.prev")
	s.reload()
}

// A file of ours that nobody may read can still be renamed.
func testUnreadable(t *testing.T, in *inside) {
	s := in.stopped(t, "unreadable", "aaa0001")
	s.switchTo("bbb0002")
	if err := os.Chmod(s.path(s.unit+".d", "zz-1bit.conf"), 0); err != nil {
		t.Fatal(err)
	}
	out, err := in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	if err != nil || !out.Changed || !out.Loaded || out.To != "hrx-aaa0001" {
		t.Errorf("%+v, %v", out, err)
	}
	s.wantFiles("zz-1bit.conf.prev")
	if armed := s.status().Armed; armed.Package != "hrx-aaa0001" {
		t.Errorf("armed is %+v", armed)
	}
}

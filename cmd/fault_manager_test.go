package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/faultrun"
	"github.com/1bit-systems/pkg/systemd"
)

// managerDied is a file inside that tells root to start the user's manager again.
const managerDied = "/tmp/the-manager-died"

// reviveManager is root's part of testManagerDies, as a shell command.
func reviveManager(uid int) string {
	return fmt.Sprintf("until [ -e %[1]s ]; do sleep 0.2; done; systemctl stop user@%[2]d; systemctl reset-failed user@%[2]d; systemctl start user@%[2]d",
		managerDied, uid)
}

// testManagerDies kills the user's manager in the middle of a switch, after the files have changed and before it is
// asked to load them. Nothing can be switched then, a rollback still can be written, and when the manager is back the
// next command puts all to rights.
func testManagerDies(t *testing.T, l *lane) {
	l = l.in(t)
	l.must("pkg", "unswitch", l.unit)
	l.serve()
	onB(l)
	quiet, text := l.disturbed(nil, "pkg", "switch", l.unit, "ccccccc")
	if quiet.Exit != 0 {
		t.Fatal(text)
	}
	l.must("pkg", "switch", l.unit, "bbbbbbb")
	key, keys := "", faultrun.Keys(quiet.Calls)
	for i, c := range quiet.Calls {
		if c.Name == "renameat2" && i+1 < len(keys) {
			key = keys[i+1] // the folder's sync, after the last rename
		}
	}
	out, err := exec.Command("systemctl", "show", "-P", "MainPID", fmt.Sprintf("user@%d.service", os.Getuid())).Output()
	pid, perr := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || perr != nil || pid <= 1 || key == "" {
		t.Fatalf("manager %q, %v, point %q", out, err, key)
	}
	// A process that has died stays until its parent has seen it.
	kill := fmt.Sprintf("kill -9 %[1]d; until grep -qs '^State:.*Z' /proc/%[1]d/status || ! [ -e /proc/%[1]d ]; do sleep 0.02; done", pid)
	r, text := l.disturbed([]string{"-key", key, "-meanwhile", kill}, "pkg", "switch", l.unit, "ccccccc")
	if !r.Fired || r.Exit != 1 || !strings.Contains(text, "next command tries again") {
		t.Errorf("the switch ended with %d: %s", r.Exit, text)
	}
	for _, args := range [][]string{{"pkg", "status", l.unit}, {"pkg", "switch", l.unit, "ccccccc"}} {
		if status, _, errs := l.onebit(args...); status != 1 || !strings.Contains(errs, "no user manager") || !strings.Contains(errs, "linger") {
			t.Errorf("without a manager %v ended with %d: %s", args, status, errs)
		}
	}
	status, said, errs := l.onebit("pkg", "rollback", l.unit)
	if status != 0 || !strings.Contains(said, "not loaded") {
		t.Errorf("without a manager a rollback ended with %d: %s%s", status, said, errs)
	}
	if err := os.WriteFile(managerDied, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(lanePatience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if l.m, err = systemd.Connect(t.Context(), systemd.ConnectOptions{UID: os.Getuid()}); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.m.Close)
	// The new manager has read the files as the rollback left them.
	st := l.status("the manager is back")
	if got := l.startable("the manager is back"); got != st.armed() || st.armed() != "hrx-aaaaaaa" && st.armed() != "hrx-bbbbbbb" {
		t.Errorf("%s is armed, the process was started from %s", st.armed(), got)
	}
	l.wantNoLeftovers("the manager is back")
	l.chain("the manager is back", l.unit)
	l.serve()
	l.must("pkg", "switch", l.unit, "ddddddd")
	if st := l.status("switched again"); st.armed() != "hrx-ddddddd" || st.OnDisk != nil {
		t.Errorf("%s is armed", st.armed())
	}
	l.must("pkg", "unswitch", l.unit)
	if left, err := filepath.Glob(filepath.Join(l.dropIns(), "zz-*")); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

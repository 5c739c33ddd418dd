package testhost_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/testhost"
)

// patience bounds the waits of tests: far above what anything takes.
const patience = 60 * time.Second

func run(t *testing.T, h *testhost.Host, user, name string, args ...string) string {
	t.Helper()
	out, err := h.Run(t.Context(), user, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func await(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !isSo(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestSystemIsUp(t *testing.T) {
	h := testhost.Require(t)
	// `is-system-running` says degraded, with an exit status, if a unit of the distribution cannot start here.
	state, _ := h.Run(t.Context(), "root", "systemctl", "is-system-running")
	if state = strings.TrimSpace(state); state != "running" && state != "degraded" {
		t.Errorf("system is %q", state)
	}
	if failed := run(t, h, "root", "systemctl", "--failed", "--plain", "--no-legend"); failed != "" {
		t.Logf("failed units:\n%s", failed)
	}
	if got := run(t, h, "root", "cat", "/proc/1/comm"); got != "systemd" {
		t.Errorf("PID 1 is %q", got)
	}
	for _, service := range []string{"systemd-journald.service", "systemd-logind.service", "dbus.service",
		fmt.Sprintf("user@%d.service", h.UID)} {
		if got := run(t, h, "root", "systemctl", "is-active", service); got != "active" {
			t.Errorf("%s is %s", service, got)
		}
	}
}

func TestUserManager(t *testing.T) {
	h := testhost.Require(t)
	if got := run(t, h, h.User, "systemctl", "--user", "is-system-running"); got != "running" {
		t.Errorf("user manager is %q", got)
	}
	if got := run(t, h, "root", "loginctl", "show-user", h.User, "-P", "Linger"); got != "yes" {
		t.Errorf("linger is %q", got)
	}
	// A unit file written from outside.
	dir := h.Outside(filepath.Join(h.Home, ".config/systemd/user"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unit := "[Service]\nExecStart=/bin/sleep infinity\n"
	if err := os.WriteFile(filepath.Join(dir, "sleeper.service"), []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, h, h.User, "systemctl", "--user", "daemon-reload")
	run(t, h, h.User, "systemctl", "--user", "start", "sleeper.service")
	t.Cleanup(func() { _, _ = h.Run(context.Background(), h.User, "systemctl", "--user", "stop", "sleeper.service") })
	listed := run(t, h, h.User, "systemctl", "--user", "list-units", "--plain", "--no-legend", "sleeper.service")
	if !strings.Contains(listed, "active running") {
		t.Errorf("list-units says %q", listed)
	}
	pid := run(t, h, h.User, "systemctl", "--user", "show", "-P", "MainPID", "sleeper.service")
	if got := run(t, h, "root", "stat", "-c", "%u", "/proc/"+pid); got != strconv.Itoa(h.UID) {
		t.Errorf("the unit runs as %s, want %d", got, h.UID)
	}
}

func TestEnvironmentOfCommands(t *testing.T) {
	h := testhost.Require(t)
	for user, want := range map[string][]string{
		"root": {"0 0 0", "/root", "/root", ""},
		h.User: {fmt.Sprintf("%d %d %d", h.UID, h.UID, h.UID), h.Home, h.Home, fmt.Sprintf("/run/user/%d", h.UID)},
	} {
		out := run(t, h, user, "sh", "-c", `echo "$(id -u) $(id -g) $(id -G)"; pwd; echo "$HOME"; echo "$XDG_RUNTIME_DIR."`)
		want[3] += "."
		if got := strings.Split(out, "\n"); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
	if _, err := h.Run(t.Context(), "nobody", "true"); err == nil {
		t.Error("a user who is not the host's gives no error")
	}
	cmd := h.CommandIn(t.Context(), h.User, "/usr", "sh", "-c", "pwd; echo $EXTRA; cat")
	cmd.Env = append(cmd.Env, "EXTRA=x y")
	cmd.Stdin = strings.NewReader("from stdin")
	if out, err := cmd.Output(); err != nil || string(out) != "/usr\nx y\nfrom stdin" {
		t.Errorf("%q, error %v", out, err)
	}
}

func TestDiskIsReal(t *testing.T) {
	h := testhost.Require(t)
	var home, journal unix.Statfs_t
	if err := unix.Statfs(h.Outside(h.Home), &home); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC}, home.Type) {
		t.Errorf("the home is on a file system of type %#x", home.Type)
	}
	if err := unix.Statfs(h.Outside("/var/lib"), &journal); err != nil {
		t.Fatal(err)
	}
	if journal.Type != unix.OVERLAYFS_SUPER_MAGIC {
		t.Errorf("/var/lib is on a file system of type %#x, want the overlay's", journal.Type)
	}
	if !strings.Contains(h.Disk, " in /") {
		t.Errorf("Disk is %q, want a file system and a folder", h.Disk)
	}
	// Both ways: what one side writes the other reads.
	if err := os.WriteFile(h.Outside(h.Home+"/note"), []byte("in"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := run(t, h, h.User, "sh", "-c", "cat note; echo out >answer"); got != "in" {
		t.Errorf("inside reads %q", got)
	}
	if got, err := os.ReadFile(h.Outside(h.Home + "/answer")); err != nil || string(got) != "out\n" {
		t.Errorf("outside reads %q, %v", got, err)
	}
}

func TestNothingOfTheMachineChanges(t *testing.T) {
	h := testhost.Require(t)
	// A device node removed inside stays outside.
	run(t, h, "root", "rm", "/dev/full")
	if info, err := os.Stat("/dev/full"); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("the machine's /dev/full: %v, %v", info, err)
	}
	run(t, h, "root", "mknod", "-m", "666", "/dev/full", "c", "1", "7")
	// Files are the overlay's.
	run(t, h, "root", "sh", "-c", "echo x >/etc/onebit-testhost-mark; rm /etc/os-release")
	if _, err := os.Stat("/etc/onebit-testhost-mark"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file written inside is outside: %v", err)
	}
	if _, err := os.Stat("/etc/os-release"); err != nil {
		t.Errorf("a file removed inside: %v", err)
	}
	// Should one of these succeed after all, it changes nothing either.
	for _, command := range []string{
		"v=$(cat /proc/sys/kernel/panic) && echo $v >/proc/sys/kernel/panic",
		"v=$(cat /sys/kernel/profiling) && echo $v >/sys/kernel/profiling",
		"date -s @$(date +%s)",
	} {
		if out, err := h.Run(t.Context(), "root", "sh", "-c", command); err == nil {
			t.Errorf("%s: no error, output %q", command, out)
		}
	}
}

func TestNetworkIsItsOwn(t *testing.T) {
	h := testhost.Require(t)
	links, err := os.ReadDir(h.Outside("/proc/1/net/dev_snmp6"))
	if err == nil {
		for _, link := range links {
			if link.Name() != "lo" {
				t.Errorf("network interface %s", link.Name())
			}
		}
	}
	here, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if there := run(t, h, "root", "readlink", "/proc/self/ns/net"); there == here {
		t.Error("it has the machine's network")
	}
	// Its loopback is up: a server inside is reached from inside.
	run(t, h, "root", "sh", "-c", "grep -q '^ *lo:' /proc/net/dev && grep -q 00000000000000000000000000000001 /proc/net/if_inet6 || ip -o link show up dev lo | grep -q LOOPBACK")
}

func TestExitStatus(t *testing.T) {
	h := testhost.Require(t)
	for _, test := range []struct {
		command []string
		want    int
	}{
		{[]string{"true"}, 0}, {[]string{"sh", "-c", "exit 7"}, 7}, {[]string{"sh", "-c", "kill -9 $$"}, 137},
		{[]string{"no-such-program"}, 127}, {[]string{"/etc/passwd"}, 127}, {[]string{"sh", "-c", "exit 125"}, 125},
	} {
		_, err := h.Run(t.Context(), h.User, test.command[0], test.command[1:]...)
		got := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			got = exit.ExitCode()
		} else if err != nil {
			t.Errorf("%q: %v", test.command, err)
		}
		if got != test.want {
			t.Errorf("%q: exit status %d, want %d", test.command, got, test.want)
		}
	}
	_, err := h.Run(t.Context(), "root", "sh", "-c", "echo the reason >&2; exit 1")
	if err == nil || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("error %v, want stderr in it", err)
	}
}

func TestCommandsLeaveNoCgroup(t *testing.T) {
	h := testhost.Require(t)
	count := func() int {
		found, err := filepath.Glob(filepath.Join(h.Cgroup, "entered", "command-*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	before := count()
	if own := run(t, h, h.User, "cat", "/proc/self/cgroup"); !strings.Contains(own, "0::/entered/command-") {
		t.Errorf("the command's cgroup: %q", own)
	}
	if after := count(); after != before {
		t.Errorf("%d cgroups of commands, %d before", after, before)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	h := testhost.Require(t)
	ready := h.Home + "/signal-ready"
	cmd := h.Command(t.Context(), h.User, "sh", "-c", "trap 'exit 5' TERM; : >"+ready+"; while :; do sleep 0.05; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the command", func() bool { _, err := os.Stat(h.Outside(ready)); return err == nil })
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("exit status %d, want the trap's 5", got)
	}
}

// processes counts the processes inside whose command line holds text.
func processes(t *testing.T, h *testhost.Host, text string) int {
	t.Helper()
	found, err := filepath.Glob(h.Outside("/proc/[0-9]*/cmdline"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range found {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), text) {
			n++
		}
	}
	return n
}

func TestCancelKillsAll(t *testing.T) {
	h := testhost.Require(t)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := h.Command(ctx, h.User, "sh", "-c", "sleep 4711 & setsid sleep 4711 & wait")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, "the command's children", func() bool { return processes(t, h, "sleep 4711") >= 2 })
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("a killed command gives no error")
	}
	await(t, "their end", func() bool { return processes(t, h, "sleep 4711") == 0 })
}

func TestBring(t *testing.T) {
	h := testhost.Require(t)
	dir := filepath.Join(t.TempDir(), "things")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sub/program"), []byte("#!/bin/sh\necho brought\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub/program", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second replaces the first
		inside, err := h.Bring(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, h, "root", inside+"/link"); got != "brought" {
			t.Errorf("it says %q", got)
		}
		if got := run(t, h, h.User, "cat", inside+"/link"); !strings.Contains(got, "brought") {
			t.Errorf("the user reads %q", got)
		}
	}
}

// TestInside is what TestTestBinaryRunsInside runs inside.
func TestInside(t *testing.T) {
	if os.Getenv("TESTHOST_INSIDE") == "" {
		testhost.Require(t) // it is run inside by the test below
		return
	}
	if os.Getuid() == 0 {
		t.Error("this is root")
	}
	if out, err := exec.Command("systemctl", "--user", "is-active", "default.target").Output(); err != nil {
		t.Errorf("no user manager here: %q, %v", out, err)
	}
}

func TestTestBinaryRunsInside(t *testing.T) {
	h := testhost.Require(t)
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside, err := h.Bring(binary)
	if err != nil {
		t.Fatal(err)
	}
	// What Bring copies root may run; the user needs leave.
	run(t, h, "root", "chmod", "755", inside)
	cmd := h.Command(t.Context(), h.User, inside, "-test.run=^TestInside$", "-test.v")
	cmd.Env = append(cmd.Env, "TESTHOST_INSIDE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInside") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestFill(t *testing.T) {
	h := testhost.Require(t)
	dir := h.Home + "/small"
	if err := h.MountSmall(t.Context(), dir, 1<<20); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = h.Run(context.Background(), "root", "umount", dir) })
	run(t, h, h.User, "sh", "-c", "echo before >small/before")
	if err := h.Fill(dir + "/filler"); err != nil {
		t.Fatal(err)
	}
	if out, err := h.Run(t.Context(), h.User, "dd", "if=/etc/passwd", "of=small/after"); err == nil || !strings.Contains(err.Error(), "No space left") {
		t.Errorf("a write to the full disk: %q, %v", out, err)
	}
	run(t, h, "root", "rm", dir+"/filler")
	run(t, h, h.User, "sh", "-c", "echo after >small/after")
}

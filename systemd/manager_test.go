package systemd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestManager drives the real user manager of a test host.
func TestManager(t *testing.T) {
	if !inside(t, false) {
		return
	}
	t.Run("unit", testUnit)
	t.Run("no unit", testNoUnit)
	t.Run("unreadable command", testUnreadableCommand)
	t.Run("load states", testLoadStates)
	t.Run("jobs", testJobs)
	t.Run("start limit", testStartLimit)
	t.Run("pending", testPending)
	t.Run("wait broken off", testWaitBrokenOff)
	t.Run("delegated group", testDelegatedGroup)
	t.Run("ways to connect", testWaysToConnect)
}

// install writes unit files by their path below the unit folder, reloads, and takes them and
// their units away after the test.
func install(t *testing.T, m *Manager, files map[string]string) {
	t.Helper()
	dir := userUnitDir(t)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
				t.Fatal(err)
			}
		} else {
			writeFile(t, path, text)
		}
		t.Cleanup(func() {
			if !strings.Contains(name, "/") {
				m.Stop(context.Background(), name)
				m.ResetFailed(context.Background(), name)
			}
			os.Remove(path)
			os.Remove(filepath.Dir(path))
		})
	}
	reload(t, m)
}

// mustRun runs a job that must end as it should.
func mustRun(t *testing.T, job func(context.Context, string) (string, error), unit, want string) {
	t.Helper()
	if result, err := job(limited(t), unit); err != nil || result != want {
		t.Fatalf("%s: %q, %v; want %q", unit, result, err, want)
	}
}

func unitNow(t *testing.T, m *Manager, name string) *Unit {
	t.Helper()
	u, err := m.Unit(limited(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// testUnreadableCommand has a command that D-Bus cannot carry: the unit is there all the same.
func testUnreadableCommand(t *testing.T) {
	m := connectHere(t)
	install(t, m, map[string]string{
		"t-bytes.service": "[Service]\nType=oneshot\nEnvironment=A=1\nExecStart=/bin/true \\xff\n",
	})
	u := unitNow(t, m, "t-bytes")
	if u.ID != "t-bytes.service" || u.Type != "oneshot" || !slices.Equal(u.Environment, []string{"A=1"}) || len(u.ExecStart) > 0 || !u.CommandsUnread {
		t.Errorf("%+v", u)
	}
	mustRun(t, m.Start, "t-bytes", "done")
}

func testUnit(t *testing.T) {
	m := connectHere(t)
	install(t, m, map[string]string{
		"t-unit.service": "[Unit]\nDescription=a unit\n[Service]\nExecStart=/bin/sleep 1000\nRestart=always\nTimeoutStartSec=infinity\n" +
			"TimeoutStopSec=7s\nEnvironmentFile=-/none\nUnsetEnvironment=X\nWorkingDirectory=/tmp\nRestartSec=3\n" +
			"MemoryMax=64M\n[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=1min\n",
		"default.target.wants/t-unit.service": "-> ../t-unit.service",
		"t-unit.service.d/zz.conf":            "[Service]\nEnvironment=\"A=b c\"\nEnvironmentFile=/dev/null\n",
		"t-alias.service":                     "-> t-unit.service",
	})
	mustRun(t, m.Start, "t-unit", "done")
	u, dir, most := unitNow(t, m, "t-alias"), userUnitDir(t), int64(64<<20)
	want := &Unit{
		ID: "t-unit.service", Names: []string{"t-alias.service", "t-unit.service"}, Description: "a unit", LoadState: "loaded", ActiveState: "active",
		SubState: "running", Result: "success", Type: "simple", Restart: "always",
		FragmentPath: dir + "/t-unit.service", DropInPaths: []string{dir + "/t-unit.service.d/zz.conf"},
		Environment: []string{"A=b c"}, EnvironmentFiles: []EnvironmentFile{{"/none", true}, {"/dev/null", false}},
		UnsetEnvironment: []string{"X"}, ExecStart: []Command{{"/bin/sleep", []string{"/bin/sleep", "1000"}}},
		WorkingDirectory: "/tmp", TimeoutStop: 7 * time.Second,
		RestartDelay: 3 * time.Second, StartLimitBurst: 3, StartLimitInterval: time.Minute, MemoryMax: &most,
		ProtectHome: "no", UnitFileState: "enabled", WantedBy: []string{"default.target"},
	}
	slices.Sort(u.Names)
	got := *u
	got.MainPID, got.ControlGroup, got.InvocationID, got.MainStarted, got.SearchPath = 0, "", "", time.Time{}, nil
	got.MemoryPeak = nil // it depends on the machine
	if diff := cmp.Diff(want, &got, cmpopts.IgnoreUnexported(Unit{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !slices.Contains(u.SearchPath, dir) {
		t.Errorf("search path %q is without %s", u.SearchPath, dir)
	}
	if pids, err := Processes("/proc", "/sys/fs/cgroup", u); err != nil || !slices.Equal(pids, []int{u.MainPID}) {
		t.Errorf("processes %v, %v; the main one is %d", pids, err, u.MainPID)
	}
	if len(u.InvocationID) != 32 || u.MainStarted.IsZero() {
		t.Errorf("invocation %q, started %v", u.InvocationID, u.MainStarted)
	}
	mustRun(t, m.Restart, "t-unit", "done")
	if again := unitNow(t, m, "t-unit"); again.InvocationID == u.InvocationID || again.MainPID == u.MainPID {
		t.Errorf("after a restart it is the same: %+v", again)
	}
	mustRun(t, m.Stop, "t-unit", "done")
	if u := unitNow(t, m, "t-unit"); u.ActiveState != "inactive" || u.MainPID != 0 {
		t.Errorf("after a stop: %+v", u)
	}
	names, err := m.Services(limited(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "t-unit.service") || !slices.Contains(names, "t-alias.service") || !slices.IsSorted(names) {
		t.Errorf("services: %q", names)
	}
}

func testNoUnit(t *testing.T) {
	m := connectHere(t)
	install(t, m, map[string]string{"t-template@.service": "[Service]\nExecStart=/bin/true\n"})
	for _, name := range []string{"t-none", "t-none.service", "t-template@", "dbus.socket", "", "a b", "../x", "t-none@x"} {
		if u, err := m.Unit(limited(t), name); !errors.Is(err, ErrNoUnit) {
			t.Errorf("%q: %+v, %v; want ErrNoUnit", name, u, err)
		}
	}
	if u := unitNow(t, m, "t-template@x"); u.ID != "t-template@x.service" {
		t.Errorf("an instance: %+v", u)
	}
	for name, job := range map[string]func(context.Context, string) (string, error){"start": m.Start, "restart": m.Restart, "stop": m.Stop} {
		if result, err := job(limited(t), "t-none"); !errors.Is(err, ErrNoUnit) {
			t.Errorf("%s: %q, %v; want ErrNoUnit", name, result, err)
		}
	}
	if err := m.ResetFailed(limited(t), "t-none"); err != nil {
		t.Error(err)
	}
	names, err := m.Services(limited(t))
	if err != nil || slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, "@.") || name == "t-none.service" }) {
		t.Errorf("services: %q, %v", names, err)
	}
}

func testLoadStates(t *testing.T) {
	m := connectHere(t)
	install(t, m, map[string]string{
		"t-empty.service":          "",
		"t-null.service":           "-> /dev/null",
		"t-two.service":            "[Service]\nType=exec\nExecStart=/bin/true\n",
		"t-two.service.d/zz.conf":  "[Service]\nExecStart=/bin/false\n",
		"t-bad.service":            "[Service]\nExecStart=/bin/true\n[Service\n",
		"t-rest.service":           "[Service]\nType=oneshot\nExecStart=/bin/true\n",
		"t-rest.service.d/zz.conf": "[Service\nExecStart=/bin/false\n",
		"t-percent.service":        "[Service]\nExecStart=/bin/echo rel%3A7\n",
	})
	for name, want := range map[string]string{"t-empty": "masked", "t-null": "masked", "t-two": "bad-setting", "t-bad": "error",
		"t-rest": "loaded", "t-percent": "bad-setting"} {
		if u := unitNow(t, m, name); u.LoadState != want {
			t.Errorf("%s is %s, want %s", name, u.LoadState, want)
		}
	}
}

func testJobs(t *testing.T) {
	m := connectHere(t)
	install(t, m, map[string]string{
		"t-fails.service":   "[Service]\nType=oneshot\nExecStart=/bin/false\n",
		"t-nothing.service": "[Service]\nType=exec\nExecStart=/nothing/here\n",
		"t-slow.service":    "[Service]\nType=notify\nExecStart=/bin/sleep 1000\nTimeoutStartSec=100ms\n",
		"t-needs.service":   "[Unit]\nRequires=t-fails.service\nAfter=t-fails.service\n[Service]\nExecStart=/bin/true\n",
	})
	for name, want := range map[string][2]string{"t-fails": {"failed", "exit-code"}, "t-nothing": {"failed", "exit-code"},
		"t-slow": {"failed", "timeout"}, "t-needs": {"dependency", "success"}} {
		mustRun(t, m.Restart, name, want[0])
		if u := unitNow(t, m, name); u.Result != want[1] {
			t.Errorf("%s: result %s, want %s", name, u.Result, want[1])
		}
	}
}

// testStartLimit: the new version used up the starts, and the old one, put back, must start.
func testStartLimit(t *testing.T) {
	m := connectHere(t)
	install(t, m, map[string]string{
		"t-limit.service": "[Unit]\nStartLimitIntervalSec=120\nStartLimitBurst=2\n[Service]\nType=oneshot\nExecStart=/bin/sh -c 'test -e %t/t-limit'\n",
	})
	for range 2 {
		mustRun(t, m.Start, "t-limit", "failed")
	}
	good := filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "t-limit")
	writeFile(t, good, "")
	t.Cleanup(func() { os.Remove(good) })
	mustRun(t, m.Start, "t-limit", "failed")
	if err := m.ResetFailed(limited(t), "t-limit"); err != nil {
		t.Fatal(err)
	}
	mustRun(t, m.Start, "t-limit", "done")
}

func testWaitBrokenOff(t *testing.T) {
	m := connectHere(t)
	install(t, m, map[string]string{"t-long.service": "[Service]\nType=oneshot\nExecStart=/bin/sleep 1000\n"})
	ctx, cancel := context.WithCancel(t.Context())
	running := func(end func()) {
		for { // until the job is on its way
			if u, err := m.Unit(limited(t), "t-long"); err == nil && u.ActiveState == "activating" {
				end()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	go running(cancel)
	if result, err := m.Start(ctx, "t-long"); !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v; want context.Canceled", result, err)
	}
	other := connectHere(t)
	go running(other.Close)
	if result, err := other.Start(limited(t), "t-long"); !errors.Is(err, errGone) {
		t.Errorf("%q, %v; want errGone", result, err)
	}
	mustRun(t, m.Stop, "t-long", "done")
}

// testDelegatedGroup has a front end that moves its child to a group of its own.
func testDelegatedGroup(t *testing.T) {
	m, dir := connectHere(t), t.TempDir()
	writeFile(t, dir+"/front", "#!/bin/sh\ngroup=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup)\nmkdir $group/payload || exit 1\n"+
		"sleep 1000 &\necho $! >"+dir+"/child\necho $! >$group/payload/cgroup.procs || exit 1\n: >"+dir+"/ready\nwait\n")
	if err := os.Chmod(dir+"/front", 0o755); err != nil {
		t.Fatal(err)
	}
	install(t, m, map[string]string{"t-front.service": "[Service]\nDelegate=yes\nExecStart=" + dir + "/front\n" +
		"ExecStartPost=/bin/sh -c 'until test -e " + dir + "/ready; do sleep 0.02; done'\nTimeoutStartSec=20\n"})
	mustRun(t, m.Start, "t-front", "done")
	u := unitNow(t, m, "t-front")
	text, err := os.ReadFile(dir + "/child")
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	want := []int{u.MainPID, child}
	slices.Sort(want)
	for _, cgroups := range []string{"/sys/fs/cgroup", "/none"} {
		if got, err := Processes("/proc", cgroups, u); err != nil || !slices.Equal(got, want) {
			t.Errorf("by %s: %v, %v; want %v", cgroups, got, err, want)
		}
	}
}

// testWaysToConnect reaches the one manager in every way that there is, and waits for a job on
// each.
func testWaysToConnect(t *testing.T) {
	uid := os.Getuid()
	dir := filepath.Join("/run/user", strconv.Itoa(uid))
	only := func(names ...string) string { // a root in which only these sockets of the user are there
		root := t.TempDir()
		for _, name := range names {
			path := filepath.Join(root, dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(dir, name), path); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	install(t, connectHere(t), map[string]string{"t-once.service": "[Service]\nType=oneshot\nExecStart=/bin/true\n"})
	for name, opts := range map[string]ConnectOptions{
		"nothing is set":      {UID: uid},
		"both are set":        {UID: uid, RuntimeDir: dir, BusAddress: "unix:path=" + dir + "/bus"},
		"both are root's":     {UID: uid, RuntimeDir: "/run/user/0", BusAddress: "unix:path=/run/user/0/bus"},
		"the folder is /run":  {UID: uid, RuntimeDir: "/run"},
		"only a bus":          {UID: uid, Root: only("bus")},
		"only the manager":    {UID: uid, Root: only("systemd/private")},
		"only a bus's name":   {UID: uid, Root: only(), BusAddress: "unix:path=" + dir + "/bus"},
		"a folder and no uid": {UID: uid, Root: only(), RuntimeDir: dir},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Connect(limited(t), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			mustRun(t, m.Start, "t-once", "done")
			if m.Scope() != ScopeUser {
				t.Errorf("scope %s", m.Scope())
			}
		})
	}
	m, err := Connect(limited(t), ConnectOptions{Scope: ScopeSystem})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if u := unitNow(t, m, "dbus"); u.ActiveState != "active" || m.Scope() != ScopeSystem {
		t.Errorf("the system's bus is %s, scope %s", u.ActiveState, m.Scope())
	}
	if _, err := m.Unit(limited(t), "t-once"); !errors.Is(err, ErrNoUnit) {
		t.Errorf("the system knows the user's unit: %v", err)
	}
	if result, err := m.Restart(limited(t), "dbus"); err == nil {
		t.Errorf("the user restarts the system's bus: %q", result)
	}
}

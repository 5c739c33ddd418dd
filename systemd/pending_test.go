package systemd

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	godbus "github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// loadedAt makes a manager that says it last loaded its units so long ago, by the clock it had then.
func loadedAt(t *testing.T, ago, clock time.Duration, searchPath ...string) *Manager {
	t.Helper()
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return &Manager{searchPath: searchPath, about: map[string]godbus.Variant{
		"UnitsLoadTimestamp":          godbus.MakeVariant(uint64(time.Now().Add(clock - ago).UnixMicro())),
		"UnitsLoadTimestampMonotonic": godbus.MakeVariant(uint64((now.Nano() - ago.Nanoseconds()) / 1000)),
	}}
}

func TestEdits(t *testing.T) {
	old := time.Now().Add(-24 * time.Hour)
	for _, test := range []struct {
		name  string
		edit  func(t *testing.T, dir string) error
		units []string
		gone  bool
		old   bool
	}{
		{name: "nothing", edit: func(*testing.T, string) error { return nil }},
		{name: "a unit file written in place", units: []string{"a.service"}, edit: func(_ *testing.T, dir string) error {
			return os.WriteFile(dir+"/a.service", []byte("[Service]\n"), 0o644)
		}},
		{name: "the same, with an old time", units: []string{"a.service"}, old: true, edit: func(t *testing.T, dir string) error {
			writeFile(t, dir+"/a.service", "[Service]\n")
			return os.Chtimes(dir+"/a.service", old, old)
		}},
		{name: "a new unit file", units: []string{"b.timer"}, gone: true, edit: func(t *testing.T, dir string) error {
			writeFile(t, dir+"/b.timer", "")
			return nil
		}},
		{name: "a unit file that is gone", gone: true, edit: func(_ *testing.T, dir string) error { return os.Remove(dir + "/a.service") }},
		{name: "a drop-in written in place", units: []string{"a.service"}, edit: func(_ *testing.T, dir string) error {
			return os.WriteFile(dir+"/a.service.d/x.conf", []byte("[Service]\n"), 0o644)
		}},
		{name: "a drop-in that is gone", units: []string{"a.service"}, edit: func(_ *testing.T, dir string) error {
			return os.Remove(dir + "/a.service.d/x.conf")
		}},
		{name: "a first drop-in for all services", units: []string{"service"}, gone: true, edit: func(t *testing.T, dir string) error {
			writeFile(t, dir+"/service.d/x.conf", "")
			return nil
		}},
		{name: "what a link leads to", units: []string{"linked@.service"}, edit: func(_ *testing.T, dir string) error {
			return os.WriteFile(filepath.Dir(dir)+"/elsewhere.service", []byte("[Service]\n"), 0o644)
		}},
		{name: "no unit", gone: true, edit: func(t *testing.T, dir string) error {
			writeFile(t, dir+"/README", "")
			writeFile(t, dir+"/folder.service/x", "")
			return nil
		}},
		{name: "a drop-in that is none", edit: func(_ *testing.T, dir string) error {
			return os.WriteFile(dir+"/a.service.d/note", []byte("x"), 0o644)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "user")
			for _, name := range []string{"a.service", "a.service.d/x.conf", "a.service.d/note", "../elsewhere.service", "c.service"} {
				writeFile(t, filepath.Join(dir, name), "")
			}
			if err := os.Symlink("../elsewhere.service", dir+"/linked@.service"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("/dev/null", dir+"/masked.service"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * clockStep())
			m := loadedAt(t, 0, 0, dir, dir+"/not-there")
			time.Sleep(clockStep())
			if err := test.edit(t, dir); err != nil {
				t.Fatal(err)
			}
			e := m.edits()
			if diff := cmp.Diff(test.units, slices.Sorted(maps.Keys(e.units))); diff != "" {
				t.Error(diff)
			}
			if e.gone != test.gone || e.all || (len(e.old) > 0) != test.old {
				t.Errorf("gone %v, all %v, old %v", e.gone, e.all, e.old)
			}
		})
	}
}

func TestEditsOf(t *testing.T) {
	for _, test := range []struct {
		newer, unit string
		want        bool
	}{
		{"a.service", "a.service", true},
		{"a.service", "ab.service", false},
		{"a@.service", "a@b.service", true},
		{"a@b.service", "a@c.service", false},
		{"a-.service", "a-b.service", true},
		{"a-.service", "a.service", false},
		{"service", "a.service", true},
		{"service", "a.timer", false},
	} {
		e := &edits{units: map[string]bool{test.newer: true}}
		if touched, file := e.of(test.unit); touched != test.want || file != test.want {
			t.Errorf("%s newer: %s %v %v", test.newer, test.unit, touched, file)
		}
		e.units[test.newer] = false
		if touched, file := e.of(test.unit); touched != test.want || file {
			t.Errorf("folder of %s newer: %s %v %v", test.newer, test.unit, touched, file)
		}
	}
}

func TestEditsOfGenerated(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "source.desktop")
	writeFile(t, source, "")
	writeFile(t, dir+"/generator.late/app.service", "[Unit]\nSourcePath="+source+"\n")
	writeFile(t, dir+"/transient/run.service", "")
	writeFile(t, dir+"/user.control/a.service.d/50.conf", "")
	time.Sleep(3 * clockStep())
	m := loadedAt(t, 0, 0, dir+"/transient", dir+"/user.control", dir+"/generator.late")
	writeFile(t, dir+"/generator.late/late.service", "[Unit]\n") // they are made while it loads
	if e := m.edits(); len(e.units) > 0 || e.gone || e.all {
		t.Errorf("%+v", e)
	}
	time.Sleep(clockStep())
	writeFile(t, source, "edited")
	if e := m.edits(); !cmp.Equal(slices.Collect(maps.Keys(e.units)), []string{"app.service"}) {
		t.Errorf("%+v", e)
	}
}

// The manager's time is by a clock that may have been set since.
func TestLoadedSince(t *testing.T) {
	near := func(got time.Time, ago time.Duration) bool {
		off := time.Since(got) - ago
		return off > -time.Second && off < time.Second
	}
	if got := loadedAt(t, time.Minute, 0).LoadedSince(); !near(got, time.Minute) {
		t.Errorf("a minute ago: %v", got)
	}
	if got := loadedAt(t, time.Minute, time.Hour).LoadedSince(); !near(got, time.Minute) {
		t.Errorf("the clock was set back: %v", got)
	}
	if got := loadedAt(t, time.Minute, -time.Hour).LoadedSince(); !near(got, time.Hour+time.Minute) {
		t.Errorf("the clock was set forward: %v", got)
	}
	m := &Manager{about: map[string]godbus.Variant{"UnitsLoadTimestamp": godbus.MakeVariant(uint64(0))}}
	if got := m.LoadedSince(); !got.IsZero() || !m.edits().all {
		t.Errorf("it is not told: %v", got)
	}
}

// testPending edits the files of running units in every way.
func testPending(t *testing.T) {
	m := connectHere(t)
	dir := userUnitDir(t)
	const sleeper = "[Service]\nExecStart=/bin/sleep 1000\n"
	outside := filepath.Join(t.TempDir(), "t-linked.service")
	writeFile(t, outside, sleeper)
	files := map[string]string{
		"t-edited.service": sleeper, "t-other.service": sleeper, "t-ours.service": sleeper, "t-inst@.service": sleeper, "t-linked.service": "-> " + outside,
		"t-other.service.d/a.conf": "[Service]\nNice=1\n",
	}
	install(t, m, files)
	for _, name := range []string{"t-edited", "t-other", "t-ours", "t-inst@one", "t-linked"} {
		mustRun(t, m.Start, name, "done")
	}
	t.Cleanup(func() {
		os.RemoveAll(dir + "/t-edited.service.d")
		os.RemoveAll(dir + "/t-linked.service.d")
		os.RemoveAll(dir + "/t-inst@.service.d")
		if _, err := m.Stop(context.Background(), "t-inst@one"); err != nil {
			t.Error(err)
		}
	})
	path := func(name string) string { return filepath.Join(dir, name) }
	whole := path("whole")
	writeFile(t, whole+"/a.conf", "[Service]\nNice=1\n")
	longAgo := time.Now().Add(-time.Hour)
	for _, test := range []struct {
		name string
		edit func() error
		want string
	}{
		{"before any edit", func() error { return nil }, ""},
		{"a unit file", func() error {
			writeFile(t, path("t-edited.service"), sleeper+"Environment=A=1\n")
			return nil
		}, "t-edited.service"},
		{"a unit file with an old time", func() error {
			writeFile(t, path("new"), sleeper+"Environment=A=2\n")
			if err := os.Chtimes(path("new"), longAgo, longAgo); err != nil {
				return err
			}
			return os.Rename(path("new"), path("t-edited.service"))
		}, "t-edited.service"},
		{"a first drop-in", func() error {
			writeFile(t, path("t-edited.service.d/zz.conf"), "[Service]\nEnvironment=A=3\n")
			return nil
		}, "t-edited.service"},
		{"a folder of drop-ins that comes whole", func() error {
			if err := os.RemoveAll(path("t-edited.service.d")); err != nil {
				return err
			}
			return os.Rename(whole, path("t-linked.service.d"))
		}, "t-edited.service t-linked.service"},
		{"a drop-in that is gone", func() error { return os.Remove(path("t-other.service.d/a.conf")) }, "t-other.service"},
		{"a drop-in of the template", func() error {
			writeFile(t, path("t-inst@.service.d/a.conf"), "[Service]\nNice=1\n")
			return nil
		}, "t-inst@one.service"},
		{"a unit file behind a link", func() error {
			writeFile(t, outside, sleeper+"Environment=A=1\n")
			return nil
		}, "t-linked.service"},
		{"a unit file that is gone", func() error { return os.Remove(path("t-other.service")) }, "t-other.service"},
		{"our own", func() error {
			writeFile(t, path("t-ours.service"), sleeper+"Environment=A=1\n")
			return nil
		}, ""},
		{"a unit that is not loaded", func() error {
			writeFile(t, path("t-not-loaded.service"), sleeper)
			t.Cleanup(func() { os.Remove(path("t-not-loaded.service")) })
			return nil
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			reload(t, m)
			time.Sleep(2 * clockStep())
			if err := test.edit(); err != nil {
				t.Fatal(err)
			}
			names, err := connectHere(t).Pending(limited(t), "t-ours.service")
			if err != nil || strings.Join(names, " ") != test.want {
				t.Errorf("pending %q, want %q: %v", names, test.want, err)
			}
			// What it knew when it connected is older, and so it never says too little.
			if names, err := m.Pending(limited(t), "t-ours.service"); err != nil || test.want != "" && !slices.Contains(names, strings.Fields(test.want)[0]) {
				t.Errorf("over an old connection: pending %q, want %q: %v", names, test.want, err)
			}
		})
	}
}

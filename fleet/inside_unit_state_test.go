package fleet_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// state waits until a unit is in a state, such as "activating/start" or "failed".
func (s *service) state(want string) {
	s.Helper()
	var got string
	if !soon(func() bool {
		u, err := s.m.Unit(s.Context(), s.unit)
		if err != nil {
			s.Fatal(err)
		}
		got = u.ActiveState + "/" + u.SubState
		return strings.HasPrefix(got, want)
	}) {
		s.Fatalf("%s is %s and does not come to be %s", s.unit, got, want)
	}
}

// begin starts the unit without waiting for it.
func (s *service) begin() (ended chan struct{}) {
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.m.Start(s.Context(), s.unit)
	}()
	return ended
}

// A switch goes by what the unit's files are, whatever the unit is doing.
func testEveryState(t *testing.T, in *inside) {
	for name, tt := range map[string]struct {
		lines []string
		reach func(*service)
	}{
		"failed": {[]string{"ExecStartPre=/bin/false"}, func(s *service) { <-s.begin(); s.state("failed") }},
		"auto-restart": {[]string{"ExecStartPre=/bin/false", "Restart=always", "RestartSec=60"},
			func(s *service) { s.begin(); s.state("activating/auto-restart") }},
		"activating": {[]string{"Type=notify"}, func(s *service) { s.begin(); s.state("activating/start") }},
		"deactivating": {[]string{"ExecStop=/bin/sleep 2"}, func(s *service) {
			<-s.begin()
			go func() { _, _ = s.m.Stop(s.Context(), s.unit) }()
			s.state("deactivating")
		}},
		"start-limit": {[]string{"ExecStartPre=/bin/false", "StartLimitBurst=1", "StartLimitInterval=60"}, func(s *service) {
			<-s.begin()
			<-s.begin()
			s.state("failed")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := in.stopped(t, "state-"+name, "aaa0001", tt.lines...)
			tt.reach(s)
			out := s.switchTo("bbb0002")
			if out.Armed == nil || out.Armed.Package != "hrx-bbb0002" || out.From != "hrx-aaa0001" {
				t.Errorf("switch: %s", show(out))
			}
			s.wantFiles(ours)
		})
	}
}

// What a reload would take away, or what nothing can start, is not switched, and is told apart.
func testUnstartable(t *testing.T, in *inside) {
	s := in.stopped(t, "unstartable", "aaa0001")
	if _, err := in.m.Start(t.Context(), s.unit); err != nil { // so that it stays loaded
		t.Fatal(err)
	}
	unit, err := os.ReadFile(s.path(s.unit))
	if err != nil {
		t.Fatal(err)
	}
	try := func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	}
	for name, tt := range map[string]struct {
		put   func(path string) error
		wants []string
		later []string
		gone  bool
	}{
		"masked": {func(path string) error { return os.Symlink("/dev/null", path) },
			[]string{"mask", "/dev/null", s.path(s.unit)}, []string{"masked by " + s.path(s.unit), "unmask"}, false},
		"empty": {func(path string) error { return os.WriteFile(path, nil, 0o644) },
			[]string{"mask", "empty", s.path(s.unit)}, []string{"masked by " + s.path(s.unit), "empty"}, false},
		"gone": {func(string) error { return nil }, []string{"is gone", s.path(s.unit), "unswitch"}, nil, true},
		"cannot be loaded": {func(path string) error {
			return os.WriteFile(path, []byte("[Service]\nExecStart=relative%\nExecStart=\n"), 0o644)
		}, nil, []string{"cannot load", "bad-setting"}, false},
	} {
		if err := os.Remove(s.path(s.unit)); err != nil {
			t.Fatal(err)
		}
		if err := tt.put(s.path(s.unit)); err != nil {
			t.Fatal(err)
		}
		if tt.wants != nil {
			s.fails(name+", not loaded", fleet.ErrRefused, tt.wants, try)
		}
		s.reload()
		if !tt.gone {
			s.fails(name+", loaded", fleet.ErrRefused, tt.later, try)
		} else if _, err := try(); !errors.Is(err, systemd.ErrNoUnit) {
			t.Errorf("gone, and loaded: %v", err)
		}
		if _, err := os.Lstat(s.path(s.unit + ".d")); err == nil {
			t.Errorf("%s: a refused switch left the folder behind", name)
		}
		_ = os.Remove(s.path(s.unit))
		if err := os.WriteFile(s.path(s.unit), unit, 0o644); err != nil {
			t.Fatal(err)
		}
		s.reload()
	}
	// Nor is one that came to be so after a switch; and what is ours goes away all the same.
	s.switchTo("bbb0002")
	s.remove(s.unit)
	s.reload()
	s.fails("gone after a switch", systemd.ErrNoUnit, []string{"1bit pkg unswitch unstartable.service"}, try)
	if out, err := in.host.Unswitch(t.Context(), s.unit); err != nil {
		t.Errorf("unswitch what is gone: %s, %v", show(out), err)
	}
	s.wantFiles()
	s.fails("a template", systemd.ErrNoUnit, []string{"template", "some@NAME.service"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), "some@", in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	if err := os.WriteFile(s.path(s.unit), unit, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A folder that cannot be written says which, and what to do; nothing is left behind.
func testReadOnly(t *testing.T, in *inside) {
	s := in.stopped(t, "read-only", "aaa0001")
	s.switchTo("ccc0003")
	folder := s.path(s.unit + ".d")
	try := func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	}
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	s.fails("a folder that may not be written", os.ErrPermission, []string{folder, "may not write", "propose"}, try)
	s.want(s.status(), "ccc0003", "", "", false)
	if err := errors.Join(os.Chmod(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	s.switchTo("bbb0002")
}

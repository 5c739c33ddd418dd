package fleet_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
)

// blocks is the blocked packages with their reasons.
func blocks(now fleet.Service) string {
	var all []string
	for _, b := range now.Blocked {
		all = append(all, strings.TrimPrefix(b.Package, "hrx-")+": "+b.Reason)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// stays checks that another rollback changes nothing.
func (s *service) stays() {
	s.Helper()
	files, before := s.snapshot(), s.chain()
	if again := s.rollback(); again.Changed || s.snapshot() != files || !slices.Equal(s.chain(), before) {
		s.Errorf("another rollback changed something: %s", show(again))
	}
}

// A return is no rollback by hand: one can follow, and goes to what served before the package that came back.
func testRollbackAfterReturn(t *testing.T, in *inside) {
	s := in.start(t, "later-rollback", "aaa0001")
	s.restartOn("bbb0002")
	s.giveBack("ddd0004", "bbb0002", broken["ddd0004"])
	if now := s.status(); now.ServedBefore == nil || now.ServedBefore.Package != "hrx-aaa0001" {
		t.Errorf("served before: %s", show(now.ServedBefore))
	}
	back := s.rollback()
	s.want(back.Service, "aaa0001", "bbb0002", "bbb0002", true)
	s.wantFiles(prev)
	if got := blocks(back.Service); !strings.HasPrefix(got, "bbb0002: rolled back; ddd0004: the main process exited") {
		t.Errorf("blocked: %s", got)
	}
	s.stays()
	// The same where a file of ours comes in place: aaa, bbb, ccc, then ddd fails and ccc comes back.
	if _, err := in.host.Unswitch(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	s.restartOn("bbb0002")
	s.restartOn("ccc0003")
	for _, ahead := range []bool{true, false} {
		s.giveBack("ddd0004", "ccc0003", broken["ddd0004"])
		now := s.status()
		if now.ServedBefore == nil || now.ServedBefore.Package != "hrx-bbb0002" || now.RolledBack != "hrx-ddd0004" || len(now.Warnings) > 0 {
			t.Errorf("after the return: %s", show(now))
		}
		s.wantFiles(ours, prev)
		if !ahead {
			s.remove(s.unit + ".d/" + prev)
		}
		back = s.rollback()
		s.want(back.Service, "bbb0002", "ccc0003", "ccc0003", true)
		if got := blocks(back.Service); !strings.HasPrefix(got, "ccc0003: rolled back; ddd0004: the main process exited") {
			t.Errorf("blocked: %s", got)
		}
		s.stays()
		if !ahead {
			break
		}
		for _, id := range []string{"ccc0003", "ddd0004"} {
			if _, err := in.host.Unblock(t.Context(), s.unit, "hrx-"+id); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := in.host.Restart(t.Context(), s.unit, 0); err != nil {
			t.Fatal(err)
		}
		s.restartOn("ccc0003")
	}
	s.chain()
}

// Lines that a person put into our files are passed over and never lost.
func testRollbackOfEdited(t *testing.T, in *inside) {
	s := in.start(t, "by-hand", "aaa0001")
	edit := func(name string) {
		t.Helper()
		if err := rewrite(s.path(s.unit+".d", name), "[Service]\n", "[Service]\nNice=5\n"); err != nil {
			t.Fatal(err)
		}
		s.reload()
	}
	has := func(name string) {
		t.Helper()
		data, err := os.ReadFile(s.path(s.unit+".d", name))
		if err != nil || !strings.Contains(string(data), "Nice=5\n") {
			t.Errorf("%s lost the owner's line: %q, %v", name, data, err)
		}
	}
	refused := func(name, id string, texts ...string) {
		t.Helper()
		s.fails(name, fleet.ErrRefused, texts, func() (*fleet.Outcome, error) {
			return in.host.Switch(t.Context(), s.unit, in.pkgs[id], fleet.SwitchOptions{})
		})
	}
	s.switchTo("bbb0002")
	edit(ours)
	refused("a switch over an edited file", "ccc0003", "Nice=", ours)
	s.fails("unswitch", fleet.ErrRefused, []string{"Nice="}, func() (*fleet.Outcome, error) { return in.host.Unswitch(t.Context(), s.unit) })
	back := s.rollback()
	s.want(back.Service, "aaa0001", "aaa0001", "aaa0001", false)
	if got := blocks(back.Service); got != "bbb0002: rolled back" || !strings.Contains(strings.Join(back.Notes, "\n"), "Nice=") {
		t.Errorf("blocked: %s, notes %q", got, back.Notes)
	}
	has(prev)
	s.stays()
	refused("a switch to what is blocked", "bbb0002", "rolled back")
	refused("a switch over the owner's line", "ccc0003", "Nice=", prev)
	s.fails("unblock", fleet.ErrRefused, []string{"Nice="}, func() (*fleet.Outcome, error) {
		return in.host.Unblock(t.Context(), s.unit, "hrx-bbb0002")
	})
	has(prev)
	// The owner takes his line out, and all is as ever.
	if err := rewrite(s.path(s.unit+".d", prev), "Nice=5\n", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := in.host.Unblock(t.Context(), s.unit, "hrx-bbb0002"); err != nil {
		t.Fatal(err)
	}
	// Edited after a rollback: another one still changes nothing.
	s.restartOn("bbb0002")
	s.switchTo("ccc0003")
	s.rollback()
	edit(ours)
	s.stays()
	s.want(s.status(), "bbb0002", "bbb0002", "bbb0002", false)
	has(ours)
	s.chain()
}

// Whatever lies at the name of .prev is moved aside, and a rollback goes on.
func testPrevInTheWay(t *testing.T, in *inside) {
	s := in.start(t, "in-the-way", "aaa0001")
	s.write("elsewhere", "somebody's\n")
	t.Cleanup(func() { os.Remove(s.path("elsewhere")) })
	path := s.path(s.unit+".d", prev)
	for i, put := range []func() error{
		func() error { return os.Mkdir(path, 0o755) },
		func() error { return os.Symlink(s.path("elsewhere"), path) },
	} {
		for _, first := range []bool{true, false} {
			if !first {
				s.restartOn("bbb0002")
			}
			s.switchTo("ccc0003")
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if err := put(); err != nil {
				t.Fatal(err)
			}
			s.fails("a switch", fleet.ErrRefused, []string{prev, "is a ", "remove it"}, func() (*fleet.Outcome, error) {
				return in.host.Switch(t.Context(), s.unit, in.pkgs["aaa0001"], fleet.SwitchOptions{})
			})
			want := map[bool]string{true: "aaa0001", false: "bbb0002"}[first]
			back := s.rollback()
			if back.Armed == nil || back.Armed.Package != "hrx-"+want || !strings.Contains(strings.Join(back.Notes, "\n"), prev+".1") {
				t.Errorf("%d, first %v: %s", i, first, show(back))
			}
			s.stays()
			if err := os.Remove(path + ".1"); err != nil {
				t.Error(err)
			}
			if _, err := in.host.Unswitch(t.Context(), s.unit); err != nil {
				t.Fatal(err)
			}
			if result, err := in.m.Restart(t.Context(), s.unit); err != nil || result != "done" {
				t.Fatal(result, err)
			}
			s.await("hrx-aaa0001", fleet.HealthOK)
		}
	}
	if data, err := os.ReadFile(s.path("elsewhere")); err != nil || string(data) != "somebody's\n" {
		t.Errorf("what the link leads to holds %q, %v", data, err)
	}
	s.chain()
}

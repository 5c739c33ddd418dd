package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/systemd"
)

const ours, prev = "zz-1bit.conf", "zz-1bit.conf.prev"

func testSwitchAndRollback(t *testing.T, in *inside) {
	s := in.start(t, "first", "aaa0001")
	dry, err := in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{DryRun: true})
	if err != nil || dry.Changed || dry.To != "hrx-bbb0002" {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
	s.wantFiles()

	out := s.switchTo("bbb0002")
	s.want(out.Service, "bbb0002", "aaa0001", "aaa0001", true)
	if out.From != "hrx-aaa0001" || out.To != "hrx-bbb0002" || out.Restarted || !out.Changed || out.ServedBefore.Package != "hrx-aaa0001" {
		t.Errorf("outcome %s", show(out))
	}
	s.wantFiles(ours)
	if again := s.switchTo("bbb0002"); again.Changed {
		t.Errorf("the same switch again changed something: %s", show(again))
	}
	// The next start uses it, also one after a crash.
	s.kill(out.Live.Main.PID)
	s.want(s.await("hrx-bbb0002", fleet.HealthOK), "bbb0002", "bbb0002", "bbb0002", false)

	back := s.rollback()
	s.want(back.Service, "aaa0001", "bbb0002", "bbb0002", true)
	if back.From != "hrx-bbb0002" || back.To != "hrx-aaa0001" || back.Blocked[0].Package != "hrx-bbb0002" {
		t.Errorf("rollback: %s", show(back))
	}
	s.wantFiles(prev)
	before := s.snapshot()
	if again := s.rollback(); again.Changed || s.snapshot() != before {
		t.Errorf("a second rollback changed something: %s", show(again))
	}
	s.kill(back.Live.Main.PID)
	s.want(s.await("hrx-aaa0001", fleet.HealthOK), "aaa0001", "aaa0001", "aaa0001", false)

	want := []string{"switch aaa0001>bbb0002 armed", "rollback bbb0002>aaa0001 armed"}
	if got := s.chain(); !slices.Equal(got, want) {
		t.Errorf("history %v, want %v", got, want)
	}
}

func testChild(t *testing.T, in *inside) {
	s := in.start(t, "child", "aaa0001")
	before := s.switchTo("bbb0002").Live
	s.kill(before.Child.PID)
	var now fleet.Service
	for range 400 {
		if now = s.status(); now.Live != nil && now.Live.Child != nil && now.Live.Child.PID != before.Child.PID && now.Health == fleet.HealthOK {
			break
		}
	}
	// The front end started it again from what it was itself started with.
	s.want(now, "bbb0002", "aaa0001", "aaa0001", true)
	if now.Live.Main.PID != before.Main.PID || now.Live.Child.PID == before.Child.PID || now.Live.Child.Since.Before(before.Child.Since) {
		t.Errorf("main and child are not told apart: %s, before %s", show(now.Live), show(before))
	}
	s.kill(now.Live.Main.PID)
	after := s.await("hrx-bbb0002", fleet.HealthOK)
	s.want(after, "bbb0002", "bbb0002", "bbb0002", false)
	if after.Restarts == 0 {
		t.Error("systemd's own restart is not counted")
	}
}

func testRollbackTarget(t *testing.T, in *inside) {
	s := in.start(t, "target", "aaa0001")
	s.restartOn("bbb0002")
	// ccc is armed and never serves; a rollback of aaa after it goes to bbb, which served.
	s.switchTo("ccc0003")
	out := s.switchTo("aaa0001")
	if out.ServedBefore.Package != "hrx-bbb0002" {
		t.Errorf("served before: %s", show(out.ServedBefore))
	}
	s.wantFiles(ours, prev)
	back := s.rollback()
	s.want(back.Service, "bbb0002", "bbb0002", "bbb0002", false)
	if again := s.rollback(); again.Changed {
		t.Errorf("a second rollback changed something: %s", show(again))
	}
	s.fails("a blocked package", fleet.ErrRefused, []string{"hrx-aaa0001", "rolled back", "unblock"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["aaa0001"], fleet.SwitchOptions{})
	})
	// On a stopped service the journal remembers that bbb served.
	if _, err := in.m.Stop(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	if out := s.switchTo("ccc0003"); out.ServedBefore.Package != "hrx-bbb0002" {
		t.Errorf("served before, stopped: %s", show(out.ServedBefore))
	}
	s.chain()
}

func testWinners(t *testing.T, in *inside) {
	s := in.start(t, "winner", "aaa0001")
	old := filepath.Join(in.home, ".local/share/1bit-hrx-aaa0001/hrx/llama/bin/llama-server")
	env := filepath.Join(in.home, "engine.env")
	if err := os.WriteFile(env, []byte("# of the owner\nONEBIT_LLAMA_SERVER="+old+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(env) })
	local := s.unit + ".d/zzz-local.conf"
	for name, tt := range map[string]struct{ text, at, do string }{
		"later drop-in":    {"[Service]\n\nEnvironment=ONEBIT_LLAMA_SERVER=" + old + "\n", s.path(local) + ":3", "sorts before zz-1bit.conf"},
		"elsewhere":        {"[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=/build/llama-server\n", s.path(local) + ":2", "sorts before zz-1bit.conf"},
		"EnvironmentFile":  {"[Service]\nEnvironmentFile=" + env + "\n", env + ":2", "take the line out of that file"},
		"UnsetEnvironment": {"[Service]\nNice=1\nUnsetEnvironment=ONEBIT_LLAMA_SERVER\n", s.path(local) + ":3", "take the variable out of it"},
		"reset":            {"[Service]\nEnvironment=\n", s.path(local) + ":2", "sorts before zz-1bit.conf"},
	} {
		for _, loaded := range []bool{false, true} {
			s.write(local, tt.text)
			if loaded {
				s.reload()
			}
			s.fails(fmt.Sprintf("%s, loaded %v", name, loaded), fleet.ErrRefused, []string{tt.at, "ONEBIT_LLAMA_SERVER", tt.do}, func() (*fleet.Outcome, error) {
				return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
			})
			s.wantFiles("zzz-local.conf")
		}
		s.remove(local)
		s.reload()
	}
	s.want(s.status(), "aaa0001", "aaa0001", "aaa0001", false)
}

func testOverridden(t *testing.T, in *inside) {
	s := in.start(t, "later", "aaa0001")
	s.switchTo("bbb0002")
	local := s.unit + ".d/zzz-local.conf"
	s.write(local, "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=/build/llama-server\n")
	s.reload()
	now := s.status()
	if now.OverriddenBy == nil || now.OverriddenBy.File != s.path(local) || now.OverriddenBy.Line != 2 || now.OverriddenBy.Value != "/build/llama-server" {
		t.Errorf("overridden by %s", show(now.OverriddenBy))
	}
	if now.Armed != nil {
		t.Errorf("armed %s, but the next start would use no package", show(now.Armed))
	}
	// A rollback only warns.
	back := s.rollback()
	if !back.Changed {
		t.Errorf("rollback: %s", show(back))
	}
}

func testShadowed(t *testing.T, in *inside) {
	s := in.start(t, "shadow", "aaa0001")
	hrx := s.unit + ".d/hrx.conf"
	program := filepath.Join(in.home, ".local/share/1bit-hrx-ccc0003/hrx/llama/bin/llama-server")
	s.write(hrx, "[Service]\nEnvironment=HSA_USERPTR_FOR_PAGED_MEM=0\nEnvironment=ONEBIT_LLAMA_SERVER="+program+"\n")
	s.reload()
	out := s.switchTo("bbb0002")
	if out.From != "hrx-ccc0003" {
		t.Errorf("from %s", out.From)
	}
	for name, got := range map[string]fleet.Service{"outcome": out.Service, "status": s.status()} {
		found := slices.ContainsFunc(got.Shadowed, func(p fleet.Place) bool {
			return p.File == s.path(hrx) && p.Line == 3 && p.Value == program
		})
		if !found || got.OverriddenBy != nil {
			t.Errorf("%s: shadowed %s, overridden by %s", name, show(got.Shadowed), show(got.OverriddenBy))
		}
	}
	if !strings.Contains(strings.Join(out.Notes, "\n"), s.path(hrx)+":3") {
		t.Errorf("notes %q do not name it", out.Notes)
	}
	if back := s.rollback(); back.Armed.Package != "hrx-ccc0003" {
		t.Errorf("rolled back to %s", show(back.Armed))
	}
}

func testRefusals(t *testing.T, in *inside) {
	s := in.start(t, "refused", "aaa0001")
	wanting, m := *in.pkgs["bbb0002"], *in.pkgs["bbb0002"].Manifest
	m.HostLibraries = []packager.HostLibrary{{Name: "libmoon.so.7", NeededBy: m.Files[0].Path, Dirs: []string{"/opt/moon/lib"}}}
	wanting.Manifest = &m
	s.fails("a package whose library this host lacks", fleet.ErrRefused, []string{"hrx-bbb0002", "libmoon.so.7", "nor this host has"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, &wanting, fleet.SwitchOptions{})
	})
	other := *in.host
	s.fails("an unknown unit", systemd.ErrNoUnit, []string{"no-such.service"}, func() (*fleet.Outcome, error) {
		return other.Switch(t.Context(), "no-such", in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	other.Authorise = func(act string, _ []string) error { return fmt.Errorf("%w: not you: %s", fleet.ErrRefused, act) }
	s.fails("no leave", fleet.ErrRefused, []string{"not you", "switch refused.service to hrx-bbb0002"}, func() (*fleet.Outcome, error) {
		return other.Switch(t.Context(), "refused.service", in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	other = *in.host
	other.UnitDir = filepath.Join(in.home, "elsewhere")
	s.fails("a folder that nobody reads", fleet.ErrRefused, []string{"elsewhere"}, func() (*fleet.Outcome, error) {
		return other.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	s.fails("nothing to roll back", fleet.ErrRefused, []string{"never switched"}, func() (*fleet.Outcome, error) {
		return in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	})
	if _, err := in.host.Status(t.Context(), "no-such"); !errors.Is(err, systemd.ErrNoUnit) {
		t.Errorf("status of an unknown unit: %v", err)
	}
	if _, err := in.host.History(t.Context(), "no-such"); !errors.Is(err, systemd.ErrNoUnit) {
		t.Errorf("history of an unknown unit: %v", err)
	}
	bare := "bare.service"
	s.write(bare, "[Service]\nExecStart=%h/.local/share/1bit-hrx-aaa0001/1bit serve\n")
	s.reload()
	t.Cleanup(func() { os.Remove(s.path(bare)) })
	s.fails("a program in a package", fleet.ErrRefused, []string{"ExecStart=", "1bit pkg adopt"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), bare, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	s.wantFiles()
	if _, err := os.Stat(s.path(bare + ".d")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused switch left the folder behind: %v", err)
	}
}

func testConcurrent(t *testing.T, in *inside) {
	s := in.start(t, "fifty", "aaa0001")
	var all sync.WaitGroup
	ids := []string{"aaa0001", "bbb0002", "ccc0003"}
	patient := *in.host
	patient.LockWait = 5 * time.Minute // the last one waits for 49 others
	for i := range 50 {
		all.Go(func() {
			if _, err := patient.Switch(t.Context(), s.unit, in.pkgs[ids[i%3]], fleet.SwitchOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	acts := s.chain()
	if len(acts) == 0 || slices.ContainsFunc(acts, func(a string) bool { return !strings.HasPrefix(a, "switch ") }) {
		t.Errorf("history %v", acts)
	}
	now := s.status()
	last := acts[len(acts)-1]
	if !strings.HasSuffix(last, ">"+strings.TrimPrefix(now.Armed.Package, "hrx-")+" armed") || now.OnDisk != nil {
		t.Errorf("armed %s, on disk %s, last record %s", show(now.Armed), show(now.OnDisk), last)
	}
}

func testUnblockAndUnswitch(t *testing.T, in *inside) {
	s := in.start(t, "lift", "aaa0001")
	for _, first := range []bool{true, false} {
		if !first {
			s.restartOn("ccc0003")
		}
		s.switchTo("bbb0002")
		s.rollback()
		h, questions := s.asked(nil)
		if _, err := h.Unblock(t.Context(), s.unit, "hrx-ccc0003"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "blocked is hrx-bbb0002") || len(*questions) != 0 {
			t.Errorf("unblock what is not blocked: %v, asked %q", err, *questions)
		}
		lock := func(mode os.FileMode) {
			if err := os.Chmod(s.path(s.unit+".d"), mode); err != nil {
				t.Fatal(err)
			}
		}
		lock(0o555)
		for name, act := range map[string]func() (*fleet.Outcome, error){
			"unblock":  func() (*fleet.Outcome, error) { return h.Unblock(t.Context(), s.unit, "hrx-bbb0002") },
			"unswitch": func() (*fleet.Outcome, error) { return h.Unswitch(t.Context(), s.unit) },
			"undo": func() (*fleet.Outcome, error) {
				return h.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Undo: true})
			},
		} {
			if _, err := act(); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "sudo") || len(*questions) != 0 {
				t.Errorf("%s without leave to write: %v, asked %q", name, err, *questions)
			}
		}
		lock(0o755)
		out, err := in.host.Unblock(t.Context(), s.unit, "hrx-bbb0002")
		if err != nil || len(out.Blocked) != 0 {
			t.Fatalf("unblock: %s, %v", show(out), err)
		}
		s.switchTo("bbb0002")
		s.rollback()
		if out, err = in.host.Unswitch(t.Context(), s.unit); err != nil || out.To != "hrx-aaa0001" || !strings.Contains(show(out.Notes), "forgets that hrx-bbb0002 is blocked") {
			t.Fatalf("unswitch: %s, %v", show(out), err)
		}
		if _, err := os.Stat(s.path(s.unit + ".d")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the empty folder stays: %v", err)
		}
	}
	s.chain()
}

func testUsage(t *testing.T, in *inside) {
	s := in.start(t, "used", "aaa0001")
	s.restartOn("bbb0002")
	s.switchTo("ccc0003")
	all, err := in.host.Status(context.Background())
	if err != nil || len(all) != 1 || all[0].Unit != s.unit {
		t.Errorf("services %s, %v", show(all), err)
	}
	for id, want := range map[string][]string{
		"aaa0001": {"named in " + s.path(s.unit), "served before in used.service"},
		"bbb0002": {"live in used.service", "served before in used.service", "what a rollback goes to in used.service"},
		"ccc0003": {"armed in used.service", "on disk for used.service"},
		"ddd0004": nil,
	} {
		got, err := in.host.UsedBy(t.Context(), in.pkgs[id])
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is used by %q, want %q (%v)", id, got, want, err)
		}
	}
}

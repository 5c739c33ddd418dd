package fleet_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

func (s *service) back(opts fleet.RollbackOptions) *fleet.Outcome {
	s.Helper()
	out, err := s.host.Rollback(s.Context(), s.unit, opts)
	return s.do("rollback", out, err)
}

var (
	again = fleet.RollbackOptions{Again: true}
	undo  = fleet.RollbackOptions{Undo: true}
)

// Back, forward and further back, as systemd has it loaded after each step.
func testUndo(t *testing.T, in *inside) {
	s := in.start(t, "undone", "aaa0001")
	s.restartOn("bbb0002")
	s.switchTo("ccc0003")
	armed := s.snapshot()
	if out := s.back(undo); out.Changed || !strings.Contains(strings.Join(out.Notes, "\n"), "nothing was rolled back") || s.snapshot() != armed {
		t.Errorf("an undo of nothing: %s", show(out))
	}
	step := func(opts fleet.RollbackOptions, want, blocked string) {
		t.Helper()
		out := s.back(opts)
		s.want(out.Service, want, "bbb0002", "bbb0002", want != "bbb0002")
		if got := blocks(out.Service); got != blocked || !out.Changed || !out.Loaded || out.To != "hrx-"+want {
			t.Errorf("%+v: blocked %q, want %q: %s", opts, got, blocked, show(out))
		}
	}
	step(fleet.RollbackOptions{}, "bbb0002", "ccc0003: rolled back")
	step(undo, "ccc0003", "")
	if now := s.snapshot(); now != armed {
		t.Errorf("undone, the files are %s\nthey were %s", now, armed)
	}
	step(fleet.RollbackOptions{Reason: "slow at night"}, "bbb0002", "ccc0003: slow at night")
	s.fails("a switch to what is blocked", fleet.ErrRefused, []string{"slow at night"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["ccc0003"], fleet.SwitchOptions{})
	})
	step(again, "aaa0001", "bbb0002: rolled back; ccc0003: slow at night")
	s.wantFiles(prev)
	s.stays()
	s.fails("further than that", fleet.ErrRefused, []string{"nothing is further back"}, func() (*fleet.Outcome, error) {
		return in.host.Rollback(t.Context(), s.unit, again)
	})
	step(undo, "bbb0002", "ccc0003: slow at night")
	s.stays()
	step(undo, "ccc0003", "")
	if now := s.status(); now.ServedBefore == nil || now.ServedBefore.Package != "hrx-bbb0002" || len(now.Warnings) > 1 {
		t.Errorf("undone twice: %s", show(now))
	}
	step(again, "aaa0001", "ccc0003: rolled back")
	step(undo, "ccc0003", "")
	// What is armed so is what a crash starts.
	s.kill(s.status().Live.Main.PID)
	s.await("hrx-ccc0003", fleet.HealthOK)
	back := s.rollback()
	s.want(back.Service, "bbb0002", "ccc0003", "ccc0003", true)
	s.closedOnce()
	s.chain()
}

// The timeline of a bad release: it is restarted by hand, exits until its starts are used up, and only then somebody
// goes back. systemd would refuse the start of the good one too.
func testStartBudget(t *testing.T, in *inside) {
	s := in.start(t, "budget", "aaa0001", "Restart=on-failure", "[Unit]", "StartLimitIntervalSec=120", "StartLimitBurst=3")
	s.switchTo("ddd0004")
	if _, err := in.m.Restart(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	soon(func() bool { return strings.HasPrefix(s.status().State, "failed") })
	if result, err := in.m.Start(t.Context(), s.unit); err == nil && result == "done" {
		t.Error("its starts are not used up")
	}
	restart := fleet.RollbackOptions{Restart: true}
	out, err := in.host.Rollback(t.Context(), s.unit, restart)
	s.want(s.do("rollback with restart", out, err).Service, "aaa0001", "aaa0001", "aaa0001", false)
	// Undone with a restart it fails again, and goes back once: the good one stays.
	out, err = in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Undo: true, Restart: true})
	if !errors.Is(err, fleet.ErrReturned) || !out.Returned {
		t.Fatalf("undo with restart: %v, %s", err, show(out))
	}
	s.want(out.Service, "aaa0001", "aaa0001", "aaa0001", false)
	if got := blocks(out.Service); !strings.HasPrefix(got, "ddd0004: the main process exited") {
		t.Errorf("blocked: %s", got)
	}
	s.stays()
	want := "switch aaa0001>ddd0004 armed, rollback ddd0004>aaa0001 armed, restart aaa0001>aaa0001 serves, undo aaa0001>ddd0004 armed, " +
		"restart ddd0004>ddd0004 failed, return ddd0004>aaa0001 armed, restart aaa0001>aaa0001 serves"
	if got := strings.Join(s.chain(), ", "); got != want {
		t.Errorf("history %s\nwant %s", got, want)
	}
}

// A unit is let go of whatever has become of it.
func testLetGo(t *testing.T, in *inside) {
	s := in.start(t, "let-go", "aaa0001")
	text, err := os.ReadFile(s.path(s.unit))
	if err != nil {
		t.Fatal(err)
	}
	hold := func() {
		t.Helper()
		if _, err := in.host.Hold(t.Context(), s.unit, "mine", time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(name string, h *fleet.Host, loaded bool) {
		t.Helper()
		out, err := h.Unswitch(t.Context(), s.unit)
		if err != nil || !out.Changed || out.Loaded != loaded {
			t.Errorf("%s: %s, %v", name, show(out), err)
		}
		if _, err := os.Stat(s.path(s.unit + ".d")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v stay", name, s.files())
		}
	}
	offline := *in.host
	offline.Connect = func(context.Context) (*systemd.Manager, error) { return nil, systemd.ErrNoBus }
	if out, err := in.host.Unswitch(t.Context(), s.unit); err != nil || out.Changed {
		t.Errorf("with nothing of ours: %s, %v", show(out), err)
	}
	// Without a bus, with a hold and what a cut off switch left.
	s.switchTo("bbb0002")
	hold()
	data, err := os.ReadFile(s.path(s.unit+".d", ours))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{ours + ".new", prev + ".new", "." + holdFile + ".77.tmp"} {
		s.write(s.unit+".d/"+name, string(data))
	}
	gone("without a bus", &offline, false)
	s.reload()
	s.want(s.status(), "aaa0001", "aaa0001", "aaa0001", false)
	// What is not plainly ours stays.
	s.switchTo("bbb0002")
	s.write(s.unit+".d/"+holdFile, "since Monday\n")
	s.fails("a hold that somebody wrote", fleet.ErrRefused, []string{holdFile, "unhold"}, func() (*fleet.Outcome, error) {
		return in.host.Unswitch(t.Context(), s.unit)
	})
	s.remove(s.unit + ".d/" + holdFile)
	s.write(s.unit+".d/hrx.conf", "[Service]\nNice=5\n")
	if _, err := in.host.Unswitch(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	s.wantFiles("hrx.conf")
	s.remove(s.unit + ".d/hrx.conf")
	// Only a hold.
	hold()
	gone("held", in.host, true)
	// Masked by an empty file, while it runs.
	s.switchTo("bbb0002")
	s.write(s.unit, "")
	s.reload()
	gone("masked", in.host, true)
	s.write(s.unit, string(text))
	s.reload()
	// Its unit file is gone: first it is rolled back, then let go of.
	s.switchTo("bbb0002")
	if _, err := in.m.Stop(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	s.remove(s.unit)
	s.reload()
	for _, opts := range []fleet.RollbackOptions{{}, undo} {
		if out, err := in.host.Rollback(t.Context(), s.unit, opts); err != nil || !out.Changed || !out.Loaded {
			t.Errorf("without its unit file: %s, %v", show(out), err)
		}
	}
	hold2 := in.host.UnitDir + "/" + s.unit + ".d/" + holdFile
	if err := os.WriteFile(hold2, []byte(`{"reason": "mine", "by": "ai", "at": "2026-01-01T00:00:00Z"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	gone("without its unit file", in.host, true)
	if _, err := in.host.Unswitch(t.Context(), s.unit); !errors.Is(err, systemd.ErrNoUnit) {
		t.Errorf("of nothing at all: %v", err)
	}
	s.write(s.unit, string(text))
	s.chain()
}

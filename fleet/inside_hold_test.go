package fleet_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
)

const holdFile = "zz-1bit.hold"

func testHold(t *testing.T, in *inside) {
	s := in.start(t, "held", "aaa0001")
	path := s.path(s.unit+".d", holdFile)
	switchIt := func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	}
	hold := func(reason string, until time.Time) *fleet.Outcome {
		t.Helper()
		out, err := in.host.Hold(t.Context(), s.unit, reason, until)
		return s.do("hold", out, err)
	}
	out := hold("the demo on Friday", time.Time{})
	if out.Held == nil || out.Held.Reason != "the demo on Friday" || out.Held.Until != nil || out.Held.By != "ai" || !out.Changed {
		t.Errorf("hold: %s", show(out))
	}
	s.wantFiles(holdFile)
	s.fails("a switch", fleet.ErrRefused, []string{"the demo on Friday", "1bit pkg unhold held.service"}, switchIt)
	// What runs already may be restarted.
	if out, err := in.host.Restart(t.Context(), s.unit, 0); err != nil {
		t.Errorf("restart: %s, %v", show(out), err)
	}
	// An armed package may not be started, and a rollback may always go back.
	if _, err := in.host.Unhold(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	s.wantFiles()
	s.switchTo("bbb0002")
	hold("no restarts today", time.Now().Add(time.Hour))
	s.fails("a restart that changes what runs", fleet.ErrRefused, []string{"no restarts today"}, func() (*fleet.Outcome, error) {
		return in.host.Restart(t.Context(), s.unit, 0)
	})
	s.want(s.rollback().Service, "aaa0001", "aaa0001", "aaa0001", false)
	s.wantFiles(prev, holdFile)
	if now := s.status(); now.Held == nil || now.Held.Until == nil {
		t.Errorf("after a rollback: %s", show(now.Held))
	}
	// It ends by itself.
	later := *in.host
	later.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	all, err := later.Status(t.Context(), s.unit)
	if err != nil || all[0].Held != nil || !strings.Contains(strings.Join(all[0].Warnings, "\n"), "hold expired") {
		t.Errorf("expired: %s, %v", show(all), err)
	}
	if out, err := later.Switch(t.Context(), s.unit, in.pkgs["ccc0003"], fleet.SwitchOptions{}); err != nil {
		t.Errorf("a switch after its end: %s, %v", show(out), err)
	}
	s.rollback()
	// One that cannot be read holds.
	for name, damage := range map[string]func() error{
		"torn":      func() error { return os.WriteFile(path, []byte(`{"reason": "the de`), 0o644) },
		"empty":     func() error { return os.WriteFile(path, nil, 0o644) },
		"no reason": func() error { return os.WriteFile(path, []byte(`{"by":"x","at":"2026-01-02T03:04:05Z"}`), 0o644) },
		"a bad end": func() error {
			return os.WriteFile(path, []byte(`{"reason":"x","by":"x","at":"2026-01-02T03:04:05Z","until":"yesterday"}`), 0o644)
		},
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		s.fails(name, fleet.ErrRefused, []string{path, "1bit pkg unhold held.service"}, switchIt)
		now := s.status()
		if now.Held == nil || !strings.Contains(strings.Join(now.Warnings, "\n"), path) {
			t.Errorf("%s: held %s, warnings %q", name, show(now.Held), now.Warnings)
		}
		if _, err := in.host.Unhold(t.Context(), s.unit); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Symlink("/dev/null", path); err != nil {
		t.Fatal(err)
	}
	s.fails("a link", fleet.ErrRefused, []string{path, "a link"}, switchIt)
	s.fails("a link", fleet.ErrRefused, []string{path, "a link"}, func() (*fleet.Outcome, error) { return in.host.Unhold(t.Context(), s.unit) })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := in.host.Unhold(t.Context(), s.unit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unhold what is not held: %v", err)
	}
	for reason, until := range map[string]time.Time{" ": {}, "past": time.Now().Add(-time.Second)} {
		s.fails("hold "+reason, fleet.ErrRefused, nil, func() (*fleet.Outcome, error) { return in.host.Hold(t.Context(), s.unit, reason, until) })
	}
	// To hold needs no consent, to lift a hold or replace it does.
	h, questions := s.asked(func() error { return fleet.ErrRefused })
	if _, err := h.Hold(t.Context(), s.unit, "first", time.Time{}); err != nil || len(*questions) > 0 {
		t.Errorf("hold: %v, asked %q", err, *questions)
	}
	s.fails("a shorter one", fleet.ErrRefused, nil, func() (*fleet.Outcome, error) {
		return h.Hold(t.Context(), s.unit, "second", time.Now().Add(time.Minute))
	})
	s.fails("unhold", fleet.ErrRefused, nil, func() (*fleet.Outcome, error) { return h.Unhold(t.Context(), s.unit) })
	if len(*questions) != 2 || !strings.Contains((*questions)[1], "first") {
		t.Errorf("asked %q", *questions)
	}
	if out, err := in.host.Unswitch(t.Context(), s.unit); err != nil || out.Held != nil {
		t.Errorf("unswitch: %s, %v", show(out), err)
	}
	s.wantFiles()
}

func testPropose(t *testing.T, in *inside) {
	s := in.stopped(t, "proposed", "aaa0001")
	propose := func(h *fleet.Host, id string, opts fleet.ProposeOptions) (*fleet.Outcome, error) {
		return h.Propose(t.Context(), s.unit, in.pkgs[id], opts)
	}
	h, questions := s.asked(func() error { return fleet.ErrRefused })
	h.User = "agent"
	out, err := propose(h, "bbb0002", fleet.ProposeOptions{Reason: "carries engine#123"})
	s.do("propose", out, err)
	if !out.Changed || out.Proposed == nil || out.Proposed.Package != "hrx-bbb0002" || out.Proposed.By != "agent" ||
		out.Proposed.Reason != "carries engine#123" || out.Proposed.Digest != in.pkgs["bbb0002"].Digest || len(*questions) > 0 {
		t.Errorf("propose: %s, asked %q", show(out), *questions)
	}
	s.wantFiles()
	if got := s.status(); got.Armed.Package != "hrx-aaa0001" || got.OnDisk != nil {
		t.Errorf("a proposal armed something: %s", show(got))
	}
	if used, err := in.host.UsedBy(t.Context(), in.pkgs["bbb0002"]); err != nil || !strings.Contains(strings.Join(used, ","), "proposed for "+s.unit) {
		t.Errorf("a proposed package is used by %q, %v", used, err)
	}
	// It is looked at as a switch would be.
	s.write(s.unit+".d/zzz.conf", "[Service]\nEnvironment=\n")
	s.fails("something wins", fleet.ErrRefused, []string{"zzz.conf:2"}, func() (*fleet.Outcome, error) {
		return propose(h, "ccc0003", fleet.ProposeOptions{})
	})
	s.remove(s.unit + ".d/zzz.conf")
	p, err := in.host.Proposal(t.Context(), "proposed")
	if err != nil || p.Package != "hrx-bbb0002" {
		t.Fatalf("%s, %v", show(p), err)
	}
	// Only exactly that package can be taken.
	other := *p
	other.Digest = in.pkgs["ccc0003"].Digest
	s.fails("another digest", fleet.ErrRefused, []string{"another package"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Proposal: &other})
	})
	other = *p
	other.Unit = "another.service"
	s.fails("another unit", fleet.ErrRefused, []string{"another.service"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Proposal: &other})
	})
	out, err = in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Proposal: p})
	s.do("take it", out, err)
	if out.Proposed != nil || out.To != "hrx-bbb0002" {
		t.Errorf("it stays proposed: %s", show(out))
	}
	if out, err := propose(h, "bbb0002", fleet.ProposeOptions{}); err != nil || out.Changed || out.Proposed != nil {
		t.Errorf("propose what is armed: %s, %v", show(out), err)
	}
	// A switch to something else leaves it, and withdrawing ends it.
	s.do("propose", out, errors.Join(second(propose(h, "aaa0001", fleet.ProposeOptions{}))))
	s.switchTo("ccc0003")
	if now := s.status(); now.Proposed == nil {
		t.Error("a switch to another package ended the proposal")
	}
	if was, err := in.host.Withdraw(t.Context(), s.unit); err != nil || was.Package != "hrx-aaa0001" {
		t.Errorf("withdraw: %s, %v", show(was), err)
	}
	if _, err := in.host.Withdraw(t.Context(), s.unit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("withdraw nothing: %v", err)
	}
	if _, err := in.host.Proposal(t.Context(), s.unit); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is proposed: %v", err)
	}
	// A file for an owner elsewhere.
	file := filepath.Join(t.TempDir(), "proposal.json")
	out, err = propose(h, "aaa0001", fleet.ProposeOptions{Out: file})
	s.do("propose to a file", out, err)
	if read, err := fleet.ReadProposal(file); err != nil || read.Package != "hrx-aaa0001" || out.Proposed != nil {
		t.Errorf("%s, %v, %s", show(read), err, show(out))
	}
	mine := filepath.Join(t.TempDir(), "mine.json")
	if err := os.WriteFile(mine, []byte("[1]"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.fails("a file of somebody's", fleet.ErrRefused, []string{mine}, func() (*fleet.Outcome, error) {
		return propose(h, "aaa0001", fleet.ProposeOptions{Out: mine})
	})
	// A bad one is said once, stops no status and no switch, and can be withdrawn; until then it may mean any package.
	bad := filepath.Join(in.host.StateDir, "proposals", s.unit+".json")
	if err := os.WriteFile(bad, []byte(`{"unit":"proposed.service","package":"hrx-`), 0o600); err != nil {
		t.Fatal(err)
	}
	now := s.status()
	if now.Proposed != nil || strings.Count(strings.Join(now.Warnings, "\n"), "--withdraw") != 1 {
		t.Errorf("a bad proposal: %s", show(now))
	}
	if _, err := in.host.UsedBy(t.Context(), in.pkgs["ddd0004"]); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("what a bad proposal may mean is not used: %v", err)
	}
	if _, err := in.host.Proposal(t.Context(), s.unit); err == nil || !strings.Contains(err.Error(), bad) {
		t.Errorf("a bad proposal: %v", err)
	}
	s.switchTo("bbb0002")
	if _, err := in.host.Withdraw(t.Context(), s.unit); err != nil {
		t.Error(err)
	}
	// On a held service it can be proposed, and not be taken.
	if _, err := in.host.Hold(t.Context(), s.unit, "frozen", time.Time{}); err != nil {
		t.Fatal(err)
	}
	out, err = propose(h, "aaa0001", fleet.ProposeOptions{})
	s.do("propose on a held service", out, err)
	if !out.Changed || !strings.Contains(strings.Join(out.Notes, "\n"), "cannot be taken yet: "+s.unit+" is held") {
		t.Errorf("%s", show(out))
	}
	if _, err := in.host.Withdraw(t.Context(), s.unit); err != nil {
		t.Error(err)
	}
}

func second(_ *fleet.Outcome, err error) error { return err }

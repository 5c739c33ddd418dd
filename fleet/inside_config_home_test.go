package fleet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
)

// The owner's policy and his holds lie where the manager keeps its settings: no other folder that the manager reads
// too, or that leads to the same units, is a way past them.
func testConfigHome(t *testing.T, in *inside) {
	s := in.stopped(t, "config-home", "aaa0001")
	if out, err := in.host.Hold(t.Context(), s.unit, "stays", time.Time{}); err != nil {
		t.Fatal(out, err)
	}
	elsewhere := filepath.Join(in.home, "other-config")
	link := filepath.Join(elsewhere, "systemd")
	if err := os.MkdirAll(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(in.home, ".config/systemd"), link); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(elsewhere) })
	for name, home := range map[string]string{"a weaker folder": filepath.Join(in.home, ".local/share"), "a link to the folder": elsewhere} {
		other := *in.host
		other.UnitDir = filepath.Join(home, "systemd/user")
		acts := map[string]func() (*fleet.Outcome, error){
			"switch": func() (*fleet.Outcome, error) {
				return other.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
			},
			"unhold":   func() (*fleet.Outcome, error) { return other.Unhold(t.Context(), s.unit) },
			"rollback": func() (*fleet.Outcome, error) { return other.Rollback(t.Context(), s.unit, fleet.RollbackOptions{}) },
			"unswitch": func() (*fleet.Outcome, error) { return other.Unswitch(t.Context(), s.unit) },
		}
		for act, do := range acts {
			s.fails(name+": "+act, fleet.ErrRefused, []string{"XDG_CONFIG_HOME=" + filepath.Join(in.home, ".config"), home}, do)
		}
	}
	s.wantFiles("zz-1bit.hold")
}

// A file of ours in another folder that the manager reads is told of, and never comes to light unsaid.
func testNamesake(t *testing.T, in *inside) {
	s := in.stopped(t, "namesake", "aaa0001")
	s.switchTo("bbb0002")
	text, err := os.ReadFile(s.path(s.unit+".d", "zz-1bit.conf"))
	if err != nil {
		t.Fatal(err)
	}
	weaker := filepath.Join(in.home, ".local/share/systemd/user", s.unit+".d/zz-1bit.conf")
	if err := os.MkdirAll(filepath.Dir(weaker), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.RemoveAll(filepath.Dir(weaker)), in.m.Reload(context.Background())); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(weaker, []byte(strings.ReplaceAll(string(text), "bbb0002", "ccc0003")), 0o644); err != nil {
		t.Fatal(err)
	}
	s.reload()
	s.fails("switch", fleet.ErrRefused, []string{weaker}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["aaa0001"], fleet.SwitchOptions{})
	})
	out, err := in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if armed := s.status().Armed; out.To != "hrx-ccc0003" || armed.Package != out.To {
		t.Errorf("the rollback says %s, armed is %+v", out.To, armed)
	}
	if !slices.ContainsFunc(out.Notes, func(n string) bool { return strings.Contains(n, weaker) }) {
		t.Errorf("the other file is not named: %q", out.Notes)
	}
	s.remove(s.unit + ".d/zz-1bit.conf.prev")
	s.fails("rollback", fleet.ErrRefused, []string{weaker}, func() (*fleet.Outcome, error) {
		return in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	})
	s.fails("unswitch", fleet.ErrRefused, []string{weaker}, func() (*fleet.Outcome, error) {
		return in.host.Unswitch(t.Context(), s.unit)
	})
}

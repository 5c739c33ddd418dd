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

// The drop-in folder of llm-.service is that of every llm-….service too: nothing of ours comes into it.
func testFolderOfSeveral(t *testing.T, in *inside) {
	in.recorders(t)
	text := "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=%h/.local/share/1bit-hrx-adopt01/hrx/llama/bin/llama-server\nExecStart=/bin/true\n"
	other, _, _, _ := in.written(t, "several-one.service", text, nil)
	s, _, two, _ := in.written(t, "several-.service", text, nil)
	for name, act := range map[string]func() (*fleet.Outcome, error){
		"switch": func() (*fleet.Outcome, error) { return in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{}) },
		"dry": func() (*fleet.Outcome, error) {
			return in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{DryRun: true})
		},
		"adopt": s.tryAdopt(false),
		"hold":  func() (*fleet.Outcome, error) { return in.host.Hold(t.Context(), s.unit, "for a test", time.Time{}) },
		"propose": func() (*fleet.Outcome, error) {
			return in.host.Propose(t.Context(), s.unit, two, fleet.ProposeOptions{Reason: "for a test"})
		},
	} {
		s.fails(name, fleet.ErrRefused, []string{"several-.service.d", "does not end in"}, act)
	}
	if _, err := in.host.NewService(t.Context(), fleet.NewService{Name: "made-", Package: in.pkgs["aaa0001"], Program: "1bit"}); !errors.Is(err, fleet.ErrName) {
		t.Errorf("service new: %v", err)
	}
	survey, err := in.host.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{s.unit, other.unit} {
		i := slices.IndexFunc(survey.Services, func(one fleet.Service) bool { return one.Unit == unit })
		if i < 0 || survey.Services[i].Armed == nil || survey.Services[i].Armed.Package != "hrx-adopt01" {
			t.Errorf("the survey of %s: %s", unit, show(survey))
		}
	}
	// What an older version wrote goes away all the same.
	s.write(s.unit+".d/zz-1bit.conf", "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=/x\n")
	if _, err := in.host.Unswitch(t.Context(), s.unit); err != nil && !errors.Is(err, fleet.ErrRefused) {
		t.Errorf("unswitch: %v", err)
	}
}

// A unit folder that is a link, as dotfiles often make it, is like any.
func testLinkedUnitFolder(t *testing.T, in *inside) {
	in.recorders(t)
	real := filepath.Join(in.home, "dotfiles")
	if err := errors.Join(os.Rename(in.host.UnitDir, real), os.Symlink(real, in.host.UnitDir)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(os.Remove(in.host.UnitDir), os.Rename(real, in.host.UnitDir), in.m.Reload(context.Background())); err != nil {
			t.Error(err)
		}
	})
	s, _, two, record := in.written(t, "dotted.service", "[Service]\nType=oneshot\nExecStart=%h/.local/share/1bit-hrx-adopt01/1bit serve\n", nil)
	s.adopt()
	out, err := in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{})
	s.do("switch", out, err)
	if now := s.run(record); !strings.Contains(now, "1bit-hrx-adopt02/1bit") {
		t.Errorf("it started %s", now)
	}
	now := s.status()
	if now.Armed == nil || now.Armed.Package != "hrx-adopt02" || now.OnDisk != nil || now.OverriddenBy != nil {
		t.Errorf("status: %s", show(now))
	}
	s.rollback()
	if now := s.run(record); !strings.Contains(now, "1bit-hrx-adopt01/1bit") {
		t.Errorf("rolled back it started %s", now)
	}
	if _, err := in.host.Unswitch(t.Context(), s.unit); err != nil {
		t.Error(err)
	}
	s.wantFiles()
}

package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
)

// A link that leads to a package is not trusted to lead there later: our files name the package's own folder.
func testPinned(t *testing.T, in *inside) {
	in.recorders(t)
	current := filepath.Join(in.home, ".local/share/current")
	lead := func(to string) {
		t.Helper()
		_ = os.Remove(current)
		if err := os.Symlink("1bit-hrx-"+to, current); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Remove(current) })
	const server = "%h/.local/share/current/hrx/llama/bin/llama-server"
	one := in.pkgs["adopt01"].Path + "/hrx/llama/bin/llama-server"

	t.Run("adopted", func(t *testing.T) {
		lead("adopt01")
		s, _, two, record := in.written(t, "pinned.service", "[Service]\nType=oneshot\nExecStart="+server+" --port 1\n", nil)
		out := s.adopt()
		if !strings.Contains(out.Diff, "ONEBIT_LLAMA_SERVER="+one) || !strings.Contains(strings.Join(out.Notes, "\n"), "over a link") {
			t.Errorf("adopted: %s", show(out))
		}
		lead("adopt02")
		s.reload()
		if got := s.run(record); !strings.Contains(got, one) {
			t.Errorf("it runs %s, want %s", got, one)
		}
		now := s.status()
		if now.Armed == nil || now.Armed.Package != "hrx-adopt01" || !strings.Contains(strings.Join(now.Warnings, "\n"), "1bit pkg switch pinned.service hrx-adopt02") {
			t.Errorf("status: %s", show(now))
		}
		// Each advice leads somewhere.
		s.fails("unadopt", fleet.ErrRefused, []string{"1bit pkg switch pinned.service hrx-adopt02"}, func() (*fleet.Outcome, error) {
			return in.host.Unadopt(t.Context(), s.unit)
		})
		sw, err := in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{})
		s.do("switch", sw, err)
		gone, err := in.host.Unadopt(t.Context(), s.unit)
		s.do("unadopt", gone, err)
		s.wantFiles()
	})
	t.Run("switched and rolled back", func(t *testing.T) {
		lead("adopt01")
		text := "[Service]\nType=oneshot\nEnvironment=ONEBIT_LLAMA_SERVER=" + server + "\nExecStart=/usr/bin/env ${ONEBIT_LLAMA_SERVER} --port 1\n"
		s, _, two, record := in.written(t, "pinned.service", text, nil)
		sw, err := in.host.Switch(t.Context(), s.unit, two, fleet.SwitchOptions{})
		if s.do("switch", sw, err).From != "hrx-adopt01" {
			t.Errorf("switched: %s", show(sw))
		}
		lead("bbb0002")
		if back := s.rollback(); back.To != "hrx-adopt01" || back.Armed == nil || back.Armed.Package != "hrx-adopt01" {
			t.Errorf("rolled back: %s", show(back))
		}
		if got := s.run(record); !strings.Contains(got, one) {
			t.Errorf("it runs %s, want %s", got, one)
		}
		if further := s.back(again); further.Armed == nil || further.Armed.Package != "hrx-bbb0002" {
			t.Errorf("one further are its own lines: %s", show(further))
		}
		if _, err := in.host.Unswitch(t.Context(), s.unit); err != nil {
			t.Fatal(err)
		}
		s.wantFiles()
	})
	t.Run("a link that is named as a package", func(t *testing.T) {
		link := filepath.Join(in.home, ".local/share/1bit-hrx-current")
		if err := os.Symlink("1bit-hrx-adopt01", link); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(link) })
		s, _, _, _ := in.written(t, "pinned.service", "[Service]\nType=oneshot\nExecStart="+strings.Replace(server, "current", "1bit-hrx-current", 1)+"\n", nil)
		if now := s.status(); now.Armed == nil || now.Armed.Package != "hrx-adopt01" {
			t.Errorf("status: %s", show(now))
		}
		if out := s.adopt(); !strings.Contains(out.Diff, "ONEBIT_LLAMA_SERVER="+one) {
			t.Errorf("adopted: %s", show(out))
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	})
}

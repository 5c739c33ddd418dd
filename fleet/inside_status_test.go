package fleet_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
)

// says checks that the warnings say each of what.
func (s *service) says(name string, got fleet.Service, what ...string) {
	s.Helper()
	for _, want := range what {
		if !strings.Contains(strings.Join(got.Warnings, "\n"), want) {
			s.Errorf("%s: nothing says %q: %s", name, want, show(got))
		}
	}
}

// What is wrong with a service is said as it is, and with the way out.
func testStatusWords(t *testing.T, in *inside) {
	t.Run("it does not stay up", func(t *testing.T) {
		s := in.start(t, "loop", "aaa0001", "RestartSec=60")
		s.switchTo("ddd0004")
		s.kill(s.status().Live.Main.PID)
		var now fleet.Service
		soon(func() bool { now = s.status(); return strings.Contains(now.State, "auto-restart") })
		s.says("crash loop", now, "does not stay up", "SIGKILL", "1bit pkg rollback loop.service --restart goes back")
		inspected, err := s.host.Inspect(t.Context(), s.unit)
		if err != nil || len(inspected) != 1 {
			t.Fatalf("inspected %d, %v", len(inspected), err)
		}
		one := inspected[0]
		found := slices.ContainsFunc(one.Findings, func(f fleet.Finding) bool {
			return f.Check == "failing" && f.Unit == s.unit && f.Remedy == "1bit pkg rollback loop.service --restart goes back"
		})
		if !found || one.Loaded == nil || one.Loaded.StartLimitBurst == 0 || one.Settings == nil || one.Package == nil || one.Package.Name != "hrx-ddd0004" {
			t.Errorf("inspected: findings %+v, loaded %+v, package %+v", one.Findings, one.Loaded, one.Package)
		}
	})
	t.Run("unit file gone", func(t *testing.T) {
		s := in.start(t, "away", "aaa0001")
		text, err := os.ReadFile(s.path(s.unit))
		if err != nil {
			t.Fatal(err)
		}
		s.remove(s.unit)
		s.reload()
		named := s.status()
		s.write(s.unit, string(text))
		if named.State != fleet.StateGone || named.Live == nil || named.Live.Main == nil || named.Live.Main.Package != "hrx-aaa0001" || named.Live.Child == nil {
			t.Errorf("gone: %s", show(named))
		}
		s.says("gone", named, "its processes still run")
		s.reload()
	})
	t.Run("edits that are not loaded", func(t *testing.T) {
		s := in.start(t, "unloaded", "aaa0001")
		const library = "[Service]\nEnvironment=LD_LIBRARY_PATH=%h/.local/share/1bit-hrx-aaa0001/hrx/llama/lib\n"
		s.write(s.unit+".d/hrx.conf", library)
		s.reload()
		s.remove(s.unit + ".d/hrx.conf")
		s.says("drop-in removed", s.status(), "something else than the manager has loaded", "LD_LIBRARY_PATH is nothing in the files", "reload by anybody")
		s.write(s.unit+".d/hrx.conf", library)
	})
	t.Run("what a command says itself", func(t *testing.T) {
		const one, two = "%h/.local/share/1bit-hrx-aaa0001/hrx/llama/", "%h/.local/share/1bit-hrx-bbb0002/hrx/llama/"
		for text, want := range map[string]string{
			"Environment=ID=hrx-ccc0003\nExecStart=/usr/bin/env %h/.local/share/1bit-${ID}/hrx/llama/bin/llama-server x\n":                            "hrx-ccc0003",
			"ExecStart=/bin/sh -c 'cd /tmp; exec " + one + "bin/llama-server -m x'\n":                                                                 "hrx-aaa0001",
			"ExecStart=/bin/sh -c 'exec " + one + "bin/other -m x'\n":                                                                                 "hrx-aaa0001",
			"Environment=ONEBIT_LLAMA_SERVER=" + one + "bin/llama-server\nExecStart=/usr/bin/env ONEBIT_LLAMA_SERVER=" + two + "bin/llama-server x\n": "hrx-bbb0002",
			"Environment=LD_LIBRARY_PATH=" + one + "lib\nExecStart=" + two + "bin/llama-server\n":                                                     "hrx-bbb0002",
		} {
			t.Run(want, func(t *testing.T) {
				s, _, _, _ := in.written(t, "said.service", "[Service]\n"+text, nil)
				now := s.status()
				if now.Armed == nil || now.Armed.Package != want {
					t.Errorf("%s: %s", text, show(now))
				}
				if strings.Contains(text, "aaa0001") && strings.Contains(text, "bbb0002") {
					s.says(text, now, "several packages: hrx-aaa0001, hrx-bbb0002")
				}
			})
		}
	})
	t.Run("what the manager hands to everybody", func(t *testing.T) {
		variable := "ONEBIT_LLAMA_SERVER=" + in.pkgs["bbb0002"].Path + "/hrx/llama/bin/llama-server"
		if out, err := exec.Command("systemctl", "--user", "set-environment", variable).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { exec.Command("systemctl", "--user", "unset-environment", "ONEBIT_LLAMA_SERVER").Run() })
		s, _, _, _ := in.written(t, "given.service", "[Service]\nExecStart=/bin/sleep 60\n", nil)
		if result, err := in.m.Start(t.Context(), s.unit); err != nil || result != "done" {
			t.Fatalf("%s, %v", result, err)
		}
		if now := s.status(); now.Armed != nil || now.Live == nil || now.Live.Main.Package != "" {
			t.Errorf("a service of nothing: %s", show(now))
		}
		front, _, _, _ := in.written(t, "given-front.service", "[Service]\nExecStart=/usr/bin/1bit serve -m x\n", nil)
		if now := front.status(); now.Armed == nil || now.Armed.Package != "hrx-bbb0002" {
			t.Errorf("a front end: %s", show(now))
		}
	})
	t.Run("masked, and none of ours", func(t *testing.T) {
		s, _, _, _ := in.written(t, "none.service", "[Service]\nExecStart=/usr/bin/llama-server --port 1\n", nil)
		s.says("look-alike", s.status(), "looks like an engine and runs no package", "1bit pkg adopt none.service")
		s.write(s.unit, "[Service]\nExecStart=/bin/true\n")
		s.reload()
		s.says("nothing of ours", s.status(), "nothing to do with a package")
		s.remove(s.unit)
		if err := os.Symlink("/dev/null", s.path(s.unit)); err != nil {
			t.Fatal(err)
		}
		s.reload()
		s.says("masked", s.status(), "a link to /dev/null", "systemctl --user unmask none.service lifts it")
	})
}

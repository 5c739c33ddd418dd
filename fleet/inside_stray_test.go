package fleet_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
)

// A server that lies in no package is none that is armed or live, whatever the other variables say.
func testStray(t *testing.T, in *inside) {
	const library = "Environment=LD_LIBRARY_PATH=%h/.local/share/1bit-hrx-aaa0001/hrx/llama/lib"
	s := in.start(t, "stray", "aaa0001", library)
	elsewhere := filepath.Join(in.home, "llama.cpp")
	if out, err := exec.Command("cp", "-al", in.pkgs["aaa0001"].Path+"/hrx/llama", elsewhere).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { os.RemoveAll(elsewhere) })
	server := filepath.Join(elsewhere, "bin/llama-server")

	// It is told before it runs.
	s.write(s.unit+".d/zzz.conf", "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER="+server+"\n")
	s.reload()
	now := s.status()
	warnings := strings.Join(now.Warnings, "\n")
	if now.Armed != nil || now.Live == nil || now.Live.Main.Package != "hrx-aaa0001" || !now.RestartPending ||
		!strings.Contains(warnings, s.path(s.unit+".d/zzz.conf")+":2 sets ONEBIT_LLAMA_SERVER="+server+", which lies in no package") ||
		!strings.Contains(warnings, "LD_LIBRARY_PATH names hrx-aaa0001") {
		t.Errorf("named outside: %s", show(now))
	}
	// No switch would move it, and adopt does not promise one.
	for _, dry := range []bool{true, false} {
		s.fails("adopt", fleet.ErrRefused, []string{"zzz.conf:2", server, "no package"}, s.tryAdopt(dry))
	}
	if _, err := in.m.Stop(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	if result, err := in.m.Start(t.Context(), s.unit); err != nil || result != "done" {
		t.Fatalf("%s, %v", result, err)
	}
	soon(func() bool {
		now = s.status()
		return now.Live != nil && now.Live.Child != nil && now.Health == fleet.HealthOK
	})
	if now.Armed != nil || now.Live == nil || now.Live.Main.Package != "" || now.Live.Child == nil || now.Live.Child.Package != "" ||
		!strings.HasPrefix(now.Live.Child.Path, elsewhere) || now.RestartPending || !strings.Contains(strings.Join(now.Warnings, "\n"), "is "+elsewhere+"/libexec/llama-server, which lies in no package") {
		t.Errorf("runs outside: %s", show(now))
	}
	// The survey says the same.
	survey, err := in.host.Survey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range survey.Services {
		if one.Unit == s.unit && (one.Armed != nil || one.Live == nil || one.Live.Child == nil || !strings.HasPrefix(one.Live.Child.Path, elsewhere)) {
			t.Errorf("survey: %s", show(one))
		}
	}
	s.write(s.unit+".d/zzz.conf", "[Service]\nUnsetEnvironment=ONEBIT_LLAMA_SERVER\n")
	s.reload()
	if now = s.status(); now.Armed != nil || !strings.Contains(strings.Join(now.Warnings, "\n"), "UnsetEnvironment= takes ONEBIT_LLAMA_SERVER away, though") {
		t.Errorf("taken away: %s", show(now))
	}
	// Ours decides over what sorts before it, and over what names no package at all the switch is refused.
	s.remove(s.unit + ".d/zzz.conf")
	s.write(s.unit+".d/hrx.conf", "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER="+server+"\n")
	s.reload()
	if out := s.switchTo("bbb0002"); out.Armed == nil || out.Armed.Package != "hrx-bbb0002" || out.From != "" {
		t.Errorf("switched: %s", show(out))
	}
	if back := s.rollback(); back.Armed != nil {
		t.Errorf("rolled back to what is no package: %s", show(back))
	}
	unit, err := os.ReadFile(s.path(s.unit))
	if err := errors.Join(err, os.WriteFile(s.path(s.unit), []byte(strings.Replace(string(unit), "Environment=ONEBIT", "#Environment=ONEBIT", 1)), 0o644)); err != nil {
		t.Fatal(err)
	}
	s.reload()
	s.fails("switch", fleet.ErrRefused, []string{"hrx.conf:2", server, "no package"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["ccc0003"], fleet.SwitchOptions{})
	})
}

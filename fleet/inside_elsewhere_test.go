package fleet_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
)

// A user's service runs a package that lies in the machine's store: it is switched to it, restarted on it, seen
// live on it, and rolled back from it and to it.
func testElsewhere(t *testing.T, in *inside) {
	here := in.host.Store
	machine := store.Open(filepath.Join(in.home, "machine"), filepath.Join(in.home, "machine-state"))
	folder := filepath.Join(machine.Dir, "1bit-hrx-fff0009")
	for _, args := range [][]string{
		{"mkdir", "-p", machine.Dir},
		{"cp", "-a", in.pkgs["aaa0001"].Path, folder},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	there, err := machine.Import(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	both := store.Open(here.Dir, here.StateDir)
	both.Also = []*store.Store{machine}
	two := *in
	two.host = in.newHost(both)
	found, err := both.Find(t.Context(), "fff0009")
	if err != nil || found.Path != there.Path {
		t.Fatal(found, err)
	}
	two.pkgs = map[string]*store.Package{"aaa0001": in.pkgs["aaa0001"], "fff0009": found}

	s := two.start(t, "elsewhere", "aaa0001")
	s.want(s.switchTo("fff0009").Service, "fff0009", "aaa0001", "aaa0001", true)
	out, err := s.host.Restart(t.Context(), s.unit, 300*time.Millisecond)
	s.want(s.do("restart", out, err).Service, "fff0009", "fff0009", "fff0009", false)
	if w := s.status().Warnings; len(w) > 0 {
		t.Errorf("warnings: %v", w)
	}
	if uses, err := s.host.UsedBy(t.Context(), found); err != nil || !slices.Contains(uses, "live in "+s.unit) {
		t.Errorf("used by %v, %v", uses, err)
	}
	back, err := s.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Restart: true, Watch: 300 * time.Millisecond})
	s.want(s.do("rollback", back, err).Service, "aaa0001", "aaa0001", "aaa0001", false)
	if out, err := s.host.Unblock(t.Context(), s.unit, "hrx-fff0009"); err != nil {
		t.Error(out, err)
	}
	s.restartOn("fff0009")
	s.restartOn("aaa0001")
	back, err = s.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	s.want(s.do("rollback to it", back, err).Service, "fff0009", "aaa0001", "aaa0001", true)
}

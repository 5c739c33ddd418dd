package cmd_test

import (
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// together runs commands of one site at the same time and returns their exit statuses.
func (s installSite) together(commands ...[]string) []int {
	s.t.Helper()
	status := make([]int, len(commands))
	var group sync.WaitGroup
	for i, args := range commands {
		group.Go(func() {
			cmd := exec.Command(s.program, s.args(args...)...)
			if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil {
				s.t.Errorf("%v: %v\n%s", args, err, out)
			} else if status[i] = cmd.ProcessState.ExitCode(); status[i] != 0 && status[i] != 7 {
				s.t.Errorf("%v ended with %d: %s", args, status[i], out)
			}
		})
	}
	group.Wait()
	return status
}

// Processes that install, collect and remove at the same time end well: done, or busy.
func TestTogether(t *testing.T) {
	tools := requireTools(t)
	archives := buildPackages(t, tools.program, "", t.TempDir(), "aaaaaaa", "bbbbbbb")
	site := newInstallSite(t, tools.program)
	install := func(i int) []string { return []string{"pkg", "install", archives[i]} }
	gc := []string{"pkg", "gc", "--keep", "0", "--keep-days", "0"}
	for round := range 20 {
		// The same package twice: both say that it is there.
		if status := site.together(install(0), install(0), install(1)); status[0]+status[1]+status[2] != 0 {
			t.Fatalf("round %d: installs ended with %v", round, status)
		}
		if got := site.packages(); len(got) != 2 || got["hrx-aaaaaaa"] != "ok" || got["hrx-bbbbbbb"] != "ok" {
			t.Fatalf("round %d: after the installs: %v", round, got)
		}
		// What is installed while the rest is collected is whole or gone.
		site.together(gc, install(0), gc, install(1))
		for name, state := range site.packages() {
			if state != "ok" {
				t.Fatalf("round %d: %s is %s", round, name, state)
			}
		}
		if left := site.staged(); len(left) != 0 {
			t.Fatalf("round %d: staging holds %v", round, left)
		}
		mustRun(t, tools.program, site.args("pkg", "verify")...)
		mustRun(t, tools.program, site.args(gc...)...)
		if got := site.packages(); len(got) != 0 {
			t.Fatalf("round %d: gc leaves %v", round, got)
		}
	}
}

// While a switch holds the store, nothing is collected.
func TestGCWaitsForNoSwitch(t *testing.T) {
	tools := requireTools(t)
	site := newRemovalSite(t, tools.program, buildPackages(t, tools.program, "", t.TempDir(), "aaaaaaa"))
	lock, err := unix.Open(filepath.Join(site.home, "state", "store.lock"), unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(lock)
	if err := unix.Flock(lock, unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	gc := []string{"pkg", "gc", "--keep", "0", "--keep-days", "0"}
	if status := site.together(gc); status[0] != 7 || len(site.packages()) != 1 {
		t.Errorf("while it is held gc ended with %d", status[0])
	}
	if err := unix.Flock(lock, unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if status := site.together(gc); status[0] != 0 || len(site.packages()) != 0 {
		t.Errorf("afterwards gc ended with %d", status[0])
	}
}

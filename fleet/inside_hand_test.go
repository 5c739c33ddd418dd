package fleet_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
)

// wrapped lets a unit start through a script, which does as told before the front end takes over.
func (s *service) wrapped(lines ...string) (behave func(how string)) {
	s.Helper()
	script := filepath.Join(s.home, s.unit+".sh")
	s.Cleanup(func() { os.Remove(script) })
	command := strings.Replace(line(read(s.T, s.path(s.unit)), "ExecStart="), "ExecStart="+s.front(), "ExecStart="+script, 1)
	behave = func(how string) {
		s.Helper()
		text := "#!/bin/sh\n" + how + "\nexec " + s.home + "/front-end \"$@\"\n"
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			s.Fatal(err)
		}
	}
	behave("")
	s.write(s.unit+".d/local.conf", "[Service]\nExecStart=\n"+command+"\n"+strings.Join(lines, "\n")+"\n")
	s.reload()
	return behave
}

// Who stops or restarts the service while it is watched is not contradicted: no verdict, nobody blamed.
func testByHand(t *testing.T, in *inside) {
	s := in.start(t, "hand-stopped", "aaa0001")
	behave := s.wrapped()
	for _, tt := range []struct {
		name, how, lines, id string
		health               string
		act                  func(unit string) (string, error)
		runs                 bool
	}{
		{"stopped", "", "", "bbb0002", fleet.HealthOK, s.stop, false},
		{"stopped, and nothing starts it again", "", "Restart=no", "bbb0002", fleet.HealthOK, s.stop, false},
		{"stopped, which the service answers with a failure", "trap 'exit 143' TERM; " + in.home + "/front-end \"$@\" & while :; do wait; done", "Restart=no",
			"bbb0002", fleet.HealthOK, s.stop, false},
		{"stopped while it loads", "", "", "eee0005", fleet.HealthLoading, s.stop, false},
		{"restarted", "", "", "bbb0002", fleet.HealthOK, s.startAgain, true},
	} {
		behave(tt.how)
		s.write(s.unit+".d/more.conf", "[Service]\n"+tt.lines+"\n")
		s.reload()
		before := len(s.chain())
		ended := s.background(t.Context(), in.host, tt.id)
		s.await("hrx-"+tt.id, tt.health)
		time.Sleep(100 * time.Millisecond) // whether its start job has ended or not: either must do
		if result, err := tt.act(s.unit); err != nil || result != "done" {
			t.Fatalf("%s: %s, %v", tt.name, result, err)
		}
		err := <-ended
		if err == nil || errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), "no verdict: ") || !strings.Contains(err.Error(), "stopped") ||
			!strings.Contains(err.Error(), "nothing was taken back") {
			t.Errorf("%s: %v", tt.name, err)
		}
		now := s.status()
		if now.Armed.Package != "hrx-"+tt.id || len(now.Blocked) > 0 || tt.runs != (now.Live != nil) {
			t.Errorf("%s: %s", tt.name, show(now))
		}
		if got, want := strings.Join(s.chain()[before:], ", "), "switch aaa0001>"+tt.id+" armed"; got != want {
			t.Errorf("%s: history %s, want %s", tt.name, got, want)
		}
		s.closedOnce()
		behave("")
		s.homeFrom(tt.id)
	}
}

func (s *service) stop(unit string) (string, error)       { return s.m.Stop(s.Context(), unit) }
func (s *service) startAgain(unit string) (string, error) { return s.m.Restart(s.Context(), unit) }

// homeFrom has the service run the first package again, with nothing blocked.
func (s *service) homeFrom(id string) {
	s.Helper()
	s.rollback()
	if _, err := s.host.Unblock(s.Context(), s.unit, "hrx-"+id); err != nil {
		s.Fatal(err)
	}
	if _, err := s.startAgain(s.unit); err != nil {
		s.Fatal(err)
	}
	s.await("hrx-aaa0001", fleet.HealthOK)
}

// A service that ends by itself is no stop by hand, also where it says that all is well.
func testEndsItself(t *testing.T, in *inside) {
	s := in.start(t, "ends-itself", "aaa0001")
	behave := s.wrapped("Restart=no", "KillMode=mixed")
	wants := s.path("default.target.wants") // what nothing refers to is forgotten as soon as it has ended
	if err := errors.Join(os.MkdirAll(wants, 0o755), os.Symlink("../"+s.unit, filepath.Join(wants, s.unit))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(filepath.Join(wants, s.unit)) })
	s.reload()
	behave("case $ONEBIT_LLAMA_SERVER in *bbb0002*) " + in.home + "/front-end \"$@\" & sleep 3; exit 0;; esac")
	out, err := in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Restart: true, Watch: time.Minute})
	s.returned("ends itself", out, err, "exited with status 0")
}

// What answers has to be of the package, whatever the variables say; a package that is not to blame is not blocked.
func testAlien(t *testing.T, in *inside) {
	s := in.start(t, "alien", "aaa0001")
	alien := filepath.Join(in.home, "alien")
	if out, err := exec.Command("cp", "-al", filepath.Join(in.home, ".local/share/1bit-hrx-aaa0001/hrx/llama"), alien).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { os.RemoveAll(alien) })
	behave := s.wrapped("Environment=LD_LIBRARY_PATH=" + in.home + "/.local/share/1bit-hrx-aaa0001/hrx/llama/lib")
	another := "export ONEBIT_LLAMA_SERVER=" + alien + "/bin/llama-server"
	behave("case $ONEBIT_LLAMA_SERVER in *bbb0002*) " + another + ";; esac")
	out, err := in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Restart: true})
	if !errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), "is not of hrx-bbb0002") && !strings.Contains(err.Error(), "runs from no package") {
		t.Fatalf("%v", err)
	}
	s.want(out.Service, "aaa0001", "aaa0001", "aaa0001", false)
	if len(out.Blocked) > 0 || !strings.Contains(strings.Join(out.Notes, "\n"), "hrx-bbb0002 is not to blame and was not blocked") {
		t.Errorf("%s", show(out))
	}
	behave(another)
	out, err = in.host.Restart(t.Context(), s.unit, 0)
	if err == nil || errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), "nothing was taken back") {
		t.Errorf("what served before and is overruled now: %v, %s", err, show(out))
	}
	if now := s.status(); len(now.Blocked) > 0 {
		t.Errorf("blocked: %s", show(now.Blocked))
	}
	s.chain()
}

// After a rollback a failing restart goes one further back, and says meanwhile what it waits for.
func testReturnFurther(t *testing.T, in *inside) {
	s := in.start(t, "further-return", "aaa0001")
	behave := s.wrapped()
	s.restartOn("bbb0002")
	s.restartOn("ccc0003")
	if _, err := in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Restart: true}); err != nil {
		t.Fatal(err)
	}
	behave("case $ONEBIT_LLAMA_SERVER in *bbb0002*) exit 7;; esac")
	h := *in.host
	var mu sync.Mutex
	var said []string
	h.Progress = func(text string) { mu.Lock(); said = append(said, text); mu.Unlock() }
	out, err := h.Restart(t.Context(), s.unit, 300*time.Millisecond)
	if !errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), "exited with status 7") {
		t.Fatalf("%v", err)
	}
	s.want(out.Service, "aaa0001", "aaa0001", "aaa0001", false)
	if got := strings.Join(out.Notes, "\n"); !strings.Contains(got, "1bit pkg unblock "+s.unit+" hrx-bbb0002") {
		t.Errorf("notes %q", out.Notes)
	}
	s.chain()
	// Nothing is further back than that.
	behave("exit 8")
	if _, err = h.Restart(t.Context(), s.unit, 0); err == nil || !strings.Contains(err.Error(), "nothing to go back to") {
		t.Errorf("at the end: %v", err)
	}
	behave("")
	if out, err = h.Restart(t.Context(), s.unit, 300*time.Millisecond); err != nil {
		t.Fatalf("%v, %s", err, show(out))
	}
	all := strings.Join(said, "\n")
	for _, want := range []string{"waiting for systemd to restart it", "was started, ", "its answers are checked", "watched for 0s of 300ms"} {
		if !strings.Contains(all, s.unit) || !strings.Contains(all, want) {
			t.Errorf("the progress does not say %q: %q", want, said)
		}
	}
}

// An old process that does not end is not the fault of the package that waits for it.
func testOldDoesNotStop(t *testing.T, in *inside) {
	s := in.start(t, "does-not-stop", "aaa0001")
	behave := s.wrapped("TimeoutStopSec=infinity", "TimeoutStartSec=1s", "SendSIGKILL=no")
	behave("case $ONEBIT_LLAMA_SERVER in *aaa0001*) trap '' TERM; " + in.home + "/front-end \"$@\" & while :; do sleep 1; done;; esac")
	if _, err := s.startAgain(s.unit); err != nil {
		t.Fatal(err)
	}
	old := s.await("hrx-aaa0001", fleet.HealthOK).Live.Main.PID
	behave("") // from now on nothing refuses to stop but that one
	t.Cleanup(func() { _ = syscall.Kill(old, syscall.SIGKILL) })
	h := *in.host
	h.LoadDeadline = time.Second
	_, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Restart: true})
	if err == nil || errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), fmt.Sprintf("the old service (process %d) does not stop", old)) {
		t.Errorf("%v", err)
	}
	if now := s.status(); now.Armed.Package != "hrx-bbb0002" || len(now.Blocked) > 0 {
		t.Errorf("%s", show(now))
	}
	s.kill(old)
	s.await("hrx-bbb0002", fleet.HealthOK) // the start that was asked for
	s.homeFrom("bbb0002")
}

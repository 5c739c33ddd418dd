package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/systemd"
)

// stopped makes a unit that points into a package and is not started. lines are added to its [Service] section.
func (in *inside) stopped(t *testing.T, unit, id string, lines ...string) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := &service{T: t, inside: in, unit: unit + ".service", port: l.Addr().(*net.TCPAddr).Port}
	server := filepath.Join(in.home, ".local/share/1bit-hrx-"+id+"/hrx/llama/bin/llama-server")
	s.write(s.unit, fmt.Sprintf("[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=%s\nExecStart=%[2]s/front-end serve -m %[2]s/model.gguf --port %[3]d --parallel 2 --threads 1\nTimeoutStopSec=5s\n%[4]s\n",
		server, in.home, s.port, strings.Join(lines, "\n")))
	t.Cleanup(s.clean)
	s.reload()
	return s
}

// clean stops the unit and removes what there is of it.
func (s *service) clean() {
	background := context.Background() // the test's own has ended
	_, _ = s.m.Stop(background, s.unit)
	for _, name := range s.files() {
		_ = os.Remove(s.path(s.unit+".d", name))
	}
	_ = os.Remove(s.path(s.unit + ".d"))
	_ = os.Remove(s.path(s.unit))
	if err := errors.Join(s.m.Reload(background), s.m.ResetFailed(background, s.unit)); err != nil {
		s.Errorf("end %s: %v", s.unit, err)
	}
}

// asked is a Host whose owner is asked: every question is kept, and answer is called while it is open.
func (s *service) asked(answer func() error) (*fleet.Host, *[]string) {
	h, questions := *s.host, &[]string{}
	h.Authorise = func(act string, notes []string) error {
		*questions = append(*questions, act+"\n"+strings.Join(notes, "\n"))
		if answer == nil {
			return nil
		}
		return answer()
	}
	return &h, questions
}

// The owner is asked once everything is checked, with the findings, and holds nobody up meanwhile.
func testConsent(t *testing.T, in *inside) {
	s := in.stopped(t, "consent", "aaa0001")
	other := in.stopped(t, "consent-neighbour", "aaa0001")
	fresh := in.stopped(t, "consent-first", "aaa0001")
	if _, err := in.m.Unit(t.Context(), fresh.unit); err != nil { // it is loaded without a drop-in
		t.Fatal(err)
	}
	// A unit that nothing has loaded is read anew anyway; these are loaded when they are edited.
	keep := func(unit string) {
		if result, err := in.m.Start(t.Context(), unit); err != nil || result != "done" {
			t.Fatalf("start %s: %s, %v", unit, result, err)
		}
	}
	keep(s.unit)
	keep(other.unit)
	keep(fresh.unit)
	time.Sleep(time.Second) // systemd compares times of change
	other.write(other.unit, "[Service]\nExecStart=/bin/true\n")
	fresh.write(fresh.unit+".d/x.conf", "[Service]\nNice=1\n")
	s.write(s.unit+".d/hrx.conf", "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER="+filepath.Join(in.home, ".local/share/1bit-hrx-aaa0001/hrx/llama/bin/llama-server")+"\n")

	h, questions := s.asked(func() error { return fmt.Errorf("%w: the owner said no", fleet.ErrRefused) })
	downgrade := func(from string) []string { return []string{"a downgrade from " + from} }
	s.fails("the owner says no", fleet.ErrRefused, []string{"said no"}, func() (*fleet.Outcome, error) {
		return h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Notes: downgrade})
	})
	if len(*questions) != 1 {
		t.Fatalf("asked %q", *questions)
	}
	for _, want := range []string{
		"switch consent.service to hrx-bbb0002\n", "shadows " + s.path(s.unit+".d/hrx.conf") + ":2", "pending edits of " + other.unit,
		"pending edits of " + fresh.unit, "edits of the unit itself: " + s.path(s.unit+".d/hrx.conf"), "a downgrade from hrx-aaa0001",
	} {
		if !strings.Contains((*questions)[0], want) {
			t.Errorf("the question does not say %q: %q", want, (*questions)[0])
		}
	}
	s.wantFiles("hrx.conf")

	// What is wrong comes before the question.
	s.write(s.unit+".d/zzz.conf", "[Service]\nUnsetEnvironment=ONEBIT_LLAMA_SERVER\n")
	s.fails("something wins", fleet.ErrRefused, []string{"zzz.conf:2"}, func() (*fleet.Outcome, error) {
		return h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	s.remove(s.unit + ".d/zzz.conf")
	damaged := *in.pkgs["bbb0002"]
	damaged.State, damaged.Detail = "broken", "a file is gone"
	s.fails("a broken package", packager.ErrIntegrity, nil, func() (*fleet.Outcome, error) {
		return h.Switch(t.Context(), s.unit, &damaged, fleet.SwitchOptions{})
	})
	s.fails("no such unit", systemd.ErrNoUnit, nil, func() (*fleet.Outcome, error) {
		return h.Switch(t.Context(), "no-such-unit", in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	if len(*questions) != 1 {
		t.Errorf("asked for what cannot be done: %q", (*questions)[1:])
	}

	// Nobody waits for the owner, and what he agreed to is what is done.
	h, _ = s.asked(func() error {
		quick := *in.host
		quick.LockWait = 2 * time.Second
		_, err := quick.Switch(t.Context(), s.unit, in.pkgs["ccc0003"], fleet.SwitchOptions{})
		return err
	})
	if _, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{}); !errors.Is(err, fleet.ErrRefused) ||
		!strings.Contains(err.Error(), "moved from hrx-aaa0001 to hrx-ccc0003") {
		t.Errorf("switched meanwhile: %v", err)
	}
	h, _ = s.asked(func() error {
		s.write(s.unit+".d/late.conf", "[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=/elsewhere\n")
		return nil
	})
	s.fails("a line that came meanwhile", fleet.ErrRefused, []string{"changed since", "late.conf"}, func() (*fleet.Outcome, error) {
		defer s.remove(s.unit + ".d/late.conf")
		return h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	h, questions = s.asked(nil)
	out, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	s.do("a yes", out, err)
	if out, err = h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{}); err != nil || out.Changed || len(*questions) != 1 {
		t.Errorf("asked where nothing changes: %q, %s, %v", *questions, show(out), err)
	}
	if got := s.chain(); !slices.Equal(got, []string{"switch aaa0001>ccc0003 armed", "switch ccc0003>bbb0002 armed"}) {
		t.Errorf("history %v", got)
	}

	// So it is for a restart, and for letting go.
	meanwhile := func(id string) func() error {
		return func() error {
			_, err := in.host.Switch(t.Context(), s.unit, in.pkgs[id], fleet.SwitchOptions{})
			return err
		}
	}
	h, _ = s.asked(meanwhile("ccc0003"))
	if _, err := h.Restart(t.Context(), s.unit, 0); !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "moved from hrx-bbb0002 to hrx-ccc0003") {
		t.Errorf("switched before a restart: %v", err)
	}
	h, _ = s.asked(meanwhile("bbb0002"))
	if _, err := h.Unswitch(t.Context(), s.unit); !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("switched before it was let go of: %v", err)
	}
}

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
)

func testRestart(t *testing.T, in *inside) {
	s := in.start(t, "restart", "aaa0001")
	before := s.status().Live.Main.PID
	out, err := in.host.Restart(t.Context(), s.unit, 0)
	s.do("restart", out, err)
	if !out.Restarted || out.Returned || out.From != "hrx-aaa0001" || out.To != "hrx-aaa0001" || out.Live.Main.PID == before {
		t.Errorf("restart: %s", show(out))
	}
	out = s.restartOn("bbb0002")
	s.want(out.Service, "bbb0002", "bbb0002", "bbb0002", false)
	if out.From != "hrx-aaa0001" || out.To != "hrx-bbb0002" || !out.Restarted || out.Health != fleet.HealthOK {
		t.Errorf("switch with restart: %s", show(out))
	}
	back, err := in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Restart: true})
	s.do("rollback with restart", back, err)
	s.want(back.Service, "aaa0001", "aaa0001", "aaa0001", false)
	want := "restart aaa0001>aaa0001 serves, switch aaa0001>bbb0002 armed, restart bbb0002>bbb0002 serves, " +
		"rollback bbb0002>aaa0001 armed, restart aaa0001>aaa0001 serves"
	if got := strings.Join(s.chain(), ", "); got != want {
		t.Errorf("history %s\nwant %s", got, want)
	}
}

// broken says what each broken package must be given back for.
var broken = map[string]string{
	"ddd0004": "exited with status 1",
	"eee0005": "no answer within",
	"fff0006": "null log-probabilit",
}

func testReturn(t *testing.T, in *inside) {
	s := in.start(t, "return", "aaa0001")
	s.restartOn("bbb0002")
	for id, reason := range broken {
		s.giveBack(id, "bbb0002", reason)
	}
	s.wantFiles(ours) // a rollback would remove it, as before
	if now := s.status(); len(now.Blocked) != len(broken) {
		t.Errorf("blocked: %s", show(now.Blocked))
	}
	s.chain()
}

func testReturnFromFirst(t *testing.T, in *inside) {
	s := in.start(t, "firstbad", "aaa0001")
	s.giveBack("ddd0004", "aaa0001", broken["ddd0004"])
	s.wantFiles(prev)
	// What is blocked is remembered without an active file, and by the next one.
	s.restartOn("ccc0003")
	if now := s.status(); len(now.Blocked) != 1 || now.Blocked[0].Package != "hrx-ddd0004" {
		t.Errorf("blocked: %s", show(now.Blocked))
	}
	s.wantFiles(ours)
}

// giveBack switches to a broken package with a restart and checks that the service went back to the old one.
func (s *service) giveBack(id, old, reason string) {
	s.Helper()
	h := *s.host
	if id == "eee0005" { // it hangs for as long; the one that comes back has that time, too
		h.LoadDeadline = 10 * time.Second
	}
	out, err := h.Switch(s.Context(), s.unit, s.pkgs[id], fleet.SwitchOptions{Restart: true})
	if !errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), reason) {
		s.Fatalf("%s: %v, want a return because of %q", id, err, reason)
	}
	if !out.Returned || !out.Restarted || out.To != "hrx-"+old || out.Health != fleet.HealthOK {
		s.Errorf("%s: %s", id, show(out))
	}
	s.want(out.Service, old, old, old, false)
	last := out.Blocked[len(out.Blocked)-1]
	if last.Package != "hrx-"+id || !strings.Contains(last.Reason, reason) {
		s.Errorf("%s: blocked %s", id, show(out.Blocked))
	}
	s.fails("again", fleet.ErrRefused, []string{"blocked", reason}, func() (*fleet.Outcome, error) {
		return h.Switch(s.Context(), s.unit, s.pkgs[id], fleet.SwitchOptions{})
	})
	acts := s.chain()
	want := fmt.Sprintf("switch %[2]s>%[1]s armed, restart %[1]s>%[1]s failed, return %[1]s>%[2]s armed, restart %[2]s>%[2]s serves", id, old)
	if got := strings.Join(acts[max(0, len(acts)-4):], ", "); got != want {
		s.Errorf("history ends %s\nwant %s", got, want)
	}
}

// A service that answers and then dies is given back too, whichever of its processes it is.
func testDiesLater(t *testing.T, in *inside) {
	s := in.start(t, "later-death", "aaa0001")
	for reason, pick := range map[string]func(*fleet.Live) int{
		"killed by signal 9":    func(l *fleet.Live) int { return l.Main.PID },
		"ended and another was": func(l *fleet.Live) int { return l.Child.PID },
	} {
		old, killed := s.status().Live.Main.PID, make(chan struct{})
		go func() {
			defer close(killed)
			var now fleet.Service
			if !soon(func() bool {
				now = s.status()
				return now.Live != nil && now.Live.Main != nil && now.Live.Main.PID != old && now.Live.Child != nil && now.Health == fleet.HealthOK
			}) {
				t.Error("the new process did not come")
				return
			}
			time.Sleep(2 * time.Second) // it has been found good, and is watched
			s.kill(pick(now.Live))
		}()
		out, err := in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Restart: true, Watch: 20 * time.Second})
		<-killed
		if !errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), reason) {
			t.Fatalf("%v, want a return because of %q", err, reason)
		}
		s.want(out.Service, "aaa0001", "aaa0001", "aaa0001", false)
		if _, err := in.host.Unblock(t.Context(), s.unit, "hrx-bbb0002"); err != nil {
			t.Fatal(err)
		}
	}
}

// An answer counts only if the unit's own process gives it.
func testForeignServer(t *testing.T, in *inside) {
	s := in.start(t, "foreign", "aaa0001")
	if _, err := in.m.Stop(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) })}
	go server.Serve(l) //nolint:errcheck // ends with Close
	defer server.Close()
	h := *in.host
	h.LoadDeadline = 6 * time.Second
	out, err := h.Restart(t.Context(), s.unit, 0)
	if err == nil || errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), "nothing to go back to") || out.Health == fleet.HealthOK {
		t.Errorf("a foreign server answers: %v, %s", err, show(out))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Restart(ctx, s.unit, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
)

// Every way in which a start can fail is told apart, and the service goes back each time.
func testStartFailures(t *testing.T, in *inside) {
	s := in.start(t, "start-failures", "aaa0001")
	unit, err := os.ReadFile(s.path(s.unit))
	if err != nil {
		t.Fatal(err)
	}
	local := s.unit + ".d/local.conf"
	front := filepath.Join(in.home, "front-end")
	script := filepath.Join(in.home, "start-failures.sh")
	t.Cleanup(func() { os.Remove(script) })
	// The new package behaves in its own way, the one before as ever.
	behave := func(how string) {
		text := "#!/bin/sh\ncase $ONEBIT_LLAMA_SERVER in *bbb0002*)\n" + how + "\n;; esac\nexec " + front + " \"$@\"\n"
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := strings.Replace(line(string(unit), "ExecStart="), "ExecStart="+in.front(), "ExecStart="+script, 1)
	for name, tt := range map[string]struct {
		how    string
		lines  string
		reason []string
		h      func(*fleet.Host)
	}{
		// journald has to see a user's process while it lives, or it cannot tell whose the line is.
		"exits":       {how: "echo no usable device >&2; sleep 1; exit 41", reason: []string{"exited with status 41", "no usable device"}},
		"is killed":   {how: "kill -SEGV $$", reason: []string{"killed by signal 11 (SIGSEGV)"}},
		"exits later": {how: "sleep 0.3; exit 42", reason: []string{"exited with status 42"}},
		"cannot be executed": {lines: "ExecStart=\nExecStart=/bin/sh -c 'case $ONEBIT_LLAMA_SERVER in *bbb0002*) exit 203;; esac; exec " + strings.TrimPrefix(command, "ExecStart=") + "'",
			reason: []string{"status 203: its program could not be executed"}},
		"its condition fails": {lines: "ExecStartPre=/bin/sh -c 'case $ONEBIT_LLAMA_SERVER in *bbb0002*) exit 5;; esac'", reason: []string{"ExecStartPre="}},
	} {
		behave(tt.how)
		s.write(local, "[Service]\nExecStart=\n"+command+"\n"+tt.lines+"\n")
		s.reload()
		h := *in.host
		out, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Restart: true, Watch: 500 * time.Millisecond})
		s.returned(name, out, err, tt.reason...)
	}
}

// returned checks that an act failed for a reason and that the service serves from the first package again, and lets
// the package that failed in again.
func (s *service) returned(name string, out *fleet.Outcome, err error, reason ...string) {
	s.Helper()
	if !errors.Is(err, fleet.ErrReturned) {
		s.Errorf("%s: %v, want a return because of %q", name, err, reason)
	} else {
		for _, want := range reason {
			if !strings.Contains(err.Error()+strings.Join(out.Notes, "\n"), want) {
				s.Errorf("%s: %q does not say %q, nor do the notes %q", name, err, want, out.Notes)
			}
		}
		s.want(out.Service, "aaa0001", "aaa0001", "aaa0001", false)
	}
	if _, err := s.host.Unblock(s.Context(), s.unit, "hrx-bbb0002"); err != nil {
		s.Errorf("%s: %v", name, err)
	}
}

func (in *inside) front() string {
	if in.uid == 0 {
		return in.home + "/front-end"
	}
	return "%h/front-end"
}

// line is the first line of a text that begins so.
func line(text, prefix string) string {
	for one := range strings.Lines(text) {
		if strings.HasPrefix(one, prefix) {
			return strings.TrimSpace(one)
		}
	}
	return ""
}

// READY=1 that never comes is no crash, whoever answers meanwhile; a limit of infinity still ends.
func testReady(t *testing.T, in *inside) {
	s := in.start(t, "ready", "aaa0001")
	script := filepath.Join(in.home, "ready.sh")
	t.Cleanup(func() { os.Remove(script) })
	command := strings.Replace(line(read(t, s.path(s.unit)), "ExecStart="), "ExecStart="+in.front(), "ExecStart="+script, 1)
	ready := "systemd-notify --ready --pid=$$"
	run := func(how string) {
		text := "#!/bin/sh\ncase $ONEBIT_LLAMA_SERVER in *bbb0002*)\n" + how + "\n;; *) " + ready + ";; esac\nexec " + in.home + "/front-end \"$@\"\n"
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		how, limit, access string
		deadline           time.Duration
		reason             []string
	}{
		"it answers and never says so": {"", "5s", "all", 0,
			[]string{"READY=1 did not come within TimeoutStartSec=5s (Type=notify)", "although it answered", "NotifyAccess="}},
		"it loads for too long": {"sleep 60", "3s", "all", 0, []string{"READY=1 did not come within TimeoutStartSec=3s"}},
		"it dies before":        {"exit 7", "20s", "all", 0, []string{"exited with status 7 before READY=1"}},
		"there is no limit":     {"sleep 60", "infinity", "all", 5 * time.Second, []string{"READY=1 did not come within", "TimeoutStartSec=infinity"}},
	} {
		run(tt.how)
		s.write(s.unit+".d/local.conf", fmt.Sprintf("[Service]\nType=notify\nNotifyAccess=%s\nTimeoutStartSec=%s\nTimeoutStopSec=1s\nExecStart=\n%s\n", tt.access, tt.limit, command))
		s.reload()
		h := *in.host
		if tt.deadline > 0 {
			h.LoadDeadline = tt.deadline
		}
		out, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Restart: true})
		s.returned(name, out, err, tt.reason...)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The failed package may use up the start limit: the one that comes back starts all the same.
func testLimitUsedUp(t *testing.T, in *inside) {
	s := in.start(t, "limit-used-up", "aaa0001", "StartLimitInterval=120", "StartLimitBurst=3")
	h := *in.host
	out, err := h.Switch(t.Context(), s.unit, in.pkgs["ddd0004"], fleet.SwitchOptions{Restart: true})
	if !errors.Is(err, fleet.ErrReturned) || !strings.Contains(err.Error(), "exited with status 1") {
		t.Fatalf("%v", err)
	}
	s.want(out.Service, "aaa0001", "aaa0001", "aaa0001", false)
}

// What depends on the service and went down with it is named, unless it came back.
func testDependants(t *testing.T, in *inside) {
	s := in.start(t, "needed", "aaa0001")
	for unit, section := range map[string]string{
		"needs-bound.service": "BindsTo=needed.service\nAfter=needed.service", "needs-part.service": "PartOf=needed.service\nAfter=needed.service",
		"needs-req.service": "Requires=needed.service\nAfter=needed.service", "needs-none.service": "Wants=needed.service",
	} {
		other := &service{T: t, inside: in, unit: unit}
		s.write(unit, "[Unit]\n"+section+"\n[Service]\nExecStart=/bin/sleep 1000\n")
		t.Cleanup(other.clean)
	}
	s.reload()
	for _, unit := range []string{"needs-bound", "needs-part", "needs-req", "needs-none"} {
		if _, err := in.m.Start(t.Context(), unit); err != nil {
			t.Fatal(err)
		}
	}
	s.switchTo("ddd0004")
	h, questions := s.asked(nil)
	out, err := h.Restart(t.Context(), s.unit, 0)
	if !errors.Is(err, fleet.ErrReturned) {
		t.Fatal(err)
	}
	notes := strings.Join(out.Notes, "\n")
	for _, unit := range []string{"needs-bound.service", "needs-part.service", "needs-req.service", "needs-none.service"} {
		up, err := in.m.IsUp(t.Context(), unit)
		if err != nil {
			t.Fatal(err)
		}
		if said := strings.Contains(notes, unit+" depends on it, went down"); said == up {
			t.Errorf("%s is up: %v, and the notes are %q", unit, up, out.Notes)
		}
	}
	if !strings.Contains(notes, "needs-bound.service") {
		t.Errorf("nothing went down: %q", out.Notes)
	}
	if len(*questions) != 1 || !strings.Contains((*questions)[0], "stops what depends on it: needs-bound.service, needs-part.service, needs-req.service") ||
		!strings.Contains((*questions)[0], "it runs hrx-aaa0001; the restart brings hrx-ddd0004") {
		t.Errorf("asked %q", *questions)
	}
}

// An answer counts only from the new process, and whoever holds its port is named.
func testAnsweredByAnother(t *testing.T, in *inside) {
	s := in.start(t, "answered", "aaa0001", "KillMode=process", "Restart=no")
	t.Cleanup(func() {
		background := context.Background()
		if u, err := in.m.Unit(background, s.unit); err == nil && u.ControlGroup != "" {
			_ = os.WriteFile(filepath.Join("/sys/fs/cgroup", u.ControlGroup, "cgroup.kill"), []byte("1"), 0)
		}
	})
	old := s.status().Live
	// The front end dies and its server goes on: the old process answers on the port.
	s.write(s.unit+".d/local.conf", "[Service]\nKillMode=process\nKillSignal=SIGKILL\n")
	s.reload()
	h := *in.host
	h.LoadDeadline = 5 * time.Second
	out, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Restart: true})
	if err == nil || out.Health == fleet.HealthOK && out.Live.Main != nil && out.Live.Main.Package == "hrx-bbb0002" {
		t.Fatalf("the old process answers: %v, %s", err, show(out))
	}
	for _, want := range []string{fmt.Sprintf("port %d is held by process %d (llama-server)", s.port, old.Child.PID), "outlived its stop"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if now := s.status(); len(now.Blocked) > 0 {
		t.Errorf("a package that is not to blame is blocked: %s", show(now.Blocked))
	}
	s.kill(old.Child.PID)
	if _, err := in.m.Stop(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	s.remove(s.unit + ".d/local.conf")
	s.write(s.unit, strings.ReplaceAll(read(t, s.path(s.unit)), "KillMode=process\n", ""))
	s.reload()
	// A server of nobody's, and one of another unit.
	for name, start := range map[string]func() (end func()){
		"no service": func() func() {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ok"}`) })}
			go server.Serve(l) //nolint:errcheck // ends with Close
			return func() { server.Close() }
		},
		"thief.service": func() func() {
			thief := &service{T: t, inside: in, unit: "thief.service"}
			thief.write(thief.unit, strings.ReplaceAll(read(t, s.path(s.unit)), "bbb0002", "aaa0001"))
			thief.reload()
			if _, err := in.m.Start(t.Context(), thief.unit); err != nil {
				t.Fatal(err)
			}
			thief.await("hrx-aaa0001", fleet.HealthOK)
			return thief.clean
		},
	} {
		if _, err := in.m.Stop(t.Context(), s.unit); err != nil {
			t.Fatal(err)
		}
		end := start()
		_, err := h.Restart(t.Context(), s.unit, 0)
		end()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is held by process ", s.port)) || !strings.Contains(err.Error(), "which belongs to "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Other kinds of unit are restarted and checked like any, or refused with a reason.
func testKinds(t *testing.T, in *inside) {
	s := in.start(t, "kinds", "aaa0001")
	command := strings.TrimPrefix(line(read(t, s.path(s.unit)), "ExecStart="), "ExecStart=")
	for name, lines := range map[string]string{
		"no restarts":                "Restart=no",
		"forking":                    "Type=forking\nRestart=no\nExecStart=\nExecStart=/bin/sh -c '" + command + " & sleep 0.3'",
		"oneshot":                    "Type=oneshot\nRestart=no\nRemainAfterExit=yes\nExecStart=\nExecStart=/bin/sh -c '" + command + " & sleep 0.3'",
		"oneshot that does not stay": "Type=oneshot\nRestart=no\nExecStart=\nExecStart=/bin/true",
	} {
		s.write(s.unit+".d/local.conf", "[Service]\n"+lines+"\n")
		s.reload()
		h := *in.host
		before := s.chain()
		out, err := h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{Restart: true, Watch: 200 * time.Millisecond})
		if strings.HasSuffix(name, "not stay") {
			if !errors.Is(err, fleet.ErrRefused) || !strings.Contains(err.Error(), "RemainAfterExit") || !slices.Equal(s.chain(), before) {
				t.Errorf("%s: %v, %v", name, err, s.chain())
			}
			continue
		}
		if err != nil || out.Health != fleet.HealthOK {
			t.Errorf("%s: %v, %s", name, err, show(out))
		}
		if out, err = h.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Restart: true}); err != nil {
			t.Errorf("%s: %v, %s", name, err, show(out))
		}
		if _, err := h.Unblock(t.Context(), s.unit, "hrx-bbb0002"); err != nil {
			t.Fatal(err)
		}
	}
}

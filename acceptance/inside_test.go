package acceptance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/testhost"
	"github.com/1bit-systems/pkg/systemd"
)

// beInside tells the test binary that it runs under the real systemd of a test
// host.
const beInside = "ACCEPTANCE_TEST_INSIDE"

// Under a real systemd server and neighbour run in scopes of their own, and a
// run that is a transient unit is followed, killed and resumed.
func TestUnderSystemd(t *testing.T) {
	if os.Getenv(beInside) != "" {
		insideScopes(t)
		insideDetached(t)
		return
	}
	host := testhost.Require(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := host.Bring(self)
	if err != nil {
		t.Fatal(err)
	}
	cmd := host.Command(t.Context(), host.User, program, "-test.run=^TestUnderSystemd$", "-test.v", "-test.timeout=10m")
	cmd.Env = append(cmd.Env, beInside+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("inside:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

func userManager(t *testing.T) *systemd.Manager {
	t.Helper()
	m, err := systemd.Connect(t.Context(), systemd.ConnectOptions{Scope: systemd.ScopeUser, UID: os.Getuid()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// The neighbour of this test leaves a process behind that has left its group.
const leaver = "setsid sleep 321 & while :; do echo busy; sleep 0.05; done"

func insideScopes(t *testing.T) {
	m := userManager(t)
	p := fakePackage(t, "works")
	dir := filepath.Join(t.TempDir(), "evidence")
	plan := fakePlan(t, p, "", fmt.Sprintf("neighbour: {kind: command, args: [/bin/sh, -c, %q], proof: busy}\n", leaver))
	v := soak(t, RunOptions{Plan: plan, Package: p, Evidence: dir, Bus: m})
	if v.Verdict != Pass {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
	scopes := 0
	eachRecord(t, dir, func(r *record) {
		switch r.Kind {
		case recordProcess:
			if q, err := decode[processRecord](r.line); err != nil || !strings.HasSuffix(q.Scope, ".scope") {
				t.Errorf("%+v, %v", q, err)
			}
			scopes++
		case recordStartup:
			if s, err := decode[startupRecord](r.line); err != nil || !strings.HasSuffix(s.Contained, ".scope") {
				t.Errorf("%+v, %v", s, err)
			}
		}
	})
	if scopes < 2 {
		t.Errorf("%d processes in scopes, want server and neighbour", scopes)
	}
	noneLeft(t, "sleep\x00321")
	noScopeLeft(t, m)
}

// noScopeLeft waits until systemd has put away the scopes, which are empty.
func noScopeLeft(t *testing.T, m *systemd.Manager) {
	t.Helper()
	until(t, "the end of all scopes", func() bool {
		left, err := m.Scopes(t.Context(), "1bit-soak-*")
		return err == nil && len(left) == 0
	})
}

func insideDetached(t *testing.T) {
	m := userManager(t)
	p := fakePackage(t, "works")
	relaunch(t, p, "exec ", "") // the launcher ends with the runner, its child by nobody but the watcher
	plan := fakePlan(t, p, "", fmt.Sprintf("neighbour: {kind: command, args: [/bin/sh, -c, %q], proof: busy}\nattempts: 3\nload: {requests: 600, prompt_tokens: [24], n_predict: [20]}\n", leaver))
	k := newKillable(t, p, plan)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const unit = "1bit-soak-test.service"
	if err := m.StartTransientService(t.Context(), systemd.TransientService{
		Name: unit, Description: "a soak", Args: []string{self}, Output: filepath.Join(k.dir, "out"),
		Env: []string{beRunner + "=" + k.dir, beInside + "=1"},
	}); err != nil {
		t.Fatal(err)
	}
	killed := false
	err = Watch(t.Context(), k.evidence, 20*time.Millisecond, func(s Status) {
		if s.Requests < 60 || killed {
			return
		}
		killed = true
		if err := m.KillUnit(t.Context(), unit, int32(syscall.SIGKILL)); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		out, _ := os.ReadFile(filepath.Join(k.dir, "out"))
		t.Fatalf("%v; the runner said %q", err, out)
	}
	until(t, "the end of the server of a unit that was killed whole", func() bool { return len(running(filepath.Join(p.Path, "m.gguf"))) == 0 })
	before := k.recorded()
	v, err := k.resume(t, m)
	if err != nil {
		t.Fatal(err)
	}
	if v.Arms.Invalid != 1 || v.Arms.Clean != 1 || k.recorded() < before+600 {
		t.Errorf("%s: %s, %+v, %d requests and then %d", v.Verdict, v.Reason, v.Arms, before, k.recorded())
	}
	noneLeft(t, p.Path)
	noneLeft(t, "sleep\x00321")
	noScopeLeft(t, m)
	_ = m.ResetFailed(t.Context(), unit)
	if out, err := exec.Command("systemctl", "--user", "is-active", unit).Output(); err == nil {
		t.Errorf("the unit is %s", out)
	} else if !errors.As(err, new(*exec.ExitError)) {
		t.Error(err)
	}
}

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// detachRun runs the same command as a systemd service that outlives the session.
func (a *app) detachRun(ctx context.Context, plan, dir string, p, baseline *store.Package) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%w: %s is not empty", acceptance.ErrEvidence, dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the evidence folder: %w", err)
	}
	evidence, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("find the evidence folder: %w", err)
	}
	if _, err := acceptance.ReadyPlan(plan); err != nil {
		if plan, err = filepath.Abs(plan); err != nil {
			return fmt.Errorf("find the plan: %w", err)
		}
	}
	args := []string{"run", plan, "--package", p.Name, "--evidence", evidence}
	if baseline != nil {
		args = append(args, "--baseline", baseline.Name)
	}
	return a.detachSoak(ctx, p.Name, evidence, args)
}

// detachSoak starts "accept" with arguments of its own as a systemd service, and returns.
func (a *app) detachSoak(ctx context.Context, what, evidence string, args []string) error {
	if pid, under := claim.Under("/proc", a.environ); under {
		return fmt.Errorf("run the soak as a unit: it would outlive the claim under which this runs, that of process %d: leave --detach out, then the claim holds for as long as the soak runs", pid)
	}
	m, err := a.host().Connect(ctx)
	if err != nil {
		return fmt.Errorf("run the soak as a unit: %w", err)
	}
	defer m.Close()
	s, err := a.soakService(what, evidence, args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(evidence, 0o755); err != nil { // so that it can be watched at once
		return fmt.Errorf("make the evidence folder: %w", err)
	}
	if err := m.StartTransientService(ctx, s); err != nil {
		return err
	}
	if user := a.getenv("USER"); m.Scope() == systemd.ScopeUser && user != "" && !systemd.Lingers("/", user) {
		fmt.Fprintf(a.stderr, "note: %[1]s does not linger, so the soak ends with the last session of %[1]s: loginctl enable-linger %[1]s\n", user)
	}
	if !begun(ctx, evidence) {
		fmt.Fprintf(a.stderr, "note: it has not begun within %s: systemctl%s status %s tells why\n", beginWithin, scopeFlag(m.Scope()), s.Name)
	}
	return a.show(map[string]string{"unit": s.Name, "evidence": evidence},
		say("the soak of %s runs as %s; its evidence is in\n%s", what, s.Name, evidence))
}

// beginWithin is how long a detached soak may take until it holds its evidence folder.
const beginWithin = 10 * time.Second

// begun waits until a run goes on in a folder, so that it can be watched from then on.
func begun(ctx context.Context, dir string) bool {
	ctx, cancel := context.WithTimeout(ctx, beginWithin)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !acceptance.Running(dir) {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// scopeFlag is what systemctl needs to find a unit of a scope.
func scopeFlag(s systemd.Scope) string {
	if s == systemd.ScopeUser {
		return " --user"
	}
	return ""
}

// soakService is this program with the same settings, all of them as flags, in a unit of its own.
func (a *app) soakService(what, evidence string, args []string) (s systemd.TransientService, err error) {
	self, err := os.Executable()
	if err != nil {
		return s, fmt.Errorf("find this program: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return s, fmt.Errorf("find the working folder: %w", err)
	}
	s = systemd.TransientService{
		Name:        "1bit-accept-" + unitPart(filepath.Base(evidence)) + ".service",
		Description: "soak of " + what,
		Args: append([]string{self, "--quiet", "--scope", a.config.Scope, "--data-home", a.config.DataHome,
			"--state-home", a.config.StateHome, "accept"}, args...),
		Dir: here,
	}
	for _, name := range []string{"PATH", "HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR"} {
		if value := a.getenv(name); value != "" {
			s.Env = append(s.Env, name+"="+value)
		}
	}
	return s, nil
}

// unitPart keeps of a text what the name of a unit may have.
func unitPart(text string) string {
	out := []byte(text)
	for i, c := range out {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			out[i] = '-'
		}
	}
	return string(out)
}

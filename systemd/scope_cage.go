package systemd

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// killLimit bounds how long a manager may take to send a signal.
const killLimit = 30 * time.Second

// A ScopeCage is a scope that holds processes and all that they start, also what leaves its process group and what
// outlives whoever made it.
type ScopeCage struct {
	manager *Manager
	unit    Unit
	root    string
}

// StartScopeCage puts processes that run into a scope of their own, as StartScope does. root is where proc and sys are.
func (m *Manager) StartScopeCage(ctx context.Context, root, name, description string, pids ...int) (*ScopeCage, error) {
	if err := m.StartScope(ctx, name, description, pids...); err != nil {
		return nil, err
	}
	return m.FindScopeCage(ctx, root, name)
}

// FindScopeCage is a scope that is there already. The error wraps ErrNoUnit if there is none of that name.
func (m *Manager) FindScopeCage(ctx context.Context, root, name string) (*ScopeCage, error) {
	group, err := m.ScopeGroup(ctx, name)
	if err != nil {
		return nil, err
	}
	return &ScopeCage{m, Unit{ID: name, ControlGroup: group}, root}, nil
}

// Members lists what lives in the scope, none once it is gone.
func (c *ScopeCage) Members() ([]int, error) { return scopeMembers(c.root, &c.unit) }

// Kill sends SIGKILL to all of it.
func (c *ScopeCage) Kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), killLimit)
	defer cancel()
	return c.manager.KillUnit(ctx, c.unit.ID, int32(syscall.SIGKILL))
}

// OwnScope is the scope that we run in ourselves. It needs no manager.
type OwnScope struct {
	unit Unit
	root string
}

// FindOwnScope finds our own scope. ok is false if we run in none of that name. root is where proc and sys are.
func FindOwnScope(root, name string) (s OwnScope, ok bool) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return s, false
	}
	for line := range strings.Lines(string(text)) {
		// 0::/user.slice/… or, on a host with cgroup v1, 1:name=systemd:/user.slice/…
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) == 3 && (fields[1] == "" || fields[1] == "name=systemd") && filepath.Base(fields[2]) == name {
			return OwnScope{Unit{ID: name, ControlGroup: fields[2]}, root}, true
		}
	}
	return s, false
}

// Members lists what lives in the scope, but for ourselves.
func (s OwnScope) Members() ([]int, error) {
	pids, err := scopeMembers(s.root, &s.unit)
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() }), err
}

func scopeMembers(root string, u *Unit) ([]int, error) {
	return Processes(filepath.Join(root, "proc"), filepath.Join(root, "sys/fs/cgroup"), u)
}

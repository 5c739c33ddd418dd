package acceptance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/systemd"
)

// Roles of the processes of a life.
const (
	roleServer    = "server"
	roleNeighbour = "neighbour"
)

// A fence starts the processes of one life, each in a scope of its own where a
// manager is there to make one. A scope holds what leaves its process group and
// what outlives the runner.
type fence struct {
	bus    *systemd.Manager // nil: process groups alone
	prefix string           // of the names of scopes: those of this life and no other
	root   string           // where proc and sys are
	record func(processRecord)

	mu      sync.Mutex
	count   int
	running []*engine.Process // and those that ended of late
}

// scopePrefix begins the names of all scopes of a run.
func scopePrefix(run string) string { return "1bit-soak-" + run + "-" }

// start starts a program. where says what holds it: a scope, or "process group".
func (f *fence) start(ctx context.Context, role string, o engine.ProcessOptions) (p *engine.Process, where string, err error) {
	scope := ""
	if f.bus != nil {
		scope = f.name(role)
		o.Cage = func(pid int) (engine.Cage, error) { return f.cage(ctx, scope, filepath.Base(o.Program), pid) }
	}
	if p, err = engine.StartProcess(ctx, o); err != nil {
		return nil, "", err
	}
	f.keep(p)
	if p.Uncaged() != nil {
		scope = "" // none was made
	}
	rec := processRecord{Role: role, PID: p.PID(), Boot: bootID(f.root), Scope: scope}
	rec.StartTicks, _ = engine.StartTicks(filepath.Join(f.root, "proc"), p.PID())
	f.record(rec)
	if why := p.Uncaged(); why != nil {
		return p, fmt.Sprintf("process group (no scope: %v)", why), nil
	}
	return p, cmp.Or(scope, "process group"), nil
}

func (f *fence) name(role string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	return fmt.Sprintf("%s%s-%d.scope", f.prefix, role, f.count)
}

func (f *fence) keep(p *engine.Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = append(slices.DeleteFunc(f.running, func(p *engine.Process) bool {
		select {
		case <-p.Exited():
			return true
		default:
			return false
		}
	}), p)
}

// members lists the processes that were started and what they have started.
func (f *fence) members() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var pids []int
	for _, p := range f.running {
		pids = append(pids, p.Members()...)
	}
	return pids
}

// scopeCage is a systemd scope.
type scopeCage struct {
	bus  *systemd.Manager
	unit systemd.Unit
	root string
}

func (f *fence) cage(ctx context.Context, scope, what string, pid int) (engine.Cage, error) {
	if err := f.bus.StartScope(ctx, scope, "1bit soak: "+what, pid); err != nil {
		return nil, err
	}
	group, err := f.bus.ScopeGroup(ctx, scope)
	if err != nil {
		return nil, err
	}
	return &scopeCage{f.bus, systemd.Unit{ID: scope, ControlGroup: group}, f.root}, nil
}

func (c *scopeCage) Members() ([]int, error) {
	return systemd.Processes(filepath.Join(c.root, "proc"), filepath.Join(c.root, "sys/fs/cgroup"), &c.unit)
}

func (c *scopeCage) Kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	return c.bus.KillUnit(ctx, c.unit.ID, int32(syscall.SIGKILL))
}

// killPatience bounds how long is waited for what was killed.
const killPatience = 30 * time.Second

// bootID names one boot of the host.
func bootID(root string) string {
	return firstLine(filepath.Join(root, "proc/sys/kernel/random/boot_id"))
}

// endLeftovers ends what a runner that died has left behind: the scopes of the
// run by their name, and the groups of processes that the ledger names, if the
// process of that number is still the one that was started. It returns what it
// ended.
func endLeftovers(ctx context.Context, o RunOptions, run string, list []processRecord) ([]string, error) {
	var ended []string
	if o.Bus != nil {
		scopes, err := o.Bus.Scopes(ctx, scopePrefix(run)+"*")
		if err != nil {
			return nil, err
		}
		for _, scope := range scopes {
			group, err := o.Bus.ScopeGroup(ctx, scope)
			if errors.Is(err, systemd.ErrNoUnit) {
				continue
			}
			if err != nil {
				return ended, err
			}
			c := &scopeCage{o.Bus, systemd.Unit{ID: scope, ControlGroup: group}, o.Root}
			if err := endCage(ctx, c); err != nil {
				return ended, fmt.Errorf("end what the run left in %s: %w", scope, err)
			}
			ended = append(ended, scope)
		}
	}
	for _, p := range list {
		if p.Boot != bootID(o.Root) || p.PID <= 1 {
			continue
		}
		c := groupCage{p.PID, p.StartTicks, filepath.Join(o.Root, "proc")}
		if pids, _ := c.Members(); len(pids) == 0 {
			continue
		}
		if err := endCage(ctx, c); err != nil {
			return ended, fmt.Errorf("end what the run left of its %s (process group %d): %w", p.Role, p.PID, err)
		}
		ended = append(ended, fmt.Sprintf("process group %d of the %s", p.PID, p.Role))
	}
	return ended, nil
}

// groupCage is the process group of a process that the ledger names.
type groupCage struct {
	pid   int
	ticks uint64
	proc  string
}

// Members is empty unless the group's leader is provably ours: a group of that
// number may have been made anew.
func (c groupCage) Members() ([]int, error) {
	if ticks, alive := engine.StartTicks(c.proc, c.pid); !alive || ticks != c.ticks {
		return nil, nil
	}
	return engine.GroupMembers(c.proc, c.pid), nil
}

func (c groupCage) Kill() error { return syscall.Kill(-c.pid, syscall.SIGKILL) }

// endCage kills what is in a cage and waits until nothing is.
func endCage(ctx context.Context, c engine.Cage) error {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		pids, err := c.Members()
		if err != nil || len(pids) == 0 {
			return err
		}
		if err := c.Kill(); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still there after SIGKILL: %s", strings.Trim(fmt.Sprint(pids), "[]"))
		case <-tick.C:
		}
	}
}

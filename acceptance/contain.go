package acceptance

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/procfs"
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
	mark   string           // of all that is started
	record func(processRecord)

	mu      sync.Mutex
	count   int
	running []*engine.Process // and those that ended of late
}

// scopePrefix begins the names of all scopes of a run.
func scopePrefix(run string) string { return "1bit-soak-" + run + "-" }

// start starts a program. where says what holds it: a scope, or "process group".
func (f *fence) start(ctx context.Context, role string, o engine.ProcessOptions) (p *engine.Process, where string, err error) {
	o.Env = append(slices.Clip(o.Env), f.mark)
	scope := ""
	if f.bus != nil {
		scope = f.name(role)
		o.Cage = func(pids ...int) (engine.Cage, error) {
			return f.bus.StartScopeCage(ctx, f.root, scope, "1bit soak: "+filepath.Base(o.Program), pids...)
		}
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

// escaped finds what has left its process group.
func (f *fence) escaped(since uint64) engine.Mark {
	return engine.Mark{Proc: filepath.Join(f.root, "proc"), Text: f.mark, Since: since}
}

// killPatience bounds how long is waited for what was killed.
const killPatience = 30 * time.Second

// bootID names one boot of the host.
func bootID(root string) string {
	return procfs.FirstLine(filepath.Join(root, "proc/sys/kernel/random/boot_id"))
}

package acceptance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/systemd"
)

// leftovers are what a runner that died has left behind.
type leftovers struct {
	bus       *systemd.Manager // nil: there is none
	root      string
	run       string
	lives     []startRecord
	processes []processRecord // of the life that was not ended
}

// end ends them and tells what they were: the scopes of the run by their name,
// the groups that the ledger names where their leader is still the process that
// was started, and whatever else bears the run's mark.
func (o leftovers) end(ctx context.Context) (ended []string, err error) {
	for _, what := range []func(context.Context) ([]string, error){o.endScopes, o.endGroups, o.endMarked} {
		list, err := what(ctx)
		ended = append(ended, list...)
		if err != nil {
			return ended, err
		}
	}
	return ended, nil
}

func (o leftovers) endScopes(ctx context.Context) (ended []string, err error) {
	if o.bus == nil {
		return nil, nil
	}
	scopes, err := o.bus.Scopes(ctx, scopePrefix(o.run)+"*")
	if err != nil {
		return nil, err
	}
	for _, scope := range scopes {
		c, err := o.bus.FindScopeCage(ctx, o.root, scope)
		if errors.Is(err, systemd.ErrNoUnit) {
			continue
		}
		if err != nil {
			return ended, err
		}
		if err := endCage(ctx, c); err != nil {
			return ended, fmt.Errorf("end what the run left in %s: %w", scope, err)
		}
		ended = append(ended, scope)
	}
	return ended, nil
}

func (o leftovers) endGroups(ctx context.Context) (ended []string, err error) {
	for _, p := range o.processes {
		if p.Boot != bootID(o.root) || p.PID <= 1 {
			continue
		}
		c := groupCage{p.PID, p.StartTicks, filepath.Join(o.root, "proc")}
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

// endMarked ends what was started since the first life of this boot.
func (o leftovers) endMarked(ctx context.Context) ([]string, error) {
	boot := bootID(o.root)
	for _, s := range o.lives {
		if boot != "" && s.Boot == boot {
			ctx, cancel := context.WithTimeout(ctx, killPatience)
			defer cancel()
			return engine.Mark{Proc: filepath.Join(o.root, "proc"), Text: markOf(o.run), Since: s.Ticks}.End(ctx)
		}
	}
	return nil, nil
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
		return nil, nil // what is left of it is found by its mark
	}
	return engine.GroupMembers(c.proc, c.pid), nil
}

func (c groupCage) Kill() error { return syscall.Kill(-c.pid, syscall.SIGKILL) }

// endCage kills what is in a cage and waits until nothing is.
func endCage(ctx context.Context, c interface {
	engine.Cage
	Kill() error
}) error {
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

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// Running is a service as it runs at one moment.
type Running struct {
	Unit       string
	Invocation string    // systemd's name of the run
	State      string    // such as active or deactivating
	Boot       time.Time // of the machine, by its clock of now
	Main       Started   // zero: there is none
	Servers    []Started // the engine's programs that a front end has started; those that they start themselves are none of them
}

// Started is a process. No other one of the same boot is equal.
type Started struct {
	PID   int           `json:"pid"`
	Since time.Duration `json:"since_boot"` // ns
}

// Running looks at services that run: without a question to a server, so that it may be asked all the time. A unit that is
// not there is left out.
func (h *Host) Running(ctx context.Context, units ...string) ([]Running, error) {
	look := func(ctx context.Context) ([]Running, error) { return h.running(ctx, units) }
	if h.Owner == "" {
		return look(ctx)
	}
	return within(ctx, foreignWait, look)
}

func (h *Host) running(ctx context.Context, units []string) ([]Running, error) {
	m, err := h.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the services that run: %w", err)
	}
	defer m.Close()
	pl := h.place()
	var all []Running
	for _, unit := range units {
		u, err := m.Unit(ctx, unit)
		if errors.Is(err, systemd.ErrNoUnit) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("look at the services that run: %w", err)
		}
		pids, err := systemd.Processes(h.proc(), h.cgroup(), u)
		if err != nil {
			return nil, err
		}
		r := Running{Unit: unit, Invocation: u.InvocationID, State: u.ActiveState, Boot: bootTime(h.proc())}
		r.Main, r.Servers = pl.servers(h.processesOf(pids, time.Time{}), u.MainPID)
		all = append(all, r)
	}
	return all, nil
}

// servers tells the processes of a unit apart, whose times are since the boot. A process that is what its parent is, such as
// one that is about to start something, is no server of a front end's.
func (p *place) servers(procs []procInfo, mainPID int) (main Started, servers []Started) {
	exe := map[int]string{}
	for _, q := range procs {
		exe[q.pid] = q.exe
	}
	for _, q := range procs {
		s := Started{q.pid, q.since.Sub(time.Time{})}
		if q.pid == mainPID {
			main = s
		} else if p.engine(q) != "" && q.exe != exe[q.parent] {
			servers = append(servers, s)
		}
	}
	return main, servers
}

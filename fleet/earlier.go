package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// earlier is what is known of a service before its restart: what must not be there any more afterwards, and what must
// be there again.
type earlier struct {
	procs      []procInfo
	ports      []uint16 // on which it listened, or which its command names
	devices    []string // the GPUs that its processes had open
	asked      string   // the device that its server was told to use
	command    []systemd.Command
	dependants []string // active units that stop with it
}

// lookBefore gathers it. What cannot be read is not known, which stops no restart.
func (h *Host) lookBefore(ctx context.Context, m *systemd.Manager, u *systemd.Unit, pl *place) earlier {
	b := earlier{command: u.ExecStart}
	_, b.procs, _ = h.live(u, pl, nil)
	pids := pidsOf(b.procs)
	if addresses, err := systemd.Listeners(h.proc(), pids); err == nil {
		for _, a := range addresses {
			b.ports = append(b.ports, a.Port())
		}
	}
	for _, command := range u.ExecStart {
		b.addPort(command.Argv, u.Environment)
	}
	b.devices, b.asked = devices(h.proc(), b.procs), askedDevice(b.procs)
	b.dependants, _ = m.Dependants(ctx, u.ID)
	return b
}

// addPort adds the port that a command names.
func (b *earlier) addPort(argv, env []string) {
	text, ok := option(argv, "--port")
	if !ok {
		text, ok = lookup(env, "LLAMA_ARG_PORT")
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if ok && err == nil && port > 0 && !slices.Contains(b.ports, uint16(port)) {
		b.ports = append(b.ports, uint16(port))
	}
}

// option is the value of an option, the last one where it is given twice, as --name VALUE or --name=VALUE.
func option(argv []string, names ...string) (value string, ok bool) {
	for i, arg := range argv {
		name, joined, isJoined := strings.Cut(arg, "=")
		switch {
		case !slices.Contains(names, name):
		case isJoined:
			value, ok = joined, true
		case i+1 < len(argv):
			value, ok = argv[i+1], true
		}
	}
	return value, ok
}

func pidsOf(procs []procInfo) []int {
	pids := make([]int, len(procs))
	for i, p := range procs {
		pids[i] = p.pid
	}
	return pids
}

// outlived tells whether a process is one that ran before the restart: the stop of the unit left it.
func (b *earlier) outlived(p procInfo) bool {
	return slices.ContainsFunc(b.procs, func(old procInfo) bool { return old.pid == p.pid && old.since.Equal(p.since) })
}

// lost lists the units that went down with the service and are not up again, each in a sentence of what to do.
func (b *earlier) lost(ctx context.Context, m *systemd.Manager, userFlag string) []string {
	var notes []string
	for _, unit := range b.dependants {
		if up, err := m.IsUp(ctx, unit); err == nil && !up {
			notes = append(notes, fmt.Sprintf("%s depends on it, went down with it and was not started again: systemctl%s start %s", unit, userFlag, unit))
		}
	}
	return notes
}

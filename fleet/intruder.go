package fleet

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// intruders says in words who else listens on ports that are the service's, "" for nobody: procs are its own
// processes, less those that outlived a stop. Where own addresses are given only what can take requests from them
// counts.
func (h *Host) intruders(unit string, ports []uint16, procs []procInfo, own []netip.AddrPort) string {
	if len(ports) == 0 {
		return ""
	}
	owners, err := systemd.Owners(h.proc(), ports)
	if err != nil {
		return ""
	}
	mine := pidsOf(procs)
	var out []string
	for _, o := range owners {
		if slices.ContainsFunc(o.PIDs, func(pid int) bool { return slices.Contains(mine, pid) }) ||
			own != nil && !slices.ContainsFunc(own, func(a netip.AddrPort) bool { return overlap(a, o.Address) }) {
			continue
		}
		who := "a process of another user"
		if len(o.PIDs) > 0 {
			pid := o.PIDs[len(o.PIDs)-1] // the server itself, where a front end holds its socket too
			p, _ := readProcess(h.proc(), pid)
			if program(p) == "systemd" {
				continue // a socket of systemd's, to be handed over
			}
			who = fmt.Sprintf("process %d (%s), %s", pid, or(program(p), "unknown"), h.belongs(pid, unit))
		}
		out = append(out, fmt.Sprintf("port %d is held by %s", o.Address.Port(), who))
	}
	return strings.Join(out, "; ")
}

// overlap tells whether a connection that the listening address own waits for can go to other. The kernel prefers the
// one that names the address to one of all addresses.
func overlap(own, other netip.AddrPort) bool {
	x, y := own.Addr(), other.Addr()
	switch {
	case own.Port() != other.Port():
		return false
	case x == y:
		return true
	case !x.IsUnspecified():
		return false
	}
	return x.Is6() || y.Is4() || y.IsUnspecified()
}

// program names what a process runs: the file, and for a server that a loader started, what it was called.
func program(p procInfo) string {
	name := filepath.Base(p.exe)
	if strings.HasPrefix(name, "ld-") || p.exe == "" {
		for _, arg := range p.argv {
			if base := filepath.Base(arg); strings.HasPrefix(base, "llama-") {
				return base
			}
		}
	}
	if p.exe == "" {
		return ""
	}
	return name
}

// belongs says in words which unit a process is of.
func (h *Host) belongs(pid int, unit string) string {
	data, _ := os.ReadFile(filepath.Join(h.proc(), strconv.Itoa(pid), "cgroup"))
	path := strings.TrimSpace(string(data))
	for _, part := range slices.Backward(strings.Split(path, "/")) {
		switch {
		case part == unit:
			return "which is of " + unit + " itself and outlived its stop (KillMode=?)"
		case strings.HasPrefix(part, "user@"):
			return "which belongs to no service"
		case strings.HasSuffix(part, ".service"):
			return "which belongs to " + part
		case strings.HasSuffix(part, ".scope"):
			return "which was started by hand (" + part + ")"
		}
	}
	return "which belongs to no service"
}

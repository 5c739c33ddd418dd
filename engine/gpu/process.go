package gpu

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/secret"
)

// A Process has a GPU open.
type Process struct {
	PID     int       `json:"pid"`
	Start   time.Time `json:"start,omitzero"` // with the pid it names one process for ever; zero: not told
	Command string    `json:"command"`        // its command line, at most 200 bytes, without secrets; "": not told
	Devices []string  `json:"devices"`        // PCI addresses; none if it has only the driver open
	Bytes   *int64    `json:"bytes"`          // of GPU memory, host memory that the GPU has mapped included; nil: not told
}

// Processes lists who has a GPU open, by pid. Of other users' processes an unprivileged caller sees those with a
// compute queue or a CUDA context only. An error is nvidia-smi's: the processes come with it.
func (s Sensors) Processes(ctx context.Context) ([]Process, error) {
	nvidia, err := s.smiHoldings(ctx)
	found := map[int]map[string]*int64{}
	// Each source knows all of the memory, or a part of the same: the most that one of them tells is true.
	for _, source := range [][]holding{s.drmHoldings(), s.kfdHoldings(), nvidia} {
		for pid, devices := range sum(source) {
			if found[pid] == nil {
				found[pid] = map[string]*int64{}
			}
			for device, n := range devices {
				if have := found[pid][device]; have == nil || n != nil && *n > *have {
					found[pid][device] = n
				}
			}
		}
	}
	boot := bootTime(s.path())
	var list []Process
	for _, pid := range slices.Sorted(maps.Keys(found)) {
		p := Process{PID: pid, Start: s.startTime(pid, boot), Command: s.command(pid)}
		for _, device := range slices.Sorted(maps.Keys(found[pid])) {
			if device != "" {
				p.Devices = append(p.Devices, device)
			}
			if n := found[pid][device]; n != nil {
				if p.Bytes == nil {
					p.Bytes = new(int64)
				}
				*p.Bytes += *n
			}
		}
		list = append(list, p)
	}
	return list, err
}

// Residents lists the processes that have a GPU open and are none of ours: neither one of the pids nor started by one,
// however many steps away. They are somebody else's: to be told, never to be touched. The error is as in Processes.
func (s Sensors) Residents(ctx context.Context, ours ...int) ([]Process, error) {
	list, err := s.Processes(ctx)
	return slices.DeleteFunc(list, func(p Process) bool { return s.descends(p.PID, ours) }), err
}

// descends follows the parents of a process.
func (s Sensors) descends(pid int, ours []int) bool {
	const deepest = 100
	for range deepest {
		if slices.Contains(ours, pid) {
			return true
		}
		fields := s.stat(pid)
		if len(fields) < 2 {
			return false
		}
		if pid = atoi(fields[1]); pid <= 0 {
			return false
		}
	}
	return false
}

// sum adds the holdings of one source by process and device.
func sum(held []holding) map[int]map[string]*int64 {
	sums := map[int]map[string]*int64{}
	for _, h := range held {
		if sums[h.pid] == nil {
			sums[h.pid] = map[string]*int64{}
		}
		switch have := sums[h.pid][h.device]; {
		case have != nil && h.bytes != nil:
			*have += *h.bytes
		case have == nil && h.bytes != nil:
			n := *h.bytes
			sums[h.pid][h.device] = &n
		case have == nil:
			sums[h.pid][h.device] = nil
		}
	}
	return sums
}

// stat gives the fields of /proc/PID/stat behind the name, which may hold anything: state, parent, …
func (s Sensors) stat(pid int) []string {
	text := readText(s.path("proc", strconv.Itoa(pid), "stat"))
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
}

// startTime reads the 22nd field, in hundredths of a second since the boot.
func (s Sensors) startTime(pid int, boot time.Time) time.Time {
	const field, perSecond = 22 - 3, 100
	fields := s.stat(pid)
	if len(fields) <= field || boot.IsZero() {
		return time.Time{}
	}
	ticks, err := strconv.ParseInt(fields[field], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return boot.Add(time.Duration(ticks) * (time.Second / perSecond))
}

// command is the command line, or the name of a process that has none. Secrets are hidden: an inventory is kept as
// evidence and shown to others.
func (s Sensors) command(pid int) string {
	dir := s.path("proc", strconv.Itoa(pid))
	line := strings.Trim(readText(filepath.Join(dir, "cmdline")), "\x00")
	if line == "" {
		return strings.TrimSpace(readText(filepath.Join(dir, "comm")))
	}
	const most = 200
	text := strings.ToValidUTF8(strings.Join(secret.Words(strings.Split(line, "\x00")), " "), "?")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

package incident

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/systemd"
)

// Bounds of what is kept of the kernel's log: a GPU that hangs writes the same for hours.
const (
	keepKernel = 1000 // lines
	keepEvents = 300
	keepKills  = 100
)

// kernel reads what the kernel said of GPUs and of processes that it killed for memory.
func (g *gatherer) kernel(ctx context.Context) {
	lines := newRing(keepKernel)
	gaps, err := g.read(ctx, systemd.JournalQuery{Scope: systemd.ScopeSystem, Kernel: true, Since: g.e.From, Until: g.e.To}, func(e systemd.Entry) error {
		if !ofKernel(e) || !gpu.Relevant(e.Message) && !aboutMemory(e.Message) {
			return nil
		}
		return lines.add(e)
	})
	if err != nil {
		g.miss("the kernel's log: %v", err)
	}
	for _, gap := range gaps {
		g.miss("the kernel's log: %s", gap)
	}
	if lines.dropped > 0 {
		g.miss("the kernel's log: it says so much that of its lines about GPUs and memory the last %d are kept", len(lines.kept))
	}
	g.e.Kernels = slices.Clone(lines.kept)
	g.e.Kernel, g.e.OOM = kernelEvents(g.e.Kernels), oomKills(g.e.Kernels)
	g.e.Kernel = g.e.Kernel[max(0, len(g.e.Kernel)-keepEvents):]
	g.e.OOM = g.e.OOM[max(0, len(g.e.OOM)-keepKills):]
}

// ofKernel tells whether the kernel itself wrote an entry: programs may write into its log, with another facility.
func ofKernel(e systemd.Entry) bool {
	transport, facility := e.Fields["_TRANSPORT"], e.Fields["SYSLOG_FACILITY"]
	return (transport == "kernel" || transport == "") && (facility == "0" || facility == "")
}

func kernelEvents(entries []systemd.Entry) []gpu.Event {
	var r gpu.KernelReader
	var events []gpu.Event
	for _, e := range entries {
		events = append(events, r.FeedMessage(e.Message, e.At)...)
	}
	return append(events, r.Flush()...)
}

var (
	reKilled     = lazyregexp.New(`^(Memory cgroup out of memory|Out of memory(?: \(.*\))?): Killed process (\d+) \((.*)\),? (?:UID \d+, )?total-vm`)
	reConstraint = lazyregexp.New(`^oom-kill:constraint=(\w+),.*?(?:,oom_memcg=(.*?))?(?:,global_oom)?,task_memcg=(.*),task=(.*),pid=(\d+),uid=\d+$`)
	reGroupKill  = lazyregexp.New(`^Tasks in (.*) are going to be killed due to memory\.oom\.group set$`)
)

func aboutMemory(text string) bool {
	return strings.Contains(text, "ut of memory") || strings.HasPrefix(text, "oom-kill:") ||
		strings.Contains(text, "invoked oom-killer") || strings.HasPrefix(text, "oom_reaper:") || strings.Contains(text, "memory.oom.group")
}

// oomKills reads the kernel's lines about processes that it killed for memory. The line before names the control groups,
// and where a whole group is killed that line comes once.
func oomKills(entries []systemd.Entry) []OOMKill {
	var kills []OOMKill
	var limit, task, whole string
	var pid int
	var at time.Time
	for _, e := range entries {
		if m := reConstraint().FindStringSubmatch(e.Message); m != nil {
			limit, task, whole, at = m[2], m[3], "", e.At
			pid, _ = strconv.Atoi(m[5])
			continue
		}
		if m := reGroupKill().FindStringSubmatch(e.Message); m != nil {
			whole = m[1]
			continue
		}
		m := reKilled().FindStringSubmatch(e.Message)
		if m == nil {
			continue
		}
		kill := OOMKill{At: e.At, Process: m[3], Text: e.Message}
		kill.PID, _ = strconv.Atoi(m[2])
		if soon := e.At.Sub(at) < 10*time.Second; soon && strings.HasPrefix(m[1], "Memory cgroup") {
			kill.Group = limit
		}
		switch {
		case kill.PID == pid:
			kill.Task = task
		case whole != "":
			kill.Task = whole
		}
		kills = append(kills, kill)
	}
	return kills
}

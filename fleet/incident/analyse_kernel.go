package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/ui"
)

// Whose a KernelLine is.
const (
	KernelOurs   = "ours"   // the kernel blames a process of the unit
	KernelDevice = "device" // a GPU of this host's, and nobody is blamed
	KernelOther  = "other"  // it blames somebody else
)

const (
	maxKernel    = 200
	kernelBefore = 30 * time.Minute
	kernelAfter  = 10 * time.Minute
)

// kernelOf is what the kernel's log says around the end, and of the processes of the unit at any time.
func kernelOf(e *Evidence, r *Report, last *run) []KernelLine {
	var pids []int
	var names []string
	if last != nil {
		pids = last.pids()
		for i := range last.lines {
			if name := last.lines[i].Identifier; name != "" && !slices.Contains(names, name) && len(names) < 16 {
				names = append(names, name)
			}
		}
	}
	var devices []string
	for _, d := range e.Devices {
		devices = append(devices, d.PCI)
	}
	lines := []KernelLine{}
	for _, ev := range e.Kernel {
		whose := map[string]string{"process": KernelOurs, "device": KernelDevice}[ev.Ours(pids, names, devices)]
		lines = append(lines, KernelLine{At: ev.At, Whose: cmp.Or(whose, KernelOther), Kind: ui.Clean(ev.Kind), Fault: ev.Fault, Device: ui.Clean(ev.Device),
			Process: ui.Clean(ev.Process), PID: ev.PID, Text: cleanLines(ev.Text)})
	}
	for _, k := range e.OOM {
		whose := KernelOther
		if k.PID != 0 && slices.Contains(pids, k.PID) || strings.Contains(k.Task, "/"+e.Unit) && e.Unit != "" {
			whose = KernelOurs
		}
		lines = append(lines, KernelLine{At: k.At, Whose: whose, Kind: "oom-kill", Fault: true, Process: ui.Clean(k.Process), PID: k.PID, Text: cleanLines(k.Text)})
	}
	if r.Ending != nil {
		end := r.Ending.At
		if r.Ending.ExitedAt != nil {
			end = later(end, *r.Ending.ExitedAt)
		}
		if r.Ending.Before != nil {
			end = later(end, *r.Ending.Before)
		}
		lines = slices.DeleteFunc(lines, func(l KernelLine) bool {
			return l.Whose != KernelOurs && !l.At.IsZero() && (l.At.Before(r.Ending.At.Add(-kernelBefore)) || l.At.After(end.Add(kernelAfter)))
		})
	}
	slices.SortStableFunc(lines, func(a, b KernelLine) int { return a.At.Compare(b.At) })
	return lines[max(0, len(lines)-maxKernel):]
}

// gpuFault is the first fault of a GPU that the kernel blames the service for, shortly before its end: nil without.
func (r *Report) gpuFault() *KernelLine {
	const before = 2 * time.Minute
	if r.Ending == nil {
		return nil
	}
	for i := range r.Kernel {
		k := &r.Kernel[i]
		if k.Whose == KernelOurs && k.Fault && k.Kind != "oom-kill" && !k.At.IsZero() && r.Ending.At.Sub(k.At) <= before && k.At.Sub(r.Ending.At) <= before {
			return k
		}
	}
	return nil
}

// cleanLines makes a text of several lines safe to show, and keeps the lines.
func cleanLines(s string) string {
	lines := strings.Split(cut(s, 8*maxText), "\n")
	for i := range lines {
		lines[i] = ui.Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}

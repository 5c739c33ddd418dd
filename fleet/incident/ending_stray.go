package incident

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// strays are the processes of a run that were killed for memory or dumped core, where neither the end of the run nor
// that of a server tells of it.
func strays(r *run, ends []downfall) []downfall {
	const near = 2 * time.Minute
	var out []downfall
	for i := range r.marks {
		m := &r.marks[i]
		if m.kind != markOOM && m.kind != markOOMD && m.kind != markCoredump {
			continue
		}
		told := func(d downfall) bool {
			return d.core == m || d.seen().Sub(m.at).Abs() <= near || d.At.Sub(m.at).Abs() <= near
		}
		if slices.ContainsFunc(ends, told) || slices.ContainsFunc(out, told) {
			continue
		}
		d := downfall{run: r, told: m.at, stray: true}
		d.At, d.Invocation, d.Child = m.at, r.invocation, true
		const on = "; the main process went on"
		switch m.kind {
		case markOOM:
			d.Cause, d.words = "a process of the unit was killed by the kernel's OOM killer"+on, []string{"oom-kill", "kernel"}
		case markOOMD:
			d.Cause, d.words = "a process of the unit was killed by systemd-oomd"+on, []string{"oom-kill", "systemd-oomd"}
		default:
			d.core, d.PID, d.Code, d.Signal = m, m.number, "dumped", m.name
			d.Cause = fmt.Sprintf("process %d of the unit dumped core with %s", m.number, cmp.Or(m.name, "a signal that is not told")) + on
		}
		out = append(out, d)
	}
	return out
}

var reFrontEnd = lazyregexp.New(`\bkilled by signal (\d{1,2})\b`)

// toldByFrontEnd takes over what a process beside the server wrote of its death before it started another. What a prompt
// holds is in the server's own lines.
func (d *downfall) toldByFrontEnd() bool {
	for i := range d.run.lines {
		e := &d.run.lines[i]
		if e.PID == d.server.pid || e.PID == d.after.pid || e.Missing != "" || e.At.Before(d.server.last) || e.At.After(d.after.began) {
			continue
		}
		if f := reFrontEnd().FindStringSubmatch(e.Message); f != nil && signalName(atoi(f[1])) != "" {
			d.At, d.Before, d.Code, d.Signal = e.At, nil, "killed", signalName(atoi(f[1]))
			return true
		}
	}
	return false
}

// oomOf is when the kernel's OOM killer killed a server that the main process outlived, zero if it did not. Where only
// systemd tells, which names no process, it was the server if another took its place after that.
func (r *run) oomOf(e *Evidence, s, after *server) time.Time {
	for _, k := range e.OOM {
		if k.PID == s.pid && s.pid != 0 && !k.At.Before(s.began) && (after == nil || !k.At.After(after.began)) {
			return k.At
		}
	}
	for i := range r.marks {
		if m := &r.marks[i]; m.kind == markOOM && after != nil && !m.at.Before(s.last) && !m.at.After(after.began) {
			return m.at
		}
	}
	return time.Time{}
}

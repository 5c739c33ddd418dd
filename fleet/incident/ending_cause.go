package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// runCause says in words why a run ended, with who did it where that is known. What systemd or the kernel did counts
// only if it fits how the main process ended, and when.
func (d *downfall) runCause(e *Evidence) string {
	r := d.run
	var cause string
	control := d.control()
	switch {
	case d.killedBy(markOOMD) || d.Result == "oom-kill" && r.mark(markOOM) == nil && oomdNamed(r):
		cause, d.words = "systemd-oomd, which ends what presses on memory", []string{"oom-kill", "systemd-oomd"}
	case d.byOOM(e):
		cause, d.words = "the kernel's OOM killer"+memoryLimit(e, r), []string{"oom-kill", "kernel"}
	case d.followed(markWatchdog) || d.Result == "watchdog":
		cause, d.words = "systemd's watchdog: the service did not say in time that it is alive", []string{"watchdog"}
	case d.followed(markRuntimeLimit):
		cause, d.words = "its own time limit: systemd ends it when it has run for so long (RuntimeMaxSec=)", []string{"runtime-limit"}
	case d.followed(markStartTimeout):
		cause, d.words = "a timeout of its start: the service was not ready in time (TimeoutStartSec=)", []string{"start-timeout"}
	case d.followed(markStopTimeout):
		cause, d.words = "a timeout of its stop: it did not end in time and was killed (TimeoutStopSec=)", []string{"stop-timeout"}
	case d.server != nil && d.server.nan():
		cause = "the engine's NaN guard stopped it"
	case d.abort != "" || d.server != nil && d.server.fatal() != nil:
		cause = "the engine gave up"
	case control != nil:
		cause, d.words = control.failed(), control.kindOf()
	case d.asked():
		cause = d.Signal + " on request of a client of systemd's (systemctl kill)"
	case d.Signal == "SIGKILL" || d.Signal == "SIGTERM" || d.Signal == "SIGINT" || d.Signal == "SIGHUP":
		cause = d.Signal + " from somebody: neither systemd nor the OOM killer says it was theirs"
		if d.Stopping {
			cause = d.Signal + ", as of the stop"
		}
	case d.core != nil && d.Status != nil && endingSignal(*d.Status) == "":
		cause = fmt.Sprintf("exit status %d, after process %d had crashed", *d.Status, d.core.number)
	case d.core != nil || d.Signal != "":
		cause = "a crash"
		if signal := cmp.Or(d.Signal, coreSignal(d.core)); signal != "" {
			cause += " (" + signal + ")"
		}
	case d.Result == "success":
		cause = "its own end, which systemd calls a success: exit status 0, or a SIGTERM, SIGINT, SIGHUP or SIGPIPE that systemd did not send"
	case d.Status != nil && *d.Status == 203:
		cause = "its program could not be started (203/EXEC): the file is missing or cannot be executed"
	case d.Status != nil && *d.Status >= 200 && *d.Status < 250:
		cause = fmt.Sprintf("systemd could not set up its process (%d)", *d.Status)
	case d.Status != nil && endingSignal(*d.Status) != "":
		cause = fmt.Sprintf("exit status %d, as of a server that ended by %s", *d.Status, endingSignal(*d.Status))
	case d.Status != nil:
		cause = fmt.Sprintf("exit status %d", *d.Status)
	case d.Result == "protocol":
		cause = "an end before it had said that it is ready (Type=notify or forking)"
	case d.Result == "timeout":
		cause = "a timeout of its start or stop, or its time limit (RuntimeMaxSec=): the journal does not have which"
	case d.Result == "dependency":
		cause = "a unit that it needs, which did not start"
	case d.Result == "resources" && len(r.said) > 0:
		cause = "systemd, which could not start it: " + strings.TrimSuffix(strings.TrimPrefix(shown(r.said[0]), e.Unit+": "), ".")
	case d.Result == "resources":
		cause = "systemd, which could not start it: the journal does not have why"
	default:
		cause = "what is not told"
	}
	if d.core != nil && d.core.name != "" && !strings.Contains(cause, d.core.name) {
		cause += fmt.Sprintf("; process %d dumped core with %s", d.core.number, d.core.name)
	}
	if m := r.mark(markStartLimit); m != nil {
		cause += "; then systemd gave up, since it had been started too often (start limit)"
	}
	if d.Stopping {
		cause += "; a stop had been asked for"
	}
	return cause
}

// followed tells whether an end came after what systemd does before it kills: what comes later, as a timeout of
// ExecStopPost=, did not cause it.
func (d *downfall) followed(kind markKind) bool {
	const longest = 10 * time.Minute // as long as a stop may well take
	for i := range d.run.marks {
		if m := &d.run.marks[i]; m.kind == kind && !m.at.After(d.told) && d.told.Sub(m.at) <= longest {
			return true
		}
	}
	return false
}

// forMemory tells whether an end may be that of a process that was killed, or that lost one, for memory at a moment.
func (d *downfall) forMemory(at time.Time) bool {
	near := 2 * time.Minute
	switch {
	case d.Code == "" || d.Signal == "SIGKILL" || d.Status != nil && *d.Status == 128+9:
	case d.Status != nil && *d.Status < 128:
		near = 10 * time.Second
	default:
		return false
	}
	return d.told.Sub(at).Abs() <= near
}

// killedBy tells whether a mark says that a process was killed for memory, and the end fits that.
func (d *downfall) killedBy(kind markKind) bool {
	for i := range d.run.marks {
		if m := &d.run.marks[i]; m.kind == kind && (d.Result == "oom-kill" || d.forMemory(m.at)) {
			return true
		}
	}
	return false
}

// byOOM tells whether the kernel's OOM killer ended it.
func (d *downfall) byOOM(e *Evidence) bool {
	if d.Result == "oom-kill" || d.killedBy(markOOM) {
		return true
	}
	pids := d.run.pids()
	for _, k := range e.OOM {
		if k.PID != 0 && slices.Contains(pids, k.PID) && (d.Signal == "SIGKILL" || d.Status != nil && *d.Status == 128+9 || d.Code == "") && (k.At.IsZero() || d.forMemory(k.At)) {
			return true
		}
	}
	return false
}

// control is another command of the unit that failed and took the main process with it, if one ran: nil without.
func (d *downfall) control() *mark {
	m := d.run.mark(markControl)
	terminated := d.Signal == "SIGTERM" || d.Status != nil && *d.Status == 128+15
	if m == nil || d.Code != "" && (m.at.After(d.told) || !terminated) {
		return nil
	}
	return m
}

// failed says how a command of a unit failed.
func (m *mark) failed() string {
	which := "one of its other commands (ExecStartPre=, ExecStartPost=, ExecStop= or ExecStopPost=)"
	if strings.HasPrefix(m.name, "Exec") {
		which = shown(cut(m.name, 40)) + "="
	}
	if m.code == "exited" {
		return fmt.Sprintf("%s failed with exit status %d", which, m.status)
	}
	return which + " ended by " + cmp.Or(signalName(m.status), "a signal")
}

// kindOf are the words of a signature.
func (m *mark) kindOf() []string {
	how := "exit-" + strconv.Itoa(m.status)
	if m.code != "exited" {
		how = strings.ToLower(cmp.Or(signalName(m.status), "signal"))
	}
	if strings.HasPrefix(m.name, "Exec") {
		return []string{strings.ToLower(cut(m.name, 40)), how}
	}
	return []string{"control", how}
}

// asked tells whether a client of systemd's had the signal sent that ended it.
func (d *downfall) asked() bool {
	for i := range d.run.marks {
		if m := &d.run.marks[i]; m.kind == markClientKill && m.name == d.Signal && !m.at.After(d.told) && d.told.Sub(m.at) <= time.Minute {
			return true
		}
	}
	return false
}

func coreSignal(m *mark) string {
	if m == nil {
		return ""
	}
	return m.name
}

// childCause says why a server ended that its main process outlived.
func (d *downfall) childCause(oom, front bool) string {
	why := "without a word of why, as after a signal"
	switch {
	case d.server.nan():
		why = "stopped by the engine's NaN guard"
	case d.abort != "":
		why = "the engine gave up"
	case oom:
		why, d.words = "killed by the kernel's OOM killer", []string{"oom-kill", "kernel"}
	case front:
		why = "by " + d.Signal + ", as another process of the unit wrote"
	case d.Signal != "":
		why = "a crash with " + d.Signal
	}
	then := "the main process went on without it"
	if d.after != nil {
		then = "the main process went on and started another"
		if d.after.pid != d.server.pid {
			then += fmt.Sprintf(" (pid %d)", d.after.pid)
		}
		then += ", from what it was itself started with; systemd's restart counter did not move"
	}
	return fmt.Sprintf("the server (pid %d) ended: %s; %s", d.server.pid, why, then)
}

// nan tells whether a server's last words are about NaN.
func (s *server) nan() bool {
	if a := s.fatal(); a != nil && a.nan {
		return true
	}
	return slices.ContainsFunc(s.guards, func(g guardLine) bool { return !g.over && !g.ev.NaN.Continuing })
}

// oomdNamed tells whether systemd-oomd was at work: its result has the kernel's name.
func oomdNamed(r *run) bool {
	for i := range r.marks {
		if strings.Contains(r.marks[i].text, "systemd-oomd") {
			return true
		}
	}
	return false
}

// memoryLimit names the limit that made the kernel kill: that of the unit where there is one and the kernel does not
// say that the whole host was short.
func memoryLimit(e *Evidence, r *run) string {
	pids := r.pids()
	var group, host bool
	for _, k := range e.OOM {
		ours := slices.Contains(pids, k.PID)
		group = group || ours && k.Group != ""
		host = host || ours && k.Group == ""
	}
	switch {
	case host && !group:
		return " (the whole host was short of memory)"
	case e.State.MemoryMax != nil:
		return " (MemoryMax=" + memory(*e.State.MemoryMax) + ")"
	case group:
		return " (a limit of its control group)"
	}
	return ""
}

// memory writes bytes as a unit file does: 64M.
func memory(n int64) string {
	for i, unit := range []string{"T", "G", "M", "K"} {
		if size := int64(1) << (40 - 10*i); n > 0 && n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10)
}

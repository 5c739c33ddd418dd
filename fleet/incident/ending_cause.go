package incident

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// runCause says in words why a run ended, with who did it where that is known.
func (d *downfall) runCause(e *Evidence) string {
	r := d.run
	var cause string
	switch {
	case r.mark(markOOMD) != nil || d.Result == "oom-kill" && r.mark(markOOM) == nil && oomdNamed(r):
		cause = "systemd-oomd, which ends what presses on memory"
	case r.oom(e) || d.Result == "oom-kill":
		cause = "the kernel's OOM killer" + memoryLimit(e, r)
	case r.mark(markWatchdog) != nil || d.Result == "watchdog":
		cause = "systemd's watchdog: the service did not say in time that it is alive"
	case r.mark(markStartTimeout) != nil:
		cause = "a timeout of its start: the service was not ready in time (TimeoutStartSec=)"
	case r.mark(markStopTimeout) != nil:
		cause = "a timeout of its stop: it did not end in time and was killed (TimeoutStopSec=)"
	case d.Result == "timeout":
		cause = "a timeout of its start or stop"
	case d.server != nil && d.server.nan():
		cause = "the engine's NaN guard stopped it"
	case d.abort != "" || d.server != nil && d.server.fatal() != nil:
		cause = "the engine gave up"
	case d.Signal == "SIGKILL" || d.Signal == "SIGTERM" || d.Signal == "SIGINT" || d.Signal == "SIGHUP":
		cause = d.Signal + d.sender()
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
		cause = "it ended before it had said that it is ready (Type=notify or forking)"
	default:
		cause = "not told"
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

func coreSignal(m *mark) string {
	if m == nil {
		return ""
	}
	return m.name
}

// sender says who sent a signal that ends a process.
func (d *downfall) sender() string {
	if m := d.run.mark(markClientKill); m != nil && m.name == d.Signal {
		return " on request of a client of systemd's (systemctl kill)"
	}
	return " from somebody: neither systemd nor the OOM killer says it was theirs"
}

// childCause says why a server ended that its main process outlived.
func (d *downfall) childCause() string {
	why := "without a word of why, as after a SIGKILL"
	switch {
	case d.server.nan():
		why = "stopped by the engine's NaN guard"
	case d.abort != "":
		why = "the engine gave up"
	case d.run.mark(markOOM) != nil:
		why = "a process of the unit was killed by the kernel's OOM killer"
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

// oom tells whether the kernel killed a process of the run for memory.
func (r *run) oom(e *Evidence) bool {
	if r.mark(markOOM) != nil {
		return true
	}
	if m := r.mark(markResult); m != nil && m.name == "oom-kill" && r.mark(markOOMD) == nil {
		return true
	}
	pids := r.pids()
	for _, k := range e.OOM {
		if k.PID != 0 && slices.Contains(pids, k.PID) {
			exit := r.mark(markExit)
			return exit == nil || exit.code == "killed" || exit.code == "exited" && exit.status == 128+9
		}
	}
	return false
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

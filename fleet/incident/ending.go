package incident

import (
	"slices"
	"strings"
	"time"
)

// A downfall is a bad end: of a run, or of a server within one whose main process went on.
type downfall struct {
	Ending
	run    *run
	server *server // that was at work, nil where none is known
	next   *run    // that followed
	after  *server // that followed within the run
	abort  string
	core   *mark
}

// downfallsOf finds the bad ends, in order. A stop that was asked for and went well is none.
func downfallsOf(e *Evidence, runs []*run) []downfall {
	var ends []downfall
	for i, r := range runs {
		var next *run
		if i+1 < len(runs) {
			next = runs[i+1]
		}
		ended := r.over || r.ended()
		last := lastServer(r)
		for j, s := range r.engine.servers {
			after := follower(r.engine.servers[j+1:], s)
			if after == nil && (ended || s != last) && !s.died(r) || after == nil && ended {
				continue // how the run ended tells it
			}
			if d, bad := childEnd(r, s, after); bad {
				ends = append(ends, d)
			}
		}
		if d, bad := runEnd(e, r, next); bad {
			d.server = last
			d.words()
			ends = append(ends, d)
		}
	}
	if d, bad := stateEnd(e, runs); bad {
		ends = append(ends, d)
	}
	slices.SortStableFunc(ends, func(a, b downfall) int { return a.At.Compare(b.At) })
	return ends
}

// lastServer is the one that was at work last: the last words, or the last line, of those that were not replaced.
func lastServer(r *run) *server {
	var last *server
	for i, s := range r.engine.servers {
		if follower(r.engine.servers[i+1:], s) != nil {
			continue
		}
		if last == nil || !s.wentWrong().IsZero() || last.wentWrong().IsZero() && s.last.After(last.last) {
			last = s
		}
	}
	return last
}

// follower is the server that took the place of another: it began when the other had written its last line.
func follower(later []*server, s *server) *server {
	for _, o := range later {
		if o.router == s.router && !o.began.Before(s.end()) && (o.startup != nil || o.launches > 0) {
			return o
		}
	}
	return nil
}

// end is when a server wrote last.
func (s *server) end() time.Time {
	at := s.last
	for _, a := range s.aborts {
		at = later(at, a.at)
	}
	return at
}

// died tells whether there is a word of a server's death.
func (s *server) died(r *run) bool {
	return !s.wentWrong().IsZero() || r.core(s.pid) != nil
}

// core finds the core dump of a process; of any one for -1.
func (r *run) core(pid int) *mark {
	for i := range r.marks {
		if m := &r.marks[i]; m.kind == markCoredump && (pid < 0 || m.number == pid && pid != 0) {
			return m
		}
	}
	return nil
}

// childEnd tells how a server ended that the main process outlived: a front end starts another, from what it was
// itself started with, and systemd's restart counter does not move.
func childEnd(r *run, s, after *server) (downfall, bool) {
	core := r.core(s.pid)
	if !s.died(r) && (after == nil || s.cleaned || s.launches == 0) {
		return downfall{}, false
	}
	d := downfall{run: r, server: s, after: after, core: core}
	d.At, d.PID, d.Invocation, d.Child = s.wentWrong(), s.pid, r.invocation, true
	if d.At.IsZero() && core != nil {
		d.At = core.at
	}
	if d.At.IsZero() {
		d.At = s.last
	}
	began := s.began
	d.StartedAt = &began
	d.uptime(s)
	if core != nil {
		d.Code, d.Signal = "dumped", core.name
	}
	d.words()
	d.Cause = d.childCause()
	return d, true
}

// runEnd tells how a run ended, and false if it did not, or well.
func runEnd(e *Evidence, r *run, next *run) (downfall, bool) {
	d := downfall{run: r, next: next}
	exit, result, success, limit := r.mark(markExit), r.mark(markResult), r.mark(markSuccess), r.mark(markStartLimit)
	stop := r.mark(markStopping)
	d.Invocation = r.invocation
	switch {
	case exit != nil:
		at := exit.at
		d.At, d.ExitedAt, d.Code = at, &at, exit.code
		if exit.code == "exited" {
			status := exit.status
			d.Status = &status
		} else {
			d.Signal = signalName(exit.status)
		}
	case result != nil:
		d.At = result.at
	case r.oom(e):
		d.At = r.last
	case limit != nil:
		d.At = limit.at
	case success != nil && stop == nil:
		at := success.at
		d.At, d.ExitedAt = at, &at
		d.Result = "success"
	case !r.nextBoot.IsZero() && stop == nil && !r.ended():
		d.At, d.Cause = r.last, "the host went down under it: power loss, a reset, or a shutdown that the journal did not keep"
	default:
		return d, false
	}
	if result != nil {
		d.Result = result.name
	}
	if limit != nil {
		d.Result = "start-limit-hit"
	}
	d.Stopping = stop != nil && !stop.at.After(d.At)
	if d.Stopping && (result == nil || result.name == "success") && (exit == nil || cleanExit(exit)) && r.mark(markStopTimeout) == nil {
		return d, false
	}
	d.core = r.core(-1)
	if s := lastServer(r); s != nil {
		if at := s.wentWrong(); !at.IsZero() && at.Before(d.At) {
			d.At, d.PID = at, s.pid
		}
		if d.PID == 0 {
			d.PID = s.pid
		}
	} else if n := len(r.lines); n > 0 {
		d.PID = r.lines[n-1].PID
	}
	if d.core != nil && d.core.number != 0 {
		d.PID = d.core.number
	}
	if !r.started.IsZero() {
		started := r.started
		d.StartedAt = &started
	} else if e.State.Invocation != "" && e.State.Invocation == r.invocation {
		d.StartedAt = e.State.MainStarted
	}
	d.uptime(lastServer(r))
	if m := r.mark(markResources); m != nil && m.cpu > 0 {
		cpu := m.cpu.Seconds()
		d.CPUS = &cpu
	}
	if d.Cause == "" {
		d.server = lastServer(r)
		d.Cause = d.runCause(e)
	}
	return d, true
}

// cleanExit tells the ends that are a success when a stop was asked for.
func cleanExit(m *mark) bool {
	if m.code == "exited" {
		return m.status == 0 || m.status == 128+15 || m.status == 128+2
	}
	return m.code == "killed" && slices.Contains([]string{"SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE"}, signalName(m.status))
}

// uptime is told by the journal, and by the log's own clock, which is that of the server.
func (d *downfall) uptime(s *server) {
	if s != nil && s.clock > 0 {
		up := s.clock.Seconds()
		d.LogUptimeS = &up
	}
	if d.StartedAt != nil && !d.At.Before(*d.StartedAt) {
		up := d.At.Sub(*d.StartedAt).Seconds()
		d.UptimeS = &up
	} else {
		d.UptimeS = d.LogUptimeS
	}
}

// words takes over what the server said last.
func (d *downfall) words() {
	if d.server == nil {
		return
	}
	if a := d.server.fatal(); a != nil {
		d.abort = strings.TrimRight(a.text, "\r\n")
	}
}

// stateEnd is what the manager itself says of the last end, where the journal does not have it.
func stateEnd(e *Evidence, runs []*run) (downfall, bool) {
	s := e.State
	if s.MainExited == nil || s.Invocation == "" && len(runs) > 0 || s.Result == "" || s.Result == "success" || s.MainStarted != nil && s.MainStarted.After(*s.MainExited) {
		return downfall{}, false
	}
	d := downfall{}
	for _, r := range runs {
		if r.invocation == s.Invocation && s.Invocation != "" {
			if r.ended() {
				return downfall{}, false
			}
			d.run = r
		}
	}
	if d.run == nil {
		d.run = &run{invocation: s.Invocation, engine: readEngine(nil, nil)}
	}
	at := *s.MainExited
	d.At, d.ExitedAt, d.Result, d.Invocation, d.StartedAt = at, &at, s.Result, s.Invocation, s.MainStarted
	switch s.MainCode {
	case 1:
		status := s.MainStatus
		d.Code, d.Status = "exited", &status
	case 2, 3:
		d.Code, d.Signal = "killed", signalName(s.MainStatus)
		if s.MainCode == 3 {
			d.Code = "dumped"
		}
	}
	d.server = lastServer(d.run)
	if d.server != nil {
		d.PID = d.server.pid
		if wrong := d.server.wentWrong(); !wrong.IsZero() && wrong.Before(at) {
			d.At = wrong
		}
	}
	d.uptime(d.server)
	d.words()
	d.Cause = d.runCause(e)
	return d, true
}

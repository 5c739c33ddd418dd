package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A downfall is a bad end: of a run, or of a server within one whose main process went on.
type downfall struct {
	Ending
	run    *run
	server *server       // that was at work, nil where none is known
	told   time.Time     // when systemd told the end; zero: it did not
	mono   time.Duration // of the boot when the host's clock stood at anchor; 0: not told
	anchor time.Time
	words  []string // of the signature, where the cause decides them
	stray  bool     // it was of a process that no log is known of
	next   *run     // that followed
	after  *server  // that followed within the run
	abort  string
	core   *mark
}

// downfallsOf finds the bad ends, in order. A stop that was asked for and went well is none.
func downfallsOf(e *Evidence, runs []*run) []downfall {
	var all []downfall
	for i, r := range runs {
		var ends []downfall
		var next *run
		if i+1 < len(runs) {
			next = runs[i+1]
		}
		ended := r.over || r.ended()
		last := lastServer(r)
		for j, s := range r.engine.servers {
			after := follower(r.engine.servers[j+1:], s)
			if after == nil && ended && (s == last || r.wentDownWith(s)) {
				continue // how the run ended tells it
			}
			if d, bad := childEnd(e, r, s, after); bad {
				ends = append(ends, d)
			}
		}
		if d, bad := runEnd(e, r, next, last); bad {
			ends = append(ends, d)
		}
		ends = append(ends, strays(r, ends)...)
		all = append(all, ends...)
	}
	all = lostEnds(e, runs, all)
	order := map[*run]int{} // that of runs is sure, that of times is not: the clock may have been set
	for i, r := range runs {
		order[r] = i - len(runs)
	}
	slices.SortStableFunc(all, func(a, b downfall) int {
		return cmp.Or(cmp.Compare(order[a.run], order[b.run]), a.At.Compare(b.At))
	})
	if d, bad := stateEnd(e, runs); bad {
		all = append(all, d)
	}
	return all
}

// lastServer is the one that was at work last: the last words, or the last line, of those that were not replaced. Last
// words count for nothing where another server worked on long after them.
func lastServer(r *run) *server {
	var latest, wrong *server
	for i, s := range r.engine.servers {
		if follower(r.engine.servers[i+1:], s) != nil {
			continue
		}
		if latest == nil || s.last.After(latest.last) {
			latest = s
		}
		if !s.wentWrong().IsZero() {
			wrong = s
		}
	}
	if wrong != nil && (r.wentDownWith(wrong) || !latest.last.After(wrong.wentWrong().Add(time.Second))) {
		return wrong
	}
	return latest
}

// wentDownWith tells whether a run ended so soon after the death of a server that it ended for that.
func (r *run) wentDownWith(s *server) bool {
	const soon = 30 * time.Second
	end, at := r.last, s.wentWrong()
	if m := r.mark(markExit, markResult); m != nil {
		end = m.at
	}
	if core := r.core(s.pid); at.IsZero() && core != nil {
		at = core.at
	}
	return at.IsZero() || end.Sub(at) <= soon
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

// core finds the core dump of a process.
func (r *run) core(pid int) *mark {
	for i := range r.marks {
		if m := &r.marks[i]; m.kind == markCoredump && m.number == pid && pid != 0 {
			return m
		}
	}
	return nil
}

// childEnd tells how a server ended that the main process outlived: a front end starts another, from what it was
// itself started with, and systemd's restart counter does not move.
func childEnd(e *Evidence, r *run, s, after *server) (downfall, bool) {
	core := r.core(s.pid)
	oom := r.oomOf(e, s, after)
	if !s.died(r) && oom.IsZero() && (after == nil || s.cleaned || s.launches == 0) {
		return downfall{}, false
	}
	d := downfall{run: r, server: s, after: after, core: core}
	d.At, d.PID, d.Invocation, d.Child = s.wentWrong(), s.pid, r.invocation, true
	if d.At.IsZero() && core != nil {
		d.At = core.at
	}
	if d.At.IsZero() {
		d.At = oom
	}
	front := false
	if d.At.IsZero() { // it may have been idle for long
		d.At = s.last
		if after != nil {
			d.Before = moment(after.began)
			front = d.toldByFrontEnd()
		}
	}
	began := s.began
	d.StartedAt = &began
	d.uptime()
	if core != nil {
		d.Code, d.Signal = "dumped", core.name
	}
	d.lastWords()
	d.Cause = d.childCause(!oom.IsZero(), front)
	return d, true
}

// runEnd tells how a run ended, and false if it did not, or well.
func runEnd(e *Evidence, r *run, next *run, last *server) (downfall, bool) {
	d := downfall{run: r, next: next, server: last}
	exit, result, success, limit := r.mark(markExit), r.mark(markResult), r.mark(markSuccess), r.mark(markStartLimit)
	stop, oom := r.mark(markStopping), r.mark(markOOM)
	d.Invocation = r.invocation
	saw := func(m *mark) { d.At, d.told, d.anchor, d.mono = m.at, m.at, m.at, m.mono }
	down := false
	switch {
	case exit != nil:
		saw(exit)
		d.ExitedAt, d.Code = moment(exit.at), exit.code
		if exit.code == "exited" {
			status := exit.status
			d.Status = &status
		} else {
			d.Signal = signalName(exit.status)
		}
	case result != nil:
		saw(result)
	case oom != nil && r.over:
		saw(oom)
	case limit != nil:
		saw(limit)
	case success != nil && stop == nil:
		saw(success)
		d.ExitedAt = moment(success.at)
		d.Result = "success"
	case !r.nextBoot.IsZero() && stop == nil && !r.ended():
		d.At, d.Before, d.anchor, d.mono, down = r.last, moment(r.nextBoot), r.last, r.lastMono, true
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
	d.believe()
	d.core = d.coreOf()
	if last != nil {
		d.PID = last.pid
		if at := last.wentWrong(); !at.IsZero() && (at.Before(d.At) || down) {
			d.At, d.Before = at, nil
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
	d.uptime()
	if m := r.mark(markResources); m != nil && m.cpu > 0 {
		cpu := m.cpu.Seconds()
		d.CPUS = &cpu
	}
	d.lastWords()
	switch {
	case !down:
		d.Cause = d.runCause(e)
	case d.abort != "" || last != nil && last.nan():
		d.Cause = d.runCause(e) + "; how its process ended is not told, for the host went down"
	default:
		d.Cause, d.words = hostDown, []string{"host-down"}
	}
	return d, true
}

const hostDown = "the host went down under it: power loss, a reset, or a shutdown that the journal did not keep"

// believe drops the last words of the server where they cannot be what ended it. A prompt may hold the same words, and an
// engine that gives up ends with SIGABRT; only behind a front end, or a stop, the main process may end otherwise.
func (d *downfall) believe() {
	fits := d.Signal == "" || d.Signal == "SIGABRT" || d.Stopping
	if d.Status != nil && *d.Status >= 128 {
		fits = *d.Status == 128+6 || d.Stopping
	}
	if d.server != nil && !fits {
		d.server.outlived()
	}
}

// coreOf is the core dump that belongs to the end of a run: of the signal that systemd saw, or, where the main process
// exited, of a process that died right before.
func (d *downfall) coreOf() *mark {
	signal, before := d.Signal, 10*time.Minute
	if d.Status != nil {
		signal, before = endingSignal(*d.Status), 30*time.Second
	}
	for i := len(d.run.marks) - 1; i >= 0; i-- {
		m := &d.run.marks[i]
		if m.kind == markCoredump && (signal == "" || m.name == "" || m.name == signal) && d.At.Sub(m.at) <= before {
			return m
		}
	}
	return nil
}

// cleanExit tells the ends that are a success when a stop was asked for.
func cleanExit(m *mark) bool {
	if m.code == "exited" {
		return m.status == 0 || m.status == 128+15 || m.status == 128+2
	}
	return m.code == "killed" && slices.Contains([]string{"SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE"}, signalName(m.status))
}

// uptime is told by the journal: by the clock of the boot where its entries have that, for the host's may have been set.
// The log's own clock is that of the server.
func (d *downfall) uptime() {
	if s := d.server; s != nil && s.clock > 0 {
		up := s.clock.Seconds()
		d.LogUptimeS = &up
	}
	if up, ok := ran(d.run.start, d.mono); ok && !d.Child {
		up := max(0, up-d.anchor.Sub(d.At)).Seconds()
		d.UptimeS = &up
	} else if d.StartedAt != nil && !d.At.Before(*d.StartedAt) {
		up := d.At.Sub(*d.StartedAt).Seconds()
		d.UptimeS = &up
	} else {
		d.UptimeS = d.LogUptimeS
	}
}

// lastWords takes over what the server said last.
func (d *downfall) lastWords() {
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
	d.told, d.anchor = at, at
	d.server = lastServer(d.run)
	d.believe()
	d.core = d.coreOf()
	if d.server != nil {
		d.PID = d.server.pid
		if wrong := d.server.wentWrong(); !wrong.IsZero() && wrong.Before(at) {
			d.At = wrong
		}
	}
	d.uptime()
	d.lastWords()
	d.Cause = d.runCause(e)
	return d, true
}

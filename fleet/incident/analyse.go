package incident

import (
	"cmp"
	"slices"
	"time"
)

// maxOthers bounds how many other ends are listed, those next to the one that is reported.
const maxOthers = 50

// Analyse makes a report of evidence alone: the same evidence gives the same report. It never fails; what is not known
// is said. The end that it is about is the last bad one.
func Analyse(e *Evidence) *Report {
	runs := runsOf(e.Entries)
	for _, r := range runs {
		r.addHoles(e.Kept)
		r.engine = readEngine(r.lines, r.holes)
	}
	r := &Report{Schema: Schema, Unit: e.Unit, Evidence: e, Gaps: gapsOf(e), Trace: []string{}, Slots: []Slot{}, Guard: []Guard{}, Errors: []string{}}
	r.Complete = len(r.Gaps) == 0

	ends := downfallsOf(e, runs)
	main := lastEnd(e, ends)
	r.Others, r.Known = othersOf(ends, main)
	var last *run
	var s *server
	var at time.Time
	if main != nil {
		last, s, at = main.run, main.server, main.At
		r.Ending = &main.Ending
		r.Event = main.event()
		r.Restart = main.restart(e)
		r.Abort = shown(main.abort)
		r.Trace = append(r.Trace, main.backtrace()...)
		if r.Abort == "" {
			r.Errors = append(r.Errors, main.lastErrors()...)
		}
	} else if len(runs) > 0 {
		last = runs[len(runs)-1]
		s = lastServer(last)
		at = last.last
	}
	if s != nil {
		r.Slots = append(r.Slots, s.slotsAt(at)...)
		r.Server = s.describe()
	}
	r.Guard = append(r.Guard, guardsOf(runs, last, s, main)...)
	r.Lines = linesOf(e, r)
	r.Kernel = kernelOf(e, r, last)
	r.Shape = shapeOf(e, r, s)
	r.Signature = signatureOf(r, main)
	r.Title, r.Summary = titleOf(r, main), summaryOf(r, main)
	return r
}

// lastEnd is the last end that counts: where the evidence was gathered about one, none that is later. nil: none does.
func lastEnd(e *Evidence, ends []downfall) *downfall {
	for i := len(ends) - 1; i >= 0; i-- {
		d := &ends[i]
		if d.seen().Before(e.NotBefore) {
			return nil
		}
		if e.Ended == nil || !d.At.After(e.Ended.Add(time.Second)) {
			return d
		}
	}
	return nil
}

// seen is when systemd saw the end, or when it was where systemd did not.
func (d *downfall) seen() time.Time {
	if d.ExitedAt != nil {
		return *d.ExitedAt
	}
	return d.At
}

// othersOf are the latest of the other ends that the journal knows, and how many it knows.
func othersOf(ends []downfall, main *downfall) ([]Ending, int) {
	others := []Ending{}
	for i := range ends {
		if &ends[i] != main {
			others = append(others, ends[i].Ending)
		}
	}
	return others[max(0, len(others)-maxOthers):], len(others)
}

// guardsOf are the guard's lines of the server that ended; without an end, of all that ran.
func guardsOf(runs []*run, last *run, s *server, main *downfall) []Guard {
	var guards []Guard
	switch {
	case s != nil && main != nil:
		guards = s.believed()
	case main == nil:
		for _, r := range runs {
			for _, s := range r.engine.servers {
				guards = append(guards, s.believed()...)
			}
		}
	case last != nil:
		for _, s := range last.engine.servers {
			guards = append(guards, s.believed()...)
		}
	}
	guards = guards[max(0, len(guards)-maxGuards):]
	for i := range guards {
		guards[i].Text = shown(guards[i].Text)
	}
	return guards
}

// event names an end by what does not change when it is looked at again: the run, and when systemd saw it end.
func (d *downfall) event() string {
	return cmp.Or(d.Invocation, d.run.boot, "unknown") + "@" + d.seen().UTC().Format("20060102T150405Z")
}

// restart is what came after the end, nil if nothing did.
func (d *downfall) restart(e *Evidence) *Restart {
	if d.Child {
		if d.after == nil {
			return nil
		}
		began := d.after.began
		return d.back(&Restart{StartedAt: &began}, d.run, d.At)
	}
	out := &Restart{}
	if m := d.run.mark(markRestart); m != nil {
		out.ScheduledAt = moment(m.at)
		if n := m.number; n >= 0 {
			out.Counter = &n
		}
	}
	if m := d.run.mark(markStartLimit); m != nil {
		out.GaveUp = "start limit hit"
	}
	if next := d.next; next != nil {
		out.StartedAt = moment(cmpTime(next.started, next.first))
		if out.Counter == nil && out.ScheduledAt != nil && e.State.Invocation != "" && e.State.Invocation == next.invocation {
			n := e.State.Restarts
			out.Counter = &n
		}
		return d.back(out, next, d.At)
	}
	if *out == (Restart{}) {
		return nil
	}
	return out
}

// back adds what a run told of its host, and when it was ready.
func (d *downfall) back(out *Restart, r *run, from time.Time) *Restart {
	for i := range r.engine.hosts {
		if h := r.engine.hosts[i]; !h.At.Before(from) {
			out.Host = &h
			break
		}
	}
	if i := slices.IndexFunc(r.engine.readies, func(t time.Time) bool { return !t.Before(from) }); i >= 0 {
		out.ReadyAt = moment(r.engine.readies[i])
	}
	return out
}

func cmpTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

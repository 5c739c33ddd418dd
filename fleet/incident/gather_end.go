package incident

import (
	"slices"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// Ends that are no farther apart than burst are one event: those of a service that is started again and fails again.
const (
	burst       = 10 * time.Minute
	longestTime = 6 * time.Hour // of one event
)

// An end is the bad ends of one event. Between the first and the last another package may have been armed, so what a
// report says of the service is of the run that ended last.
type end struct {
	first, last time.Time // zero: there was none
	started     time.Time // of the run that ended first; zero: not known
	latest      life      // the run that ended last
}

// life is one run of the unit.
type life struct {
	invocation     string
	started, ended time.Time // zero: not known
}

// findEnd finds the last event among entries: the ends that Analyse takes for bad ones, and processes that were killed or
// dumped core under a main process that went on.
func (g *gatherer) findEnd(entries []systemd.Entry) end {
	so := Analyse(&Evidence{Unit: g.e.Unit, Scope: g.e.Scope, Entries: entries, Kept: g.e.Kept, Lost: g.e.Lost})
	endings := so.Others
	if so.Ending != nil {
		endings = append(endings, *so.Ending)
	}
	var all []end
	started := map[string]time.Time{}
	for _, d := range endings {
		if d.Stopping && !crashes(d.Signal) {
			continue // someone asked for it
		}
		x := end{first: d.At, last: d.At, latest: life{invocation: d.Invocation, ended: d.At}}
		if d.ExitedAt != nil {
			x.last = *d.ExitedAt
		}
		if d.Before != nil {
			x.last = later(x.last, *d.Before)
		}
		if d.StartedAt != nil {
			x.started, started[d.Invocation] = *d.StartedAt, *d.StartedAt
			x.latest.started = x.started
		}
		all = append(all, x)
	}
	for _, e := range entries {
		if e.ID == systemd.IDOOM || e.ID == systemd.IDOOMD || e.ID == systemd.IDCoredump {
			run := life{invocation: e.Invocation, started: started[e.Invocation], ended: e.At}
			all = append(all, end{first: e.At, last: e.At, started: run.started, latest: run})
		}
	}
	slices.SortStableFunc(all, func(a, b end) int { return a.first.Compare(b.first) })
	var event end
	for _, x := range slices.Backward(all) {
		switch {
		case x.first.Before(g.o.Since):
		case event.last.IsZero():
			event = x
		case event.first.Sub(x.first) <= burst && event.last.Sub(x.first) <= longestTime:
			event.first, event.started, event.last = x.first, x.started, later(event.last, x.last)
			if event.latest.invocation == "" { // a core dump's word does not say which run it was
				event.latest = x.latest
			}
		}
	}
	return event
}

// crashes tells of a signal that nobody stops a service with.
func crashes(signal string) bool {
	return slices.Contains([]string{"SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS"}, signal)
}

// fromState takes the end from the manager where the journal does not tell it.
func (g *gatherer) fromState() bool {
	s := g.e.State
	if s.MainExited == nil || s.Result == "" || s.Result == "success" || s.MainExited.Before(g.o.Since) || s.MainExited.After(g.o.Until) {
		return false
	}
	g.end = end{first: *s.MainExited, last: *s.MainExited, latest: life{invocation: s.Invocation, ended: *s.MainExited}}
	if s.MainStarted != nil && s.MainStarted.Before(*s.MainExited) {
		g.end.started, g.end.latest.started = *s.MainStarted, *s.MainStarted
	}
	return true
}

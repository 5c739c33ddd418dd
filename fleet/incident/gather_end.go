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

// An end is the bad ends of one event, and the run that the first one was of.
type end struct {
	first, last time.Time // zero: there was none
	started     time.Time // zero: not known
	invocation  string    // of the run that ended first
}

// findEnd finds the last event among entries: the ends that Analyse takes for bad ones, and processes that were killed or
// dumped core under a main process that went on.
func (g *gatherer) findEnd(entries []systemd.Entry) end {
	so := Analyse(&Evidence{Unit: g.e.Unit, Scope: g.e.Scope, Entries: entries, Kept: g.e.Kept})
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
		x := end{first: d.At, last: d.At, invocation: d.Invocation}
		if d.ExitedAt != nil {
			x.last = *d.ExitedAt
		}
		if d.StartedAt != nil {
			x.started, started[d.Invocation] = *d.StartedAt, *d.StartedAt
		}
		all = append(all, x)
	}
	for _, e := range entries {
		if e.ID == systemd.IDOOM || e.ID == systemd.IDOOMD || e.ID == systemd.IDCoredump {
			all = append(all, end{first: e.At, last: e.At, invocation: e.Invocation, started: started[e.Invocation]})
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
			last := event.last
			event = x
			event.last = later(last, x.last)
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
	g.end.first, g.end.last, g.end.invocation = *s.MainExited, *s.MainExited, s.Invocation
	if s.MainStarted != nil && s.MainStarted.Before(*s.MainExited) {
		g.end.started = *s.MainStarted
	}
	return true
}

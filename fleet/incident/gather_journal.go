package incident

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// How much of the log is kept. A service may have written more than memory and disk can hold, so what is read is a part
// of the time, and of that the entries that are nearest to the end.
const (
	keepBefore  = 10000   // entries before an end
	keepAfter   = 3000    // entries after it
	keepHead    = 3000    // entries of the beginning of the run that ended
	keepTold    = 4000    // of what systemd says about the unit
	keepBytes   = 8 << 20 // of each of these
	maxMessage  = 64 << 10
	headLength  = 5 * time.Minute
	burst       = 10 * time.Minute // ends that are no farther apart are one event: those of a service that is started again and fails again
	longestTime = 6 * time.Hour    // of one event
)

// reach is how far back is looked: farther only if the shorter did not do.
var reach = [...]time.Duration{2 * 24 * time.Hour, 32 * 24 * time.Hour, 0}

// closeness is the same for the log before an end.
var closeness = [...]time.Duration{15 * time.Minute, 4 * time.Hour, 48 * time.Hour}

// An end is the bad ends of one event, and the run that the first one was of.
type end struct {
	first, last time.Time // zero: there was none
	started     time.Time // zero: not known
	invocation  string    // of the run that ended first
}

// told are the messages by which systemd tells of the lives of units.
func told() []string {
	return append(trackedIDs(), systemd.IDUnitSucceeded, systemd.IDResources, systemd.IDSpawnFailed)
}

// journal reads the log: what systemd tells of the unit, the beginning of the run that ended, and what was written
// around the end.
func (g *gatherer) journal(ctx context.Context) {
	kept := map[string]systemd.Entry{}
	if err := g.told(ctx, kept); err != nil {
		g.miss("the journal: %v", err)
		if !g.fromState() {
			return
		}
	}
	if g.end.last.IsZero() {
		g.fromState()
	}
	if err := g.recent(ctx, kept); err != nil {
		g.miss("the journal: %v", err)
	}
	for _, read := range []func(context.Context, map[string]systemd.Entry) error{g.head, g.around} {
		if err := read(ctx, kept); err != nil && !slices.Contains(g.e.Missing, "the journal: "+err.Error()) {
			g.miss("the journal: %v", err)
		}
	}
	g.e.Entries = inOrder(kept)
	slices.Sort(g.e.Gaps)
	g.e.Gaps = slices.Compact(g.e.Gaps)
}

// inOrder are the entries by time. Those of one moment are in the order of their cursors' numbers, as far as that is told.
func inOrder(kept map[string]systemd.Entry) []systemd.Entry {
	return slices.SortedFunc(maps.Values(kept), func(a, b systemd.Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Monotonic, b.Monotonic), cmp.Compare(len(a.Cursor), len(b.Cursor)), cmp.Compare(a.Cursor, b.Cursor))
	})
}

// recent reads the latest log, where no end is recent: a server that its front end outlives dies without a word of
// systemd's.
func (g *gatherer) recent(ctx context.Context, kept map[string]systemd.Entry) error {
	limit := g.end.last.Add(windowAfter)
	if !limit.Before(g.o.Until) {
		return nil
	}
	if limit.Before(g.o.Since) {
		limit = g.o.Since
	}
	if err := g.near(ctx, kept, g.o.Until, g.o.Until, limit); err != nil {
		return err
	}
	if x := g.findEnd(inOrder(kept)); x.last.After(g.end.last) {
		g.end = x
	}
	return nil
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

// told reads what systemd says about the unit, as far back as the start of the run that ended.
func (g *gatherer) told(ctx context.Context, kept map[string]systemd.Entry) error {
	var tell *ring
	for _, back := range reach {
		since := time.Time{}
		if back > 0 {
			since = g.o.Until.Add(-back)
		}
		tell = newRing(keepTold)
		q := g.query(since, g.o.Until)
		q.IDs = told()
		if _, err := g.read(ctx, q, tell.add); err != nil {
			return err
		}
		g.e.Since, g.end = since, g.findEnd(tell.entries())
		if enough := !g.end.started.IsZero() || g.end.last.IsZero() && !g.o.Since.IsZero() && since.Before(g.o.Since); enough {
			break
		}
	}
	tell.into(kept)
	if tell.dropped > 0 {
		g.e.Gaps = append(g.e.Gaps, fmt.Sprintf("of what systemd tells of the unit the latest %d entries are kept, %d earlier ones are not", keepTold, tell.dropped))
	}
	return nil
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

// head reads the beginning of the run that ended: what the server said of itself when it loaded.
func (g *gatherer) head(ctx context.Context, kept map[string]systemd.Entry) error {
	if g.end.started.IsZero() {
		return nil
	}
	until := earliest(g.end.started.Add(headLength), g.end.last)
	span := Span{From: g.end.started.Add(-time.Second), To: until}
	n, bytes := 0, 0
	_, err := g.read(ctx, g.query(span.From, until), func(e systemd.Entry) error {
		kept[e.Cursor] = e
		if n, bytes = n+1, bytes+size(e); n >= keepHead || bytes >= keepBytes {
			span.To = e.At
			return errEnough
		}
		return nil
	})
	g.e.Kept = append(g.e.Kept, span)
	return err
}

// around reads the log around the first end of the event and around the last one.
func (g *gatherer) around(ctx context.Context, kept map[string]systemd.Entry) error {
	if g.end.last.IsZero() {
		return nil
	}
	limit := g.end.started.Add(-time.Second)
	if g.end.started.IsZero() {
		limit = g.e.Since
	}
	if after := g.end.first.Add(windowAfter); g.end.last.After(after) {
		if err := g.near(ctx, kept, g.end.first, after, limit); err != nil {
			return err
		}
		limit = after
	}
	return g.near(ctx, kept, g.end.last, earliest(g.end.last.Add(windowAfter), g.o.Until), limit)
}

// near reads the log from shortly before a moment, or longer before it where little was written, to some time after it.
func (g *gatherer) near(ctx context.Context, kept map[string]systemd.Entry, at, until, limit time.Time) error {
	var n *nearness
	for _, length := range closeness {
		n = &nearness{at: at, since: at.Add(-length), before: newRing(keepBefore), after: map[string]systemd.Entry{}}
		if n.since.Before(limit) {
			n.since = limit
		}
		gaps, err := g.read(ctx, g.query(n.since, until), n.add)
		if err != nil {
			return err
		}
		n.gaps = gaps
		if n.before.dropped > 0 || len(n.before.kept) > keepBefore/4 || n.since.Equal(limit) {
			break
		}
	}
	n.before.into(kept)
	maps.Copy(kept, n.after)
	span := Span{From: n.since, To: until}
	if n.before.dropped > 0 {
		span.From = n.before.kept[0].At
		n.gaps = append(n.gaps, fmt.Sprintf("the log was long: of what came before %s the last %d entries are kept", utc(at), len(n.before.kept)))
	}
	if n.over > 0 {
		span.To = n.last
		n.gaps = append(n.gaps, fmt.Sprintf("the log was long: of what came after %s the first %d entries are kept, %d are not", utc(at), len(n.after), n.over))
	}
	g.e.Kept, g.e.Gaps = append(g.e.Kept, span), append(g.e.Gaps, n.gaps...)
	return nil
}

// nearness is what is kept of the log around a moment.
type nearness struct {
	at, since time.Time
	before    *ring
	after     map[string]systemd.Entry
	bytes     int // of after
	over      int // entries after it that are not kept
	last      time.Time
	gaps      []string
}

func (n *nearness) add(e systemd.Entry) error {
	switch {
	case !e.At.After(n.at):
		return n.before.add(e)
	case len(n.after) >= keepAfter || n.bytes >= keepBytes:
		n.over++
	default:
		n.after[e.Cursor], n.last = e, e.At
		n.bytes += size(e)
	}
	return nil
}

// utc spells a time for a sentence.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

func (g *gatherer) query(since, until time.Time) systemd.JournalQuery {
	return systemd.JournalQuery{Scope: g.e.Scope, UID: g.o.UID, Unit: g.e.Unit, Identifier: g.identifier(), Since: since, Until: until}
}

// identifier is what the lines of the unit's program are marked with.
func (g *gatherer) identifier() string {
	if g.service == nil || g.service.Loaded == nil {
		return ""
	}
	if s := g.service.Settings; s != nil {
		if own := s.Last("Service", "SyslogIdentifier"); own.Line.Value != "" && own.Unsure == "" {
			return own.Line.Value
		}
	}
	if start := g.service.Loaded.ExecStart; len(start) > 0 && start[0].Path != "" {
		return filepath.Base(start[0].Path)
	}
	return ""
}

// errEnough ends a reading.
var errEnough = errors.New("enough")

// read reads the journal and keeps of each entry what a report may need.
func (g *gatherer) read(ctx context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) ([]string, error) {
	n := 0
	gaps, err := g.o.Journal(ctx, q, func(e systemd.Entry) error {
		n++
		return f(slim(e, n))
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return gaps, err
}

package incident

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// How much of the log is kept. A service may have written more than memory and disk can hold, so what is read is a part
// of the time, and of that the entries that are nearest to the end.
const (
	keepBefore = 10000   // entries before an end
	keepAfter  = 3000    // entries after it
	keepHead   = 3000    // entries of the beginning of the run that ended
	keepTold   = 4000    // of what systemd says about the unit
	keepBytes  = 8 << 20 // of each of these
	maxMessage = 64 << 10
	headLength = 5 * time.Minute
)

// reach is how far back is looked: farther only if the shorter did not do.
var reach = [...]time.Duration{2 * 24 * time.Hour, 32 * 24 * time.Hour, 0}

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
	g.elsewhere()
	slices.Sort(g.e.Gaps)
	g.e.Gaps = slices.Compact(g.e.Gaps)
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

// head reads the beginning of the run that ended: what the server said of itself when it loaded.
func (g *gatherer) head(ctx context.Context, kept map[string]systemd.Entry) error {
	if g.end.started.IsZero() {
		return nil
	}
	until := g.end.started.Add(headLength)
	if g.end.last.After(g.end.started) { // else the clock was set back
		until = earliest(until, g.end.last)
	}
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
	if g.end.started.IsZero() || g.end.started.After(g.end.last) {
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
	if err != nil && !errors.Is(err, systemd.ErrNoJournal) {
		g.e.Unread = err
	}
	return gaps, err
}

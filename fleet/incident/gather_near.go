package incident

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// closeness is how far before a moment the log is read: farther only where little was written.
var closeness = [...]time.Duration{15 * time.Minute, 4 * time.Hour, 48 * time.Hour}

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

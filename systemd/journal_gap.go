package systemd

import (
	"fmt"
	"strconv"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// journald drops the messages of a unit that are more than this in this time, unless it is told another limit; where the
// disk has room it takes some times as many.
const (
	rateBurst    = 10000
	rateInterval = 30 * time.Second
)

// setBackLeast is the least that a clock is set back by to be told of.
const setBackLeast = time.Second

// journalGaps watches the entries for what tells that others are missing.
type journalGaps struct {
	said    []string
	dropped []*droppedMessages
	unsaid  int // entries without a message, or without all of it
	why     string
	bad     int // rows that are no entries
	badErr  error

	boot   string
	offset time.Duration // of the clock against the time since the boot

	began time.Duration // since the boot: the window of the rate limit
	wrote int           // messages in it
	full  time.Time     // when it had the most that is always kept; zero: it has not
}

// droppedMessages is what journald says it dropped of one unit.
type droppedMessages struct {
	what            string
	messages, times int
	first, last     time.Time
}

var reSuppressed = lazyregexp.New(`^Suppressed (\d+) messages from (\S+)`)

// add says a gap.
func (g *journalGaps) add(format string, args ...any) {
	g.said = append(g.said, fmt.Sprintf(format, args...))
}

// skip counts a row that is no entry.
func (g *journalGaps) skip(err error) { g.bad, g.badErr = g.bad+1, err }

// see looks at the next entry.
func (g *journalGaps) see(e Entry) {
	if e.Missing != "" {
		g.unsaid, g.why = g.unsaid+1, e.Missing
	}
	g.seeClock(e)
	switch e.ID {
	case IDSuppressed:
		what := "messages of the unit, which wrote too many at a time (RateLimitBurst= in journald.conf)"
		if m := reSuppressed().FindStringSubmatch(e.Message); m != nil {
			what = "messages of " + m[2] + ", which wrote too many at a time (RateLimitBurst= in journald.conf)"
		}
		n, _ := strconv.Atoi(e.Fields["N_DROPPED"])
		g.drop(what, n, e.At)
		g.full = time.Time{}
	case IDKernelMissed:
		g.drop("messages of the kernel, which came too fast", 0, e.At)
	default:
		g.seeRate(e)
	}
}

func (g *journalGaps) drop(what string, n int, at time.Time) {
	var d *droppedMessages
	for _, one := range g.dropped {
		if one.what == what {
			d = one
		}
	}
	if d == nil {
		d = &droppedMessages{what: what, first: at}
		g.dropped = append(g.dropped, d)
	}
	d.messages, d.times, d.last = d.messages+n, d.times+1, at
}

// seeClock sees a clock that is set back. One that goes ahead may be a host that slept.
func (g *journalGaps) seeClock(e Entry) {
	if e.Monotonic == 0 {
		return
	}
	offset := time.Duration(e.At.UnixNano()) - e.Monotonic
	if back := g.offset - offset; g.boot == e.Boot && back >= setBackLeast {
		g.add("the clock was set back by %s before %s: times before and after that do not compare, and entries may be left out",
			back.Round(time.Second), utc(e.At))
	}
	g.boot, g.offset = e.Boot, offset
}

// seeRate counts as journald does. It says that it dropped messages only when the unit writes the next one after the
// window: a unit that ends in the flood leaves no word of it.
func (g *journalGaps) seeRate(e Entry) {
	if e.Fields["_TRANSPORT"] == "kernel" || e.Monotonic == 0 {
		return
	}
	if g.wrote == 0 || e.Monotonic-g.began > rateInterval || e.Monotonic < g.began {
		g.began, g.wrote, g.full = e.Monotonic, 0, time.Time{}
	}
	if g.wrote++; g.wrote == rateBurst {
		g.full = e.At
	}
}

// tell says everything that is or may be missing.
func (g *journalGaps) tell() []string {
	said := g.said
	add := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	for _, d := range g.dropped {
		n := "an unknown number of"
		if d.messages > 0 {
			n = strconv.Itoa(d.messages)
		}
		when := "at " + utc(d.first)
		if d.times > 1 {
			when = fmt.Sprintf("in %d floods from %s to %s", d.times, utc(d.first), utc(d.last))
		}
		add("journald dropped %s %s, %s", n, d.what, when)
	}
	if !g.full.IsZero() {
		add("%d messages had come within %s at %s: journald may have dropped those after them without a word",
			rateBurst, rateInterval, utc(g.full))
	}
	if g.unsaid > 0 {
		add("%s missing or not whole, the last for this: %s", count(g.unsaid, "message is", "messages are"), g.why)
	}
	if g.bad > 0 {
		add("%s not be read, the last for this: %v", count(g.bad, "row could", "rows could"), g.badErr)
	}
	return said
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// utc spells a time for a sentence.
func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

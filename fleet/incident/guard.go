package incident

import (
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/systemd"
)

// A guardLine is a line of the engine's NaN guard that is not yet believed.
//
// A prompt that somebody logs may hold the same words on a line of its own. So the line must carry its time if the
// others of the server do, that time must be the journal's, and a server that says it stops there must not go on.
type guardLine struct {
	at   time.Time
	ev   engine.LogEvent
	task *taskKey // that it certainly is of
	text string
	over bool // the server went on
}

// An abortLine is what an engine writes when it gives up. Its author writes it without a time, so only that the server
// does not go on after it tells it from a prompt.
type abortLine struct {
	at   time.Time
	text string
	nan  bool
	over bool
}

// clockSlack is how far the times of a line and of the journal may be apart.
const clockSlack = time.Minute

func (s *server) guard(e *systemd.Entry, ev engine.LogEvent) {
	apart := e.At.Sub(s.offset) - ev.Time
	if s.booted && e.Monotonic > 0 {
		apart = e.Monotonic - s.zero - ev.Time
	}
	switch {
	case len(s.guards) >= maxGuards,
		s.timed && !ev.Timed,
		s.timed && (apart > clockSlack || apart < -clockSlack):
		return
	}
	ev.Detail = strings.Clone(ev.Detail)
	s.clock = max(s.clock, ev.Time)
	s.guards = append(s.guards, guardLine{at: e.At, ev: ev, task: s.only(ev), text: e.Message})
}

// only is the one task that a guard's line can be of: the only one that runs, where no other can run unseen. A release
// by another thread may be written a moment before or after.
func (s *server) only(ev engine.LogEvent) *taskKey {
	const outOfOrder = 2 * time.Millisecond
	if !s.sure || len(s.running) != 1 || ev.Timed && s.freed > 0 && (ev.Time-s.freed).Abs() < outOfOrder {
		return nil
	}
	for slot, task := range s.running {
		return &taskKey{slot, task}
	}
	return nil
}

func (s *server) abort(e *systemd.Entry, ev engine.LogEvent) {
	if len(s.aborts) < maxGuards {
		s.aborts = append(s.aborts, abortLine{at: e.At, text: e.Message, nan: ev.NaNAbort})
	}
}

// outlived marks all last words so far: the server goes on.
func (s *server) outlived() {
	for i := len(s.guards) - 1; i >= 0 && !s.guards[i].over; i-- {
		s.guards[i].over = true
	}
	for i := len(s.aborts) - 1; i >= 0 && !s.aborts[i].over; i-- {
		s.aborts[i].over = true
	}
}

// believed gives the guard's lines that are no free text: one that says it does not go on, and yet does, is. The first
// version of the line does not say it.
func (s *server) believed() []Guard {
	var guards []Guard
	for _, g := range s.guards {
		v := *g.ev.NaN
		if g.over && v.Of > 0 && !v.Continuing {
			continue
		}
		out := Guard{At: g.at, Generation: 2, Count: v.Count, Of: v.Of, First: v.First, Last: v.Last,
			Contiguous: v.Contiguous, Continuing: v.Continuing || g.over, Whole: v.Of > 0 && v.Count == v.Of, Text: g.text}
		if v.Of == 0 {
			out.Generation = 1
		}
		if g.task != nil {
			slot, task := g.task.slot, g.task.task
			out.Slot, out.Task = &slot, &task
		}
		guards = append(guards, out)
	}
	return guards
}

// fatal is the first of the server's last words, nil if it has said none or went on after them.
func (s *server) fatal() *abortLine {
	for i := range s.aborts {
		if !s.aborts[i].over {
			return &s.aborts[i]
		}
	}
	return nil
}

// wentWrong is when the server's last words began: its guard's, else its abort's. Zero: it said none.
func (s *server) wentWrong() time.Time {
	var at time.Time
	if a := s.fatal(); a != nil {
		at = a.at
	}
	for _, g := range s.guards {
		if !g.over && !g.ev.NaN.Continuing && (at.IsZero() || g.at.Before(at)) {
			at = g.at
		}
	}
	return at
}

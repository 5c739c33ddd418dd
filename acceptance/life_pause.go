package acceptance

import (
	"sync"
	"time"
)

// watchPaused is the watchdog of the runner itself: one that was stopped, frozen
// or asleep has not watched, and its deadlines ran out while nobody could have
// taken the answer.
const (
	watchPaused = "runner-paused"
	pauseEvery  = 100 * time.Millisecond
)

// pauseLimit is the longest pause that is borne: a tenth of what a request may
// take, so that it decides about none, but not the hiccup of a busy host.
func pauseLimit(deadline Duration) time.Duration {
	return min(max(time.Duration(deadline)/10, time.Second), 10*time.Second)
}

// A pulse notices that the runner did not run. It is beaten all the time; a gap
// between two beats is time in which nothing of ours ran.
type pulse struct {
	now   func() time.Duration
	limit time.Duration
	alarm func(gap time.Duration)

	mu   sync.Mutex
	last time.Duration
}

// newPulse begins to count. alarm is called for each gap beyond the limit, and
// has returned before any beat returns that came after the gap.
func newPulse(now func() time.Duration, limit time.Duration, alarm func(time.Duration)) *pulse {
	return &pulse{now: now, limit: limit, alarm: alarm, last: now()}
}

// beat tells that we run. What is about to blame a server for being late beats
// first.
func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	gap := now - p.last
	p.last = now
	if gap > p.limit {
		p.alarm(gap)
	}
}

// paused ends the life because the runner did not watch it; what is in flight is
// given up.
func (l *life) paused(gap time.Duration) {
	l.bark(watchdogRecord{watchPaused, gap.Seconds(), l.pulse.limit.Seconds()})
}

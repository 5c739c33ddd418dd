package acceptance

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// watchPaused is the watchdog of the runner itself: one that was stopped, frozen
// or asleep for longer than pauseLimit has not watched, and its deadlines ran
// out while nobody could have taken the answer.
const (
	watchPaused = "runner-paused"
	pauseLimit  = time.Second
	pauseEvery  = 100 * time.Millisecond
)

// A pulse notices that the runner did not run. It is beaten all the time; a gap
// between two beats is time in which nothing of ours ran.
type pulse struct {
	now   func() time.Duration
	alarm func(gap time.Duration)

	mu   sync.Mutex
	last time.Duration
}

// newPulse begins to count. alarm is called for each gap, and has returned
// before any beat returns that came after the gap.
func newPulse(now func() time.Duration, alarm func(time.Duration)) *pulse {
	return &pulse{now: now, alarm: alarm, last: now()}
}

// beat tells that we run. What is about to blame a server for being late beats
// first.
func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	gap := now - p.last
	p.last = now
	if gap > pauseLimit {
		p.alarm(gap)
	}
}

// sinceBoot counts on while the host sleeps, and does not jump when its time is
// set. Go's own clock stands still in sleep.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // there is no Linux without this clock
	}
	return time.Duration(ts.Nano())
}

// paused ends the life because the runner did not watch it; what is in flight is
// given up.
func (l *life) paused(gap time.Duration) {
	l.bark(watchdogRecord{watchPaused, gap.Seconds(), pauseLimit.Seconds()})
}

package load

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Kinds of schedule.
const (
	Closed = "closed" // every worker sends its next request when it has its answer
	Burst  = "burst"  // all workers send at once, at intended times
)

// A Schedule says when requests are sent. It ends with Requests or after
// Duration, whichever comes first; with neither, the context ends it.
type Schedule struct {
	Kind     string        // Closed (also "") or Burst
	InFlight int           // workers, and so the most requests at once; less than 1 counts as 1
	Every    time.Duration // Burst: from the beginning of one burst to the next
	Requests int           // 0: no limit
	Duration time.Duration // no request starts later; 0: no limit
}

// Run sends requests by the schedule and returns when the last has ended. clock
// tells the time in µs, by any zero.
//
// next gives the job of request id. It is called for the ids from 0 in order,
// one call at a time, and its context ends when no request may start any more;
// false ends the load. send sends one job on a worker (from 0) and returns when
// it has its answer; intendedUS is when the job was to start.
//
// A worker that is late for a burst sends at once, with the time at which it
// was intended. What is still owed when the schedule ends is not sent.
func Run[J any](ctx context.Context, s Schedule, clock func() int64,
	next func(ctx context.Context, id int) (J, bool), send func(ctx context.Context, worker int, intendedUS int64, job J)) {
	r := &run[J]{schedule: s, clock: clock, next: next, send: send, start: clock(), turn: make(chan struct{}, 1)}
	starts := ctx
	if s.Duration > 0 {
		var cancel context.CancelFunc
		starts, cancel = context.WithTimeout(ctx, s.Duration)
		defer cancel()
	}
	var group errgroup.Group
	for worker := range max(1, s.InFlight) {
		group.Go(func() error {
			r.work(ctx, starts, worker)
			return nil
		})
	}
	_ = group.Wait() // no worker fails
}

type run[J any] struct {
	schedule Schedule
	clock    func() int64
	next     func(context.Context, int) (J, bool)
	send     func(context.Context, int, int64, J)
	start    int64 // by the clock

	turn  chan struct{} // held over next
	asked int           // jobs
	over  bool
}

// work is one worker. starts ends when no request may start any more, ctx when
// those in flight are given up too.
func (r *run[J]) work(ctx, starts context.Context, worker int) {
	for turn := int64(0); starts.Err() == nil; turn++ {
		intended := r.clock()
		if r.schedule.Kind == Burst {
			intended = r.start + turn*r.schedule.Every.Microseconds()
		}
		job, ok := r.job(starts)
		if !ok || !r.await(starts, intended) {
			return
		}
		r.send(ctx, worker, intended, job)
	}
}

func (r *run[J]) job(ctx context.Context) (job J, ok bool) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return job, false
	}
	defer func() { <-r.turn }()
	if r.over || r.schedule.Requests > 0 && r.asked >= r.schedule.Requests {
		return job, false
	}
	job, ok = r.next(ctx, r.asked)
	r.asked++
	r.over = !ok
	return job, ok
}

// await waits for a time by the clock. It tells whether a request may still
// start.
func (r *run[J]) await(ctx context.Context, until int64) bool {
	wait := time.Duration(until-r.clock()) * time.Microsecond
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

package load

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sent is one request as a test sees it.
type sent struct {
	id, worker           int
	intended, start, end time.Duration
}

// carry runs a schedule in a bubble of its own time. took says how long a
// request lasts.
func carry(ctx context.Context, s Schedule, next func(context.Context, int) (int, bool), took func(id int) time.Duration) []sent {
	var mu sync.Mutex
	var all []sent
	begin := time.Now()
	clock := func() int64 { return time.Since(begin).Microseconds() }
	Run(ctx, s, clock, next, func(ctx context.Context, worker int, intended int64, id int) {
		r := sent{id: id, worker: worker, intended: time.Duration(intended) * time.Microsecond, start: time.Since(begin)}
		select {
		case <-time.After(took(id)):
		case <-ctx.Done():
		}
		r.end = time.Since(begin)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r)
	})
	slices.SortFunc(all, func(a, b sent) int { return a.id - b.id })
	return all
}

func every(_ context.Context, id int) (int, bool) { return id, true }

// most counts how many requests were in flight at once.
func most(all []sent) int {
	n := 0
	for _, a := range all {
		at := 0
		for _, b := range all {
			if b.start <= a.start && a.start < b.end {
				at++
			}
		}
		n = max(n, at)
	}
	return n
}

func TestRun(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name     string
		schedule Schedule
		took     func(id int) time.Duration
		requests int
		inFlight int
		last     time.Duration // the last start
	}{
		{"closed", Schedule{InFlight: 4, Requests: 20}, func(int) time.Duration { return 10 * ms }, 20, 4, 40 * ms},
		{"closed, fewer requests than workers", Schedule{InFlight: 4, Requests: 2}, func(int) time.Duration { return 10 * ms }, 2, 2, 0},
		{"closed, no worker is one", Schedule{Requests: 3}, func(int) time.Duration { return 10 * ms }, 3, 1, 20 * ms},
		{"closed, until a time", Schedule{InFlight: 2, Duration: 35 * ms}, func(int) time.Duration { return 10 * ms }, 8, 2, 30 * ms},
		{"bursts", Schedule{Kind: Burst, InFlight: 4, Every: 100 * ms, Requests: 12}, func(int) time.Duration { return 10 * ms }, 12, 4, 200 * ms},
		{"bursts, the last not whole", Schedule{Kind: Burst, InFlight: 4, Every: 100 * ms, Requests: 6}, func(int) time.Duration { return 10 * ms }, 6, 4, 100 * ms},
		{"bursts, until a time", Schedule{Kind: Burst, InFlight: 4, Every: 100 * ms, Duration: 250 * ms}, func(int) time.Duration { return 10 * ms }, 12, 4, 200 * ms},
		{"bursts that the server cannot take", Schedule{Kind: Burst, InFlight: 2, Every: 10 * ms, Requests: 8}, func(int) time.Duration { return 100 * ms }, 8, 2, 300 * ms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := carry(t.Context(), tt.schedule, every, tt.took)
				if len(all) != tt.requests {
					t.Fatalf("%d requests, want %d", len(all), tt.requests)
				}
				var last time.Duration
				for i, r := range all {
					last = max(last, r.start)
					if r.id != i || r.worker < 0 || r.worker >= max(1, tt.schedule.InFlight) || r.start < r.intended {
						t.Errorf("request %d: %+v", i, r)
					}
				}
				if n := most(all); n != tt.inFlight || last != tt.last {
					t.Errorf("%d in flight, the last at %s; want %d, %s", n, last, tt.inFlight, tt.last)
				}
			})
		})
	}
}

// A server that stalls does not hide it: what waited counts from when it was to
// start.
func TestStallCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stall := func(id int) time.Duration {
			if id == 3 {
				return time.Second
			}
			return time.Millisecond
		}
		var h Histogram
		for i, r := range carry(t.Context(), Schedule{Kind: Burst, InFlight: 1, Every: 10 * time.Millisecond, Requests: 200}, every, stall) {
			if want := time.Duration(i) * 10 * time.Millisecond; r.intended != want {
				t.Fatalf("request %d was meant for %s, want %s", i, r.intended, want)
			}
			h.Record((r.end - r.intended).Microseconds())
		}
		// 1 s of stall and then 110 requests that catch up by 9 ms each.
		if p50 := h.Quantile(0.5); p50 < 50_000 || p50 > 120_000 || h.Max() != 1_000_000 {
			t.Errorf("median %d µs, maximum %d", p50, h.Max())
		}
	})
}

func TestRunEnds(t *testing.T) {
	t.Run("no more jobs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			all := carry(t.Context(), Schedule{InFlight: 3}, func(_ context.Context, id int) (int, bool) {
				calls++
				return id, id < 7
			}, func(int) time.Duration { return time.Second })
			if len(all) != 7 || calls != 8 {
				t.Errorf("%d requests of %d calls", len(all), calls)
			}
		})
	})
	t.Run("a job that is waited for when the time is over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			all := carry(t.Context(), Schedule{InFlight: 3, Duration: time.Minute}, func(ctx context.Context, id int) (int, bool) {
				if id == 1 {
					<-ctx.Done()
					return 0, false
				}
				return id, true
			}, func(int) time.Duration { return time.Hour })
			if len(all) != 1 || all[0].end != time.Hour {
				t.Errorf("%+v: want the one in flight to go on", all)
			}
		})
	})
	t.Run("given up", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for _, kind := range []string{Closed, Burst} {
				begin := time.Now()
				all := carry(ctx, Schedule{Kind: kind, InFlight: 3, Every: time.Hour}, every, func(int) time.Duration { return 2 * time.Hour })
				if len(all) != 3 || time.Since(begin) != time.Minute {
					t.Errorf("%s: %d requests after %s", kind, len(all), time.Since(begin))
				}
				ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
			}
		})
	})
}

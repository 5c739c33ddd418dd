package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/systemd"
)

// startJob is a restart job of a unit, and what was seen of the unit while it went on: systemd forgets how a start
// failed as soon as Restart= begins the next one.
type startJob struct {
	unit     *systemd.Unit // before
	limit    time.Duration
	result   string        // systemd's word for how the job ended, "" where it did not within the limit
	seen     *systemd.Unit // the unit when a new incarnation had ended, nil where none was seen to
	stuck    bool          // what ran before it has not ended
	answered bool          // it answered while systemd still waited for READY=1
}

// job restarts the unit and awaits the job. An error means that nothing is known of its end.
func (s *session) job(ctx context.Context, u *systemd.Unit) (startJob, error) {
	j := startJob{unit: u, limit: s.h.jobTime(u)}
	waiting, cancel := context.WithTimeout(ctx, j.limit)
	defer cancel()
	looking, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { s.witness(looking, &j); return nil })
	result, err := s.m.Restart(waiting, s.unit)
	stop()
	_ = group.Wait()
	j.result = result
	switch {
	case ctx.Err() != nil:
		return j, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		now, err := s.m.Unit(ctx, s.unit)
		j.stuck = err == nil && u.MainPID != 0 && now.MainPID == u.MainPID && now.InvocationID == u.InvocationID
		return j, nil
	case err != nil:
		return j, err
	}
	if result != "done" {
		if now, err := s.m.Unit(ctx, s.unit); err == nil {
			j.see(now)
		}
	}
	return j, nil
}

// witness looks at the unit until ctx ends.
func (s *session) witness(ctx context.Context, j *startJob) {
	began, wait := s.h.Now(), "%s: waiting for systemd to restart it: %s"
	s.h.progress(wait, s.unit, time.Duration(0))
	for n := 0; pause(ctx, healthPoll) == nil; n++ {
		s.h.progress(wait, s.unit, s.h.ago(began))
		u, err := s.m.Unit(ctx, s.unit)
		if err != nil {
			continue
		}
		j.see(u)
		if j.answered || n%10 != 0 || u.SubState != "start" || !strings.HasPrefix(u.Type, "notify") {
			continue
		}
		if _, procs, err := s.h.live(u, s.place, nil); err == nil {
			_, state, err := s.h.ask(ctx, procs)
			j.answered = err == nil && state == "ok"
		}
	}
}

// see keeps a state of the unit that tells how the new incarnation ended.
func (j *startJob) see(u *systemd.Unit) {
	isNew := u.InvocationID != j.unit.InvocationID || u.Result == "start-limit-hit"
	if isNew && ending(u) != "" {
		j.seen = u
	}
}

// failure says why the job did not start the service.
func (j *startJob) failure() error {
	f := &failure{}
	waits := strings.HasPrefix(j.unit.Type, "notify")
	switch {
	case j.result == "" && waits:
		f.reason = fmt.Sprintf("READY=1 did not come within %s (Type=%s, TimeoutStartSec=%s)", j.limit, j.unit.Type, or(limitText(j.unit.TimeoutStart), "infinity"))
	case j.result == "":
		f.reason = fmt.Sprintf("the start did not end within %s", j.limit)
	case j.seen != nil:
		f.reason, f.invocation = ending(j.seen), j.seen.InvocationID
		if waits && j.seen.Result != "timeout" {
			f.reason += " before READY=1"
		}
	default:
		f.reason = fmt.Sprintf("the start job ended with %q", j.result)
	}
	if j.answered {
		f.reason += ", although it answered: it does not say READY=1, or a process does to which NotifyAccess= does not listen"
	}
	return f
}

func limitText(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return d.String()
}

// jobTime bounds the wait for a restart job: the stop may take its time, then the start may, at least as long as a
// service may take to answer, since it can ask systemd for more time than its limit says (EXTEND_TIMEOUT_USEC) and
// the limit can be infinity. An idle moment more, so that systemd's own verdict comes first.
func (h *Host) jobTime(u *systemd.Unit) time.Duration {
	stop := u.TimeoutStop
	if stop <= 0 {
		stop = h.loadDeadline()
	}
	return stop + max(u.TimeoutStart, h.loadDeadline()) + 5*time.Second
}

// checkable refuses a unit whose service is not there any more when its start has ended.
func (s *session) checkable(ctx context.Context, u *systemd.Unit) error {
	if u.Type != "oneshot" {
		return nil
	}
	remains, err := s.m.RemainsAfterExit(ctx, u.ID)
	if err != nil || remains {
		return err
	}
	return fmt.Errorf("%w: the unit is Type=oneshot without RemainAfterExit=yes: nothing of it runs when its start has ended, so nothing can be checked; a server is Type=exec or Type=notify",
		ErrRefused)
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// Restart restarts a service on what is armed, which is the owner's act, and checks it: it must load within
// Host.LoadDeadline, answer from the armed package, answer soundly and alike twice, and stay up for the watch
// period. A package that fails is blocked with the reason and the service goes back, once, to the one that served
// before; the error then wraps [ErrReturned].
func (h *Host) Restart(ctx context.Context, unit string, watch time.Duration) (*Outcome, error) {
	s, err := h.begin(ctx, unit, "restart "+unit, false)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		v, err := s.view(ctx)
		if err == nil && len(v.armed) == 0 {
			err = fmt.Errorf("%w: no package is armed for it; systemctl restart does what is left to do", ErrRefused)
		}
		if err != nil {
			return fmt.Errorf("restart %s: %w", s.unit, err)
		}
		return s.restart(ctx, watch, out)
	})
}

// restart is Restart under the locks.
func (s *session) restart(ctx context.Context, watch time.Duration, out *Outcome) error {
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	armed := v.armed.pkg(v.place)
	if out.To == "" {
		live, _, err := s.h.live(v.loaded, v.place, v.armed.keys())
		if err != nil {
			return err
		}
		from, _ := live.runs()
		out.From, out.To = from.Name, armed.Name
	}
	var bad *failure
	err = s.start(ctx, armed, watch, out)
	if err == nil {
		return nil
	}
	if !errors.As(err, &bad) {
		return fmt.Errorf("restart %s: %w", s.unit, err)
	}
	if v.active == nil || v.active.rolledBack() || !v.active.Package.same(armed) {
		return fmt.Errorf("restart %s: %s failed and there is nothing to go back to: %w", s.unit, or(armed.Name, "it"), err)
	}
	return s.giveBack(ctx, armed, bad, watch, out)
}

// giveBack returns a service whose package failed to the one that served before, once.
func (s *session) giveBack(ctx context.Context, failed PackageRef, bad *failure, watch time.Duration, out *Outcome) error {
	from := out.From
	if err := s.disarm(ctx, actReturn, bad.reason, out); err != nil {
		return fmt.Errorf("restart %s: %s failed (%w), and the service could not go back: %w", s.unit, failed.Name, bad, err)
	}
	to := out.To
	out.From, out.Returned = from, true
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	armed := v.armed.pkg(v.place)
	to = or(or(armed.Name, to), "what the unit says without this program")
	out.To = armed.Name
	if err := s.start(ctx, armed, 0, out); err != nil {
		too := ""
		if errors.As(err, new(*failure)) {
			too = ", and that failed too"
		}
		return fmt.Errorf("restart %s: %s failed (%w), the service went back to %s%s: %w",
			s.unit, failed.Name, bad, to, too, err)
	}
	return fmt.Errorf("restart %s: %s failed: %w; %w: %s serves", s.unit, failed.Name, bad, ErrReturned, to)
}

// start restarts the unit, awaits the job, and checks the service. A *failure is the service's. The unit's lock is
// held before and after, and not meanwhile: the owner may roll back at any moment. Then this act has no verdict.
func (s *session) start(ctx context.Context, pkg PackageRef, watch time.Duration, out *Outcome) error {
	intent, err := s.h.intend(ctx, entry{Unit: s.unit, Act: actRestart, From: pkg.Name, To: pkg.Name, Digest: pkg.Digest})
	recorded := err == nil
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("not recorded: %v", err))
	} else {
		defer s.h.journal().hold(intent)()
	}
	left := s.mark()
	s.unlock()
	notes, err := s.started(ctx, pkg, watch, func() error {
		if s.mark() != left {
			return errTaken
		}
		return nil
	})
	out.Restarted, s.health, s.loaded = true, "", nil
	out.Notes = append(out.Notes, notes...)
	interrupted := ctx.Err() != nil
	ctx, cancel := begun(ctx)
	defer cancel()
	if lerr := s.lock(ctx); lerr != nil { // the next command closes the intent
		return fmt.Errorf("after the restart (%s): %w", or(errText(err), resultServes), lerr)
	}
	later, closed := "", false
	if recorded {
		later, closed = s.h.since(intent)
	}
	var bad *failure
	end := closing{phase: phaseCommit, result: resultServes}
	switch {
	case later != "" || s.mark() != left:
		err = fmt.Errorf("%w: %s; %s", errTaken, or(later, "its drop-in was changed"), s.stands(ctx))
		end = closing{phase: phaseAbort, reason: err.Error()}
	case errors.As(err, &bad):
		end = closing{phase: phaseCommit, result: resultFailed, reason: bad.reason}
	case err != nil && interrupted:
		err = fmt.Errorf("interrupted before it was known to serve: %s, and nothing was taken back: %w", s.stands(ctx), err)
		end = closing{phase: phaseAbort, reason: err.Error()}
	case err != nil:
		end = closing{phase: phaseAbort, reason: err.Error()}
	}
	s.h.log().Info("restarted", "unit", s.unit, "package", pkg.Name, "result", or(end.result, end.reason))
	if closed && end.phase == phaseCommit { // taken for one that was cut off
		intent, err2 := s.h.intend(ctx, intent)
		recorded = err2 == nil
		if recorded {
			err2 = s.h.close(ctx, intent, end)
		}
		if err2 != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("not recorded: %v", err2))
		}
		return err
	}
	if recorded && !closed {
		if err := s.h.close(ctx, intent, end); err != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("not recorded: %v", err))
		}
	}
	return err
}

// started does the restart and waits for the verdict.
func (s *session) started(ctx context.Context, pkg PackageRef, watch time.Duration, taken func() error) (notes []string, err error) {
	u, err := s.m.Unit(ctx, s.unit)
	if err != nil {
		return nil, err
	}
	// A start limit that the failed package used up must not stop the one that is to serve.
	if err := s.m.ResetFailed(ctx, s.unit); err != nil {
		return nil, err
	}
	job, cancel := context.WithTimeout(ctx, s.h.jobTime(u))
	defer cancel()
	result, err := s.m.Restart(job, s.unit)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil, failf("the start did not end within %s", s.h.jobTime(u))
	case err != nil:
		return nil, err
	}
	w, err := s.h.watch(ctx, s.m, s.unit, pkg, s.place)
	if err != nil {
		return nil, err
	}
	w.taken = taken
	switch result {
	case "done":
	case "failed", "timeout":
		return nil, failf("the start job ended with %q", result)
	default:
		return nil, fmt.Errorf("the job ended with %q", result)
	}
	err = w.serves(ctx, watch)
	return w.notes, err
}

// jobTime bounds the wait for a restart job: the stop may take its time, then the start may, and a unit that sets
// no limit to its start gets the load deadline. An idle moment more, so that systemd's own verdict comes first.
func (h *Host) jobTime(u *systemd.Unit) time.Duration {
	stop, start := u.TimeoutStop, u.TimeoutStart
	if stop <= 0 {
		stop = h.loadDeadline()
	}
	if start <= 0 {
		start = h.loadDeadline()
	}
	return stop + start + 5*time.Second
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// Restart restarts a service on what is armed, which is the owner's act, and checks it: it must load within
// Host.LoadDeadline, answer from the armed package, answer soundly and alike twice, and stay up for the watch
// period. A package that fails is blocked with the reason and the service goes back, once, to the one that served
// before; the error then wraps [ErrReturned].
func (h *Host) Restart(ctx context.Context, unit string, watch time.Duration) (*Outcome, error) {
	act := "restart " + unit
	var agreed *PackageRef // what the owner was told that the restart brings
	return h.perform(ctx, unit, act, false, func(s *session) ([]string, error) {
		notes, err := s.restartable(ctx)
		if v, verr := s.view(ctx); err == nil && verr == nil {
			armed := v.armedPackage()
			agreed = &armed
		}
		if err != nil {
			err = fmt.Errorf("restart %s: %w", s.unit, err)
		}
		return notes, err
	}, func(s *session, out *Outcome) error {
		if _, err := s.restartable(ctx); err != nil {
			return fmt.Errorf("restart %s: %w", s.unit, err)
		}
		if v, err := s.view(ctx); err != nil {
			return err
		} else if armed := v.armedPackage(); agreed != nil && !armed.same(*agreed) {
			return fmt.Errorf("restart %s: %w", s.unit, movedFrom(agreed.Name, armed.Name))
		}
		return s.restart(ctx, watch, out)
	})
}

// restartable checks what can be checked before a restart, and says what it changes.
func (s *session) restartable(ctx context.Context) (notes []string, err error) {
	v, err := s.view(ctx)
	if err != nil {
		return nil, err
	}
	armed := v.armedPackage()
	switch {
	case !v.astray.isZero():
		return nil, fmt.Errorf("%w: no package is armed for it: %s; %s", ErrRefused, v.astray, v.astray.remedy())
	case armed.isZero():
		return nil, fmt.Errorf("%w: no package is armed for it; systemctl restart does what is left to do", ErrRefused)
	}
	if err := s.checkable(ctx, v.loaded); err != nil {
		return nil, err
	}
	live, _, err := s.h.live(v.loaded, v.place, v.armed.keys())
	if err != nil {
		return nil, err
	}
	runs, ok := live.runs()
	if live != nil && (live.Unreadable || !ok || !live.only(armed)) { // it changes what runs, or that cannot be told
		if err := s.h.unheld(s.unit); err != nil {
			return nil, err
		}
		notes = append(notes, fmt.Sprintf("it runs %s; the restart brings %s", orNothing(runs.Name), armed.Name))
	}
	return append(notes, s.takesDown(ctx)...), nil
}

// takesDown says which units a restart stops too.
func (s *session) takesDown(ctx context.Context) []string {
	units, err := s.m.Dependants(ctx, s.unit)
	if err != nil || len(units) == 0 {
		return nil
	}
	return []string{"a restart also stops what depends on it: " + strings.Join(units, ", ")}
}

// restart is Restart under the locks, and what it took down with it and left there is noted.
func (s *session) restart(ctx context.Context, watch time.Duration, out *Outcome) error {
	err := s.restartOrReturn(ctx, watch, out)
	if s.first != nil {
		looked, cancel := begun(ctx)
		defer cancel()
		out.Notes = append(out.Notes, s.first.lost(looked, s.m, s.h.userFlag())...)
	}
	return err
}

func (s *session) restartOrReturn(ctx context.Context, watch time.Duration, out *Outcome) error {
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	if err := s.checkable(ctx, v.loaded); err != nil {
		return fmt.Errorf("restart %s: %w", s.unit, err)
	}
	armed := v.armedPackage()
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
	out.Notes = append(out.Notes, bad.logged()...)
	if bad.foreign && s.served(armed) {
		return fmt.Errorf("restart %s: %s failed: %w; it served before and is not to blame, so nothing was taken back", s.unit, armed.Name, err)
	}
	net, ok := s.safetyNet(ctx, v, armed)
	if !ok {
		return fmt.Errorf("restart %s: %s failed and there is nothing to go back to: %w", s.unit, or(armed.Name, "it"), err)
	}
	return s.giveBack(ctx, armed, net, bad, out)
}

// served tells whether the journal saw the package serve since it was armed.
func (s *session) served(pkg PackageRef) bool {
	entries, err := s.h.journal().entries(string(s.h.Scope), s.unit)
	return err == nil && served(entries, pkg)
}

// safetyNet is the rollback that a service takes whose package failed: after a rollback it is the one further back.
func (s *session) safetyNet(ctx context.Context, v *view, armed PackageRef) (opts RollbackOptions, ok bool) {
	if v.active == nil || v.active.Act == actAdopt || !v.active.Package.same(armed) {
		return opts, false
	}
	opts.Again = v.active.rolledBack()
	w, done, err := v.goingBack(opts)
	if err != nil || done != "" {
		return opts, false
	}
	if w.way == wayAway {
		_, to := s.bare(ctx, w)
		return opts, !to.same(armed)
	}
	return opts, true
}

// giveBack returns a service whose package failed to the one that served before, once.
func (s *session) giveBack(ctx context.Context, failed PackageRef, net RollbackOptions, bad *failure, out *Outcome) error {
	from := out.From
	net.Reason = bad.reason
	if err := s.disarm(ctx, net, out); err != nil {
		return fmt.Errorf("restart %s: %s failed (%w), and the service could not go back: %w", s.unit, failed.Name, bad, err)
	}
	out.Notes = append(out.Notes, s.blame(ctx, failed, bad, out))
	to := out.To
	out.From, out.Returned = from, true
	if !out.Loaded { // a start would be one of the package that failed
		return fmt.Errorf("restart %s: %s failed (%w); %s, to which it goes back, is written and could not be loaded: the next command loads it",
			s.unit, failed.Name, bad, or(to, "what the unit says without this program"))
	}
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	armed := v.armedPackage()
	to = or(or(armed.Name, to), "what the unit says without this program")
	out.To, s.goesBack = armed.Name, true
	if err := s.start(ctx, armed, 0, out); err != nil {
		too := ""
		if errors.As(err, new(*failure)) {
			too = ", and that failed too"
		}
		return fmt.Errorf("restart %s: %s failed (%w), the service went back to %s%s: %w",
			s.unit, failed.Name, bad, to, too, err)
	}
	does := "serves"
	if out.Unchecked != "" {
		does = "runs (its answers were not checked: " + out.Unchecked + ")"
	}
	return fmt.Errorf("restart %s: %s failed: %w; %w: %s %s", s.unit, failed.Name, bad, ErrReturned, to, does)
}

// blame lifts the block of a package that is not to blame, and says whether the package is blocked.
func (s *session) blame(ctx context.Context, failed PackageRef, bad *failure, out *Outcome) string {
	if !bad.foreign {
		return fmt.Sprintf("%s is blocked for this service now; to lift that: 1bit pkg unblock %s %s", failed.Name, s.unit, failed.Name)
	}
	ctx, cancel := begun(ctx)
	defer cancel()
	if err := s.unblock(ctx, failed.Name, out); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("%s is not to blame, and its block could not be lifted: %v", failed.Name, err)
	}
	return failed.Name + " is not to blame and was not blocked"
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
	notes, unchecked, err := s.started(ctx, pkg, watch, func() error {
		if s.mark() != left {
			return errTaken
		}
		return nil
	})
	out.Restarted, s.health, s.loaded = true, "", nil
	out.Unchecked, out.Notes = unchecked, append(out.Notes, notes...)
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
	if unchecked != "" {
		end.result = resultRuns
	}
	switch {
	case later != "" || s.mark() != left:
		err = fmt.Errorf("%w: %s; %s", errTaken, or(later, "its drop-in was changed"), s.stands(ctx))
		end = closing{phase: phaseAbort, reason: err.Error()}
	case errors.As(err, &bad):
		end = closing{phase: phaseCommit, result: resultFailed, reason: bad.reason}
	case errors.Is(err, errNoVerdict):
		err = s.untouched(ctx, err)
		end = closing{phase: phaseAbort, reason: err.Error()}
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
func (s *session) started(ctx context.Context, pkg PackageRef, watch time.Duration, taken func() error) (notes []string, unchecked string, err error) {
	u, err := s.m.Unit(ctx, s.unit)
	if err != nil {
		return nil, "", err
	}
	was := s.h.lookBefore(ctx, s.m, u, s.place)
	if s.first == nil {
		s.first = &was
	}
	// A start limit that the failed package used up must not stop the one that is to serve.
	if err := s.m.ResetFailed(ctx, s.unit); err != nil {
		return nil, "", err
	}
	j, err := s.job(ctx, u)
	if err == nil && s.goesBack && j.result != "done" && !j.stuck {
		// Between the two calls Restart= may have used up the limit again.
		if err = s.m.ResetFailed(ctx, s.unit); err == nil {
			j, err = s.job(ctx, u)
		}
	}
	if err != nil {
		return nil, "", err
	}
	w := &watched{h: s.h, m: s.m, unit: s.unit, pkg: pkg, place: s.place, before: was, first: *s.first, taken: taken}
	switch {
	case j.stuck:
		err = fmt.Errorf("%w: the old service (process %d) does not stop, and the new one starts only then (TimeoutStopSec=%s)",
			errNoVerdict, u.MainPID, or(limitText(u.TimeoutStop), "infinity"))
	case j.result == "done":
		if err = w.begin(ctx); err == nil {
			err = w.serves(ctx, watch)
		}
	case j.result == "", j.result == "failed", j.result == "timeout":
		err = j.failure()
	case j.result == "canceled":
		err = fmt.Errorf("%w: somebody stopped it, or asked for another job, before it was started", errNoVerdict)
	default:
		err = fmt.Errorf("the job ended with %q", j.result)
	}
	return w.notes, w.unchecked, w.explain(ctx, err)
}

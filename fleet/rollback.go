package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// RollbackOptions says how a rollback is done.
type RollbackOptions struct {
	Again   bool          // one further back than the rollback goes from here, or than the last one went
	Undo    bool          // return to what the last rollback left, and lift its block
	Reason  string        // why what is left is blocked; "": it was rolled back
	Restart bool          // restart the service afterwards, with health check
	Watch   time.Duration // how long the restarted service is watched after it answered; 0: not
}

// Rollback arms the last package that the unit was seen serving from before the armed one, and blocks the armed
// one. Repeated, it changes nothing. It needs neither a manager (Outcome.Loaded is then false), nor space on the
// disk, nor the journal, nor the store's lock. It refuses only a target that is damaged; the error then wraps
// [packager.ErrIntegrity] and names what can be gone to instead.
//
// With Again it goes one further back and may need space; the error wraps [ErrRefused] where nothing is further
// back. With Undo it returns to what was left, and changes nothing where nothing was rolled back.
func (h *Host) Rollback(ctx context.Context, unit string, opts RollbackOptions) (*Outcome, error) {
	act := opts.act(unit)
	s, err := h.beginBack(ctx, unit, act, opts)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		if err := s.goBack(ctx, opts, out); err != nil {
			return fmt.Errorf("%s: %w", opts.verb(s.unit), err)
		}
		if !opts.Restart {
			return nil
		}
		if s.m == nil {
			return fmt.Errorf("restart %s: %w", s.unit, systemd.ErrNoBus)
		}
		if !out.Changed {
			if runs, err := s.runsArmed(ctx); err != nil || runs {
				out.Notes = append(out.Notes, "it runs that package already and was not restarted")
				return err
			}
		}
		return s.restart(ctx, opts.Watch, out)
	})
}

// verb says what is done to the unit's files, act also what to its processes.
func (o RollbackOptions) verb(unit string) string {
	switch {
	case o.Undo:
		return "undo the rollback of " + unit
	case o.Again:
		return "roll back " + unit + " one further"
	}
	return "roll back " + unit
}

func (o RollbackOptions) act(unit string) string {
	if o.Restart {
		return o.verb(unit) + " and restart it"
	}
	return o.verb(unit)
}

// runsArmed tells whether all that runs of the unit runs from what is armed.
func (s *session) runsArmed(ctx context.Context) (bool, error) {
	v, err := s.view(ctx)
	if err != nil {
		return false, err
	}
	live, _, err := s.h.live(v.loaded, v.place, v.armed.keys())
	if err != nil {
		return false, err
	}
	return live != nil && !live.Unreadable && v.loaded.ActiveState == "active" && !pending(v.loaded, live, v.armedPackage()), nil
}

// loadRest has the manager load what an earlier act could only write.
func (s *session) loadRest(ctx context.Context, out *Outcome) error {
	if s.m == nil {
		out.Loaded = false
		return nil
	}
	v, err := s.view(ctx)
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("whether all of it is loaded cannot be told: %v", err))
		return nil
	}
	if slices.Equal(v.armed, v.onDisk) {
		return nil
	}
	if err := s.reload(ctx); err != nil {
		out.Loaded = false
		return err
	}
	out.From, out.Changed = v.armedPackage().Name, true
	out.Notes = append(out.Notes, "it is loaded now")
	return nil
}

// lookBack works out, from our files alone, where the act goes. done says why it changes nothing.
func (s *session) lookBack(opts RollbackOptions) (w away, done string, err error) {
	v := &view{place: s.place}
	if err := v.readPair(pair{s.h.dropInDir(s.unit)}); err != nil {
		return w, "", err
	}
	return v.goingBack(opts)
}

// goingBack is where the options lead from what our files say.
func (v *view) goingBack(opts RollbackOptions) (w away, done string, err error) {
	if errors.Is(v.activeErr, ErrRefused) {
		return w, "", v.activeErr
	}
	if v.active == nil && v.activeErr == nil && v.prev == nil && v.prevErr == nil {
		return w, "", fmt.Errorf("%w: there is no switch to roll back", ErrRefused)
	}
	switch {
	case opts.Undo:
		return v.back()
	case opts.Again:
		w, err = v.further()
		return w, "", err
	}
	w, done = v.away()
	return w, done, nil
}

// disarm is the return of a service whose package failed, to what a rollback by hand would go to.
func (s *session) disarm(ctx context.Context, net RollbackOptions, out *Outcome) error {
	return s.change(ctx, net, actReturn, out)
}

// goBack is a rollback by hand.
func (s *session) goBack(ctx context.Context, opts RollbackOptions, out *Outcome) error {
	act := actRollback
	if opts.Undo {
		act = actUndo
	}
	return s.change(ctx, opts, act, out)
}

// change works out where the options lead, checks it, and goes there.
func (s *session) change(ctx context.Context, opts RollbackOptions, act string, out *Outcome) error {
	files := pair{s.h.dropInDir(s.unit)}
	v := &view{place: s.place}
	if err := v.readPair(files); err != nil {
		return err
	}
	w, done, err := v.goingBack(opts)
	if err != nil {
		return err
	}
	if done != "" {
		out.From, out.To = w.to.Name, w.to.Name
		out.Notes = append(out.Notes, done)
		return s.loadRest(ctx, out)
	}
	switch {
	case w.way == wayAway:
		w.from, w.to = s.bare(ctx, w)
	case w.way == wayBack:
		w.from, _ = s.bare(ctx, w)
	}
	if err := s.verifyTarget(ctx, v, w, opts); err != nil {
		return err
	}
	if b, bad := blocked(v.blocks(), w.to); bad && !w.undo && !w.to.isZero() {
		if opts.Again {
			return fmt.Errorf("%w: further back is only %s, which is blocked: %s (lift it with: 1bit pkg unblock %s %s)",
				ErrRefused, w.to.Name, b.Reason, s.unit, w.to.Name)
		}
		out.Notes = append(out.Notes, fmt.Sprintf("%s is blocked for this service all the same: %s", w.to.Name, b.Reason))
	}
	if err := s.make(v, &w, opts.Reason); err != nil {
		return err
	}
	out.From, out.To = w.from.Name, w.to.Name
	if pkg := s.place.pkg(w.to.Path); pkg != nil {
		for _, problem := range s.h.Missing(pkg.Manifest) {
			out.Notes = append(out.Notes, fmt.Sprintf("%s wants something of this host: %s", w.to.Name, problem))
		}
	}
	return s.putAway(ctx, files, v, w, act, opts.Reason, out)
}

// make makes the files that a way lacks.
func (s *session) make(v *view, w *away, reason string) error {
	switch {
	case w.way == wayAnew:
		return s.anew(v, w, reason)
	case w.rebuilt:
		d, err := v.rebuild(w.to)
		if err == nil {
			w.file, err = d.Encode()
		}
		return err
	}
	return nil
}

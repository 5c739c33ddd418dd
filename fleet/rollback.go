package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// RollbackOptions says how a rollback is done.
type RollbackOptions struct {
	Restart bool          // restart the service afterwards, with health check
	Watch   time.Duration // how long the restarted service is watched after it answered; 0: not
}

// Rollback arms the last package that the unit was seen serving from before the armed one, and blocks the armed
// one. Repeated, it changes nothing. It needs neither a manager (Outcome.Loaded is then false), nor space on the
// disk, nor the journal. It refuses only a target that is damaged; the error then wraps [packager.ErrIntegrity].
func (h *Host) Rollback(ctx context.Context, unit string, opts RollbackOptions) (*Outcome, error) {
	act := "roll back " + unit
	if opts.Restart {
		act += " and restart it"
	}
	s, err := h.beginRollback(ctx, unit, act)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		if err := s.disarm(ctx, actRollback, "", out); err != nil {
			return fmt.Errorf("roll back %s: %w", s.unit, err)
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
	return live != nil && !live.Unreadable && v.loaded.ActiveState == "active" && !pending(v.loaded, live, v.armed.pkg(v.place)), nil
}

// beginRollback is begin for an act that goes on where others must stop: without a manager, without the store's
// lock file.
func (h *Host) beginRollback(ctx context.Context, unit, act string) (*session, error) {
	s := &session{h: h, began: h.Now(), place: h.place()}
	ok := false
	defer func() {
		if !ok {
			s.end()
		}
	}()
	fail := func(err error) (*session, error) { return nil, fmt.Errorf("%s: %w", act, err) }
	var err error
	if s.unit, err = unitName(unit); err != nil {
		return fail(err)
	}
	if s.m, err = h.Connect(ctx); err == nil {
		s.undo = append(s.undo, s.m.Close)
		err = s.known(ctx)
	}
	if err != nil {
		if ctx.Err() != nil || !h.exists(s.unit) {
			return fail(err)
		}
		s.m = nil
		s.notes = append(s.notes, fmt.Sprintf("written, not loaded: %v", err))
	}
	if !h.exists(s.unit) {
		return fail(fmt.Errorf("%w: %s was never switched by this program", ErrRefused, s.unit))
	}
	if err := h.authorise(act); err != nil {
		return fail(err)
	}
	unlock, err := h.Store.LockShared(ctx)
	switch {
	case err == nil:
		s.undo = append(s.undo, unlock)
	case errors.Is(err, store.ErrBusy):
		return fail(err)
	default:
		s.notes = append(s.notes, fmt.Sprintf("the store is not locked meanwhile: %v", err))
	}
	if err := s.lock(ctx); err != nil {
		return fail(err)
	}
	notes, err := h.recover(ctx, s.m, s.unit)
	if err != nil && s.m != nil { // the manager may be what is wrong: the files can be settled without it
		notes = append(notes, err.Error())
		var more []string
		more, err = h.recover(ctx, nil, s.unit)
		notes = append(notes, more...)
	}
	if err != nil {
		notes = append(notes, err.Error())
	}
	s.notes = append(s.notes, notes...)
	ok = true
	return s, nil
}

// known asks the manager for what a rollback can do without. A unit of which only our files are left is no error.
func (s *session) known(ctx context.Context) (err error) {
	if s.specs, err = s.m.Specifiers(ctx); err != nil {
		return err
	}
	u, err := s.m.Unit(ctx, s.unit)
	if err == nil {
		s.unit = u.ID
	} else if errors.Is(err, systemd.ErrNoUnit) && s.h.exists(s.unit) {
		err = nil
	}
	return err
}

// disarm puts the rollback file in place of the active one, or puts the active one away where there was none
// before it. act is actRollback or actReturn; reason is why the package is blocked, "" for a rollback by hand.
func (s *session) disarm(ctx context.Context, act, reason string, out *Outcome) error {
	files := pair{s.h.dropInDir(s.unit)}
	v := &view{place: s.place}
	if err := v.readPair(files); err != nil {
		return err
	}
	if errors.Is(v.activeErr, ErrRefused) {
		return v.activeErr
	}
	if v.active == nil && v.activeErr == nil && v.prev == nil && v.prevErr == nil {
		return fmt.Errorf("%w: there is no switch to roll back", ErrRefused)
	}
	w, done := v.away()
	if done != "" {
		out.From, out.To = w.to.Name, w.to.Name
		out.Notes = append(out.Notes, done)
		return nil
	}
	if w.rebuilt {
		d, err := v.rebuild(w.to)
		if err == nil {
			w.file, err = d.Encode()
		}
		if err != nil {
			return err
		}
	}
	if err := s.verifyTarget(ctx, w.to, w.from); err != nil {
		return err
	}
	if w.file == nil {
		w.from, w.to = s.bare(ctx, w)
	}
	out.From, out.To = w.from.Name, w.to.Name
	if pkg := s.place.pkg(w.to.Path); pkg != nil {
		for _, problem := range s.h.Missing(pkg.Manifest) {
			out.Notes = append(out.Notes, fmt.Sprintf("%s wants something of this host: %s", w.to.Name, problem))
		}
	}
	return s.putAway(ctx, files, v, w, act, reason, out)
}

// verifyTarget refuses a target that is not there or not as its digest says.
func (s *session) verifyTarget(ctx context.Context, to, from PackageRef) error {
	if to.isZero() {
		return nil
	}
	err := func() error {
		pkg := s.place.pkg(to.Path)
		if pkg == nil {
			if _, err := os.Stat(to.Path); err != nil {
				return fmt.Errorf("%w: %w", packager.ErrIntegrity, err)
			}
			return nil // never imported: nothing to compare with
		}
		if to.Digest != "" && pkg.Digest != to.Digest {
			return fmt.Errorf("%w: it has the digest %s, not %s", packager.ErrIntegrity, pkg.Digest, to.Digest)
		}
		return s.h.verify(ctx, pkg, false)
	}()
	if err == nil {
		return nil
	}
	var others []string
	if all, lerr := s.h.Store.List(ctx); lerr == nil {
		for _, p := range all {
			if p.State == store.StateOK && !refOf(p).same(to) && !refOf(p).same(from) {
				others = append(others, p.Name)
			}
		}
	}
	offer := "no other good package is installed"
	if len(others) > 0 {
		offer = "switch to one of these instead: " + strings.Join(others, ", ")
	}
	return fmt.Errorf("%s cannot be gone back to: %w; %s", to.Name, err, offer)
}

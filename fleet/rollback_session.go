package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// removalWait is how long a rollback waits for a removal of packages. It goes on without the store's lock then: what
// it goes to is named in the unit's files, and no removal takes that.
const removalWait = time.Second

// managerWait is how long a rollback, and an unswitch, wait for a manager that is there and says nothing: one that waits
// for a file itself, or is stopped. They write without it then.
const managerWait = 10 * time.Second

var errSilent = fmt.Errorf("the manager does not answer within %v", managerWait)

// beginBack is begin for an act that goes on where others must stop: without a manager, without the store's lock. The
// owner is asked before any lock is taken, and only where something is to change.
func (h *Host) beginBack(ctx context.Context, unit, act string, opts RollbackOptions) (*session, error) {
	s := &session{h: h, began: h.Now(), place: h.place()}
	ok := false
	defer func() {
		if !ok {
			s.end()
		}
	}()
	fail := func(err error) (*session, error) { return nil, fmt.Errorf("%s: %w", act, err) }
	if err := s.find(ctx, unit); err != nil {
		return fail(err)
	}
	if !h.exists(s.unit) {
		return fail(fmt.Errorf("%w: %s was never switched by this program", ErrRefused, s.unit))
	}
	if h.Authorise != nil && (pair{h.dropInDir(s.unit)}).staged() { // the owner must see what the act will find
		if err := s.lock(ctx); err != nil {
			return fail(err)
		}
		s.settle(ctx)
		s.unlock()
	}
	asked, err := s.agreed(act, opts)
	if err != nil {
		return fail(err)
	}
	if err := s.lockStore(ctx, opts.Undo); err != nil {
		return fail(err)
	}
	if err := s.lock(ctx); err != nil {
		return fail(err)
	}
	s.settle(ctx)
	if asked != nil {
		now, _, err := s.lookBack(opts)
		if err == nil && (!now.from.same(asked.from) || !now.to.same(asked.to)) {
			return fail(fmt.Errorf("%w: while the owner was asked it was moved: see what is true now and ask again", ErrRefused))
		}
	}
	ok = true
	return s, nil
}

// find connects and gives the unit its name, also without a manager and where only our files are left of it.
func (s *session) find(ctx context.Context, unit string) (err error) {
	if s.unit, err = s.h.serviceName(ctx, unit); err != nil {
		return err
	}
	asked, cancel := context.WithTimeoutCause(ctx, managerWait, errSilent)
	defer cancel()
	if s.m, err = s.h.Connect(asked); err == nil {
		s.undo = append(s.undo, s.m.Close)
		if err := s.h.inUse(s.m); err != nil {
			return err
		}
		err = s.known(asked)
	}
	if err != nil && errors.Is(context.Cause(asked), errSilent) {
		err = fmt.Errorf("%w (%w)", errSilent, err)
	}
	if err != nil {
		if ctx.Err() != nil || !s.h.traces(s.unit) {
			return err
		}
		s.m = nil
		s.notes = append(s.notes, fmt.Sprintf("written, not loaded: %v", err))
		return nil
	}
	found := s.h.namesakes(s.m.SearchPath(), s.unit)
	if len(found) > 0 && !s.h.traces(s.unit) {
		return s.h.alone(s.m.SearchPath(), s.unit)
	}
	if len(found) > 0 {
		s.notes = append(s.notes, fmt.Sprintf("the manager also reads files of this program in another folder: %s", strings.Join(found, ", ")))
	}
	return nil
}

// agreed asks the owner, with what would change. It returns what he agreed to, nil where he was not asked.
func (s *session) agreed(act string, opts RollbackOptions) (*away, error) {
	if s.h.Authorise == nil {
		return nil, nil
	}
	if (pair{s.h.dropInDir(s.unit)}).staged() { // it could not be settled
		return nil, s.h.authorise(s.unit, act)
	}
	w, done, err := s.lookBack(opts)
	if err != nil || done != "" && !opts.Restart {
		return nil, err
	}
	if done != "" {
		return &w, s.h.authorise(s.unit, act, done)
	}
	to := or(w.to.Name, "what the unit's own files say")
	note := fmt.Sprintf("it goes from %s to %s", orNothing(w.from.Name), to)
	switch {
	case w.undo:
		note += ", whose block is lifted"
	case !w.from.isZero():
		note += fmt.Sprintf(", and %s is blocked for it", w.from.Name)
	}
	return &w, s.h.authorise(s.unit, act, note)
}

// lockStore keeps packages from being removed meanwhile. sure tells whether the act needs that.
func (s *session) lockStore(ctx context.Context, sure bool) error {
	wait, cancel := context.WithTimeout(ctx, removalWait)
	defer cancel()
	unlock, err := s.h.Store.LockShared(wait)
	switch {
	case err == nil:
		s.undo = append(s.undo, unlock)
	case ctx.Err() != nil:
		return ctx.Err()
	case sure && errors.Is(err, store.ErrBusy):
		return err
	default:
		s.notes = append(s.notes, fmt.Sprintf("the store is not locked meanwhile: %v", err))
	}
	return nil
}

// settle finishes or undoes what an earlier command left, as far as that can be, and notes the rest.
func (s *session) settle(ctx context.Context) {
	notes, err := s.h.recover(ctx, s.m, s.unit)
	if err != nil && s.m != nil { // the manager may be what is wrong: the files can be settled without it
		notes = append(notes, err.Error())
		var more []string
		more, err = s.h.recover(ctx, nil, s.unit)
		notes = append(notes, more...)
	}
	if err != nil {
		notes = append(notes, err.Error())
	}
	s.notes = append(s.notes, notes...)
}

// known asks the manager for what a rollback and an unswitch can do without. A unit of which only our files are left is no error.
func (s *session) known(ctx context.Context) (err error) {
	if s.specs, err = s.m.Specifiers(ctx); err != nil {
		return err
	}
	u, err := s.m.Unit(ctx, s.unit)
	if err == nil {
		s.unit = u.ID
	} else if errors.Is(err, systemd.ErrNoUnit) && s.h.traces(s.unit) {
		err = nil
	}
	return err
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/systemd"
)

// session is one act on one unit: the manager, the unit's lock and the store's.
type session struct {
	h     *Host
	m     *systemd.Manager // nil: none answers
	specs systemd.Specifiers
	place *place
	unit  string
	began time.Time
	notes []string
	undo  []func()

	proof func(*systemd.Unit) error // checks what was loaded, beyond our drop-in's own lines; nil: nothing more

	release func() // gives the unit's lock back; nil: it is not held

	first    *earlier // what ran before the first restart of this act
	goesBack bool     // the service goes back to what served: one more try is due

	// What is known already since the last change or restart, so that it need not be asked again.
	health string
	loaded *systemd.Unit
}

// perform does an act, from the question to the owner, which check prepares, to the service as it is afterwards. A dry
// one changes nothing and asks nobody.
func (h *Host) perform(ctx context.Context, unit, act string, dry bool, check func(*session) (notes []string, err error), do func(*session, *Outcome) error) (*Outcome, error) {
	if !dry {
		if err := h.consent(ctx, unit, act, check); err != nil {
			return nil, err
		}
	}
	s, err := h.enter(ctx, unit, act, dry)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error { return do(s, out) })
}

// enter connects and takes the locks. Without a manager it fails before it changes anything.
func (h *Host) enter(ctx context.Context, unit, act string, dry bool) (*session, error) {
	s := &session{h: h, began: h.Now(), place: h.place()}
	if err := s.open(ctx, unit, dry); err != nil {
		s.end()
		return nil, fmt.Errorf("%s: %w", act, err)
	}
	return s, nil
}

func (s *session) open(ctx context.Context, unit string, dry bool) (err error) {
	h := s.h
	if s.unit, err = h.serviceName(ctx, unit); err != nil {
		return err
	}
	if s.m, err = h.Connect(ctx); err != nil {
		return err
	}
	s.undo = append(s.undo, s.m.Close)
	if err := h.inUse(s.m); err != nil {
		return err
	}
	unlock, err := h.Store.LockShared(ctx)
	switch {
	case err == nil:
		s.undo = append(s.undo, unlock)
	case !dry || !errors.Is(err, fs.ErrPermission): // who only looks needs no leave to write into another account's state
		return err
	}
	// Where the unit has a folder of this name it is locked before the manager is asked: the answer then holds.
	locked, lock := "", s.lockIdle
	if dry {
		lock = s.lock
	}
	if _, err := os.Lstat(h.dropInDir(s.unit)); err == nil {
		if err := lock(ctx); err != nil {
			return err
		}
		locked = s.unit
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { s.loaded, err = h.unit(gctx, s.m, s.unit); return err })
	group.Go(func() (err error) { s.specs, err = s.m.Specifiers(gctx); return err })
	if err := group.Wait(); err != nil {
		return err
	}
	s.unit = s.loaded.ID // unit may be an alias
	if err := h.alone(s.m.SearchPath(), s.unit); err != nil {
		return err
	}
	if s.unit != locked && (!dry || h.exists(s.unit)) {
		if err := lock(ctx); err != nil {
			return err
		}
		s.loaded = nil // it may have changed until the lock was held
	}
	if dry {
		return nil
	}
	settled, err := h.recover(ctx, s.m, s.unit)
	if len(settled) > 0 {
		s.notes, s.loaded = append(s.notes, settled...), nil
	}
	return err
}

// lock takes the unit's lock.
func (s *session) lock(ctx context.Context) error {
	s.unlock()
	release, note, err := s.h.lockUnit(ctx, s.unit)
	if err == nil {
		s.release = release
	}
	if note != "" && !slices.Contains(s.notes, note) {
		s.notes = append(s.notes, note)
	}
	return err
}

func (s *session) unlock() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}

// lockIdle takes the unit's lock at a moment when no other command watches a restart of the unit. Only a rollback
// does not wait for that.
func (s *session) lockIdle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.h.lockWait(),
		fmt.Errorf("%w: another command watches a restart of %s", ErrBusy, s.unit))
	defer cancel()
	for {
		if err := s.lock(ctx); err != nil {
			return err
		}
		if !s.h.restarting(s.unit) {
			return nil
		}
		s.unlock()
		s.h.progress("waiting for another command, which watches a restart of %s", s.unit)
		if err := pause(ctx, 10*lockPoll); err != nil {
			return err
		}
	}
}

// end gives everything back, in reverse order.
func (s *session) end() {
	s.unlock()
	for _, f := range slices.Backward(s.undo) {
		f()
	}
	s.undo = nil
}

// outcome runs an act and adds the service as it is afterwards, also after an error that the act explains.
func (s *session) outcome(ctx context.Context, act func(*Outcome) error) (*Outcome, error) {
	out := &Outcome{Notes: s.notes, Loaded: true}
	err := act(out)
	if err != nil && !out.Changed && !out.Restarted {
		return nil, err
	}
	looked, cancel := begun(ctx)
	defer cancel()
	service, serr := s.service(looked)
	if serr != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("the service cannot be shown: %v", serr))
		service = &Service{Unit: s.unit, Scope: s.h.Scope, Health: HealthUnknown}
	}
	out.Service = *service
	out.TookMS = s.h.Now().Sub(s.began).Milliseconds()
	return out, err
}

// ask is the unit as the manager has it loaded.
func (s *session) ask(ctx context.Context) (u *systemd.Unit, err error) {
	if s.loaded == nil {
		s.loaded, err = s.m.Unit(ctx, s.unit)
	}
	return s.loaded, err
}

// reload has the manager read all files again.
func (s *session) reload(ctx context.Context) error {
	s.loaded = nil
	return s.m.Reload(ctx)
}

// service is the unit as status shows it.
func (s *session) service(ctx context.Context) (*Service, error) {
	if s.m == nil {
		return s.h.offline(s.unit)
	}
	u, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	return s.h.service(ctx, s.m, u, s.place, s.specs, s.health)
}

func (s *session) view(ctx context.Context) (*view, error) {
	u, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	return s.h.view(u, s.place, s.specs)
}

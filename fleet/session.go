package fleet

import (
	"context"
	"fmt"
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

	// What is known already since the last change or restart, so that it need not be asked again.
	health string
	loaded *systemd.Unit
}

// begin connects, asks for leave, and takes the locks. Without a manager it fails before it changes anything.
func (h *Host) begin(ctx context.Context, unit, act string, dry bool) (*session, error) {
	s := &session{h: h, began: h.Now(), place: h.place()}
	ok := false
	defer func() {
		if !ok {
			s.end()
		}
	}()
	m, err := h.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", act, err)
	}
	s.m = m
	s.undo = append(s.undo, m.Close)
	var u *systemd.Unit
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { u, err = h.unit(gctx, m, unit); return err })
	group.Go(func() (err error) { s.specs, err = m.Specifiers(gctx); return err })
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", act, err)
	}
	s.unit = u.ID
	if !h.searched(u) {
		return nil, fmt.Errorf("%s: %w: the %s manager does not read %s", act, ErrRefused, h.Scope, h.UnitDir)
	}
	if !dry {
		if err := h.authorise(act); err != nil {
			return nil, fmt.Errorf("%s: %w", act, err)
		}
	}
	unlock, err := h.Store.LockShared(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", act, err)
	}
	s.undo = append(s.undo, unlock)
	if !dry || h.exists(s.unit) {
		unlock, err := h.lockUnit(ctx, s.unit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", act, err)
		}
		s.undo = append(s.undo, unlock)
	}
	if !dry {
		if s.notes, err = h.recover(ctx, m, s.unit); err != nil {
			return nil, fmt.Errorf("%s: %w", act, err)
		}
	}
	ok = true
	return s, nil
}

// end gives everything back, in reverse order.
func (s *session) end() {
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

// service is the unit as status shows it.
func (s *session) service(ctx context.Context) (*Service, error) {
	if s.m == nil {
		return s.h.offline(s.unit)
	}
	u, err := s.loaded, error(nil)
	if u == nil {
		if u, err = s.m.Unit(ctx, s.unit); err != nil {
			return nil, err
		}
	}
	return s.h.service(ctx, s.m, u, s.place, s.specs, s.health)
}

func (s *session) view(ctx context.Context) (*view, error) {
	u, err := s.m.Unit(ctx, s.unit)
	if err != nil {
		return nil, err
	}
	v, err := s.h.view(u, s.place, s.specs)
	if err != nil {
		return nil, fmt.Errorf("read the settings of %s: %w", s.unit, err)
	}
	return v, nil
}

package fleet

import (
	"context"
	"fmt"
)

// Unadopt gives an adopted unit back to its own files, which then decide again. The error wraps [ErrRefused] where it
// was not adopted, and where another package is armed than those files name: that one would be lost.
func (h *Host) Unadopt(ctx context.Context, unit string) (*Outcome, error) {
	act := "unadopt " + unit
	return h.perform(ctx, unit, act, false, func(s *session) ([]string, error) {
		if err := s.mayUnadopt(ctx); err != nil {
			return nil, fmt.Errorf("unadopt %s: %w", s.unit, err)
		}
		return []string{"removes our drop-in: the unit's own lines decide again"}, nil
	}, func(s *session, out *Outcome) error {
		err := s.mayUnadopt(ctx)
		if err == nil {
			err = s.letGo(ctx, actUnadopt, out)
		}
		if err != nil {
			return fmt.Errorf("unadopt %s: %w", s.unit, err)
		}
		return nil
	})
}

// mayUnadopt refuses a unit that was not adopted, or that a switch has moved since.
func (s *session) mayUnadopt(ctx context.Context) error {
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	if err := v.foreign(); err != nil {
		return err
	}
	if v.active == nil || len(v.active.Adopted) == 0 {
		return fmt.Errorf("%w: it is not adopted", ErrRefused)
	}
	base, err := v.base()
	if err != nil {
		return err
	}
	if to, done, err := v.goingBack(RollbackOptions{}); !base.same(v.active.Package) && (err != nil || done != "" || !to.to.same(base)) {
		return fmt.Errorf("%w: %s is armed, and its own lines lead to %s: switch to that first (1bit pkg switch %s %s), or have all of ours removed (1bit pkg unswitch %s)",
			ErrRefused, v.active.Package.Name, orNothing(base.Name), s.unit, or(base.Name, "ID"), s.unit)
	}
	if !base.same(v.active.Package) {
		return fmt.Errorf("%w: %s is armed, and its own lines name %s: go back first (1bit pkg rollback %s), or have all of ours removed (1bit pkg unswitch %s)",
			ErrRefused, v.active.Package.Name, orNothing(base.Name), s.unit, s.unit)
	}
	return nil
}

// base is the package that the unit's own files name, when ours are gone: in a variable or in a command.
func (v *view) base() (PackageRef, error) {
	without, err := v.without()
	if err != nil {
		return PackageRef{}, err
	}
	if ref := ofSettings(without, v.place).pkg(v.place); !ref.isZero() || v.active == nil || len(v.active.Start) == 0 {
		return ref, nil
	}
	r := &rewriter{place: v.place, unit: v.disk, specs: v.specs}
	for _, l := range inForce(ownLines(v.disk, v.path), "Service", "ExecStart") {
		if _, changed, err := r.line(l.Value); err == nil && changed {
			return r.vars.pkg(v.place), nil
		}
	}
	return PackageRef{}, nil
}

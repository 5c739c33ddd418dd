package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// errNothingToAsk is returned by a check where the act would change nothing: the owner is not asked.
var errNothingToAsk = errors.New("nothing changes")

// consent asks the owner for leave. First what an earlier command left half done is settled, since the owner must see
// what the act will find; then check works the act out, in a session of its own that changes nothing else; its
// error is the act's, so that a broken request is told what is wrong with it and not that somebody would have to
// agree. What it found is shown above the question, and no lock is held while the owner thinks. The act itself
// therefore checks again, and compares with [findings.same] what it finds then.
func (h *Host) consent(ctx context.Context, unit, act string, check func(*session) (notes []string, err error)) error {
	if h.Authorise == nil {
		return nil
	}
	s, err := h.enter(ctx, unit, act, true)
	if err != nil {
		return err
	}
	if s.release != nil {
		settled, err := h.recover(ctx, s.m, s.unit)
		if err != nil {
			s.end()
			return fmt.Errorf("%s: %w", act, err)
		}
		if len(settled) > 0 {
			s.notes, s.loaded = append(s.notes, settled...), nil
		}
	}
	notes := s.notes
	if check != nil {
		var found []string
		found, err = check(s)
		notes = append(notes, found...)
	}
	s.end()
	switch {
	case errors.Is(err, errNothingToAsk):
		return nil
	case err != nil:
		return err
	}
	if err := h.authorise(s.unit, act, notes...); err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	return nil
}

// findings are what the owner was shown before he agreed to a switch.
type findings struct {
	asked bool
	from  PackageRef
	notes []string
}

// movedFrom refuses an act on a service that is no longer what the owner was shown.
func movedFrom(shown, now string) error {
	return fmt.Errorf("%w: while the owner was asked it was moved from %s to %s: see what is true now and ask again",
		ErrRefused, orNothing(shown), orNothing(now))
}

// same refuses a switch that is no longer the one that was agreed to.
func (f findings) same(p *plan) error {
	if !f.asked {
		return nil
	}
	if !f.from.same(p.from) {
		return movedFrom(f.from.Name, p.from.Name)
	}
	for _, note := range p.notes {
		if !slices.Contains(f.notes, note) {
			return fmt.Errorf("%w: something has changed since the owner was asked: %s; ask again", ErrRefused, note)
		}
	}
	return nil
}

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"time"
)

// way is how the files change when a unit goes back, or forward again.
type way int

const (
	wayExchange way = iota // the active file and .prev change places
	wayAway                // the active file becomes .prev, and nothing of ours is in force
	wayBack                // .prev becomes the active file
	wayAnew                // both are written, as by a switch: this one needs space
)

// away is a rollback, or its undoing, worked out.
type away struct {
	from, to PackageRef
	way      way
	file     []byte // what comes in place, nil: nothing does
	left     []byte // wayAnew: what .prev becomes
	rebuilt  bool   // .prev is missing or another switch's: file has to be made, and written
	undo     bool   // it lifts the block of to, where a rollback blocks from
}

// away decides where a rollback goes, from what our files say alone. done says why it changes nothing.
func (v *view) away() (w away, done string) {
	switch a := v.active; {
	case a == nil && v.activeErr == nil:
		name := "a package"
		if v.prev != nil {
			name = v.prev.Package.Name
		}
		return away{}, fmt.Sprintf("%s was rolled back already; nothing of this program is in force", name)
	case a == nil && v.prev != nil && !v.prev.rolledBack():
		// Only a rollback leaves such a .prev: it is what was put away.
		return away{}, fmt.Sprintf("%s was rolled back already, and what is in force cannot be read: %v", v.prev.Package.Name, v.activeErr)
	case a == nil && v.prev != nil:
		return away{from: v.prev.RolledBackFrom, to: v.prev.Package, file: v.prevData}, ""
	case a == nil:
		return away{way: wayAway}, ""
	case a.Act == actAdopt:
		return away{to: a.Package}, fmt.Sprintf("it was adopted and not switched since: there is nothing to roll back (1bit pkg unadopt %s gives it back)", a.Unit)
	case a.rolledBack():
		return away{to: a.Package}, fmt.Sprintf("%s was rolled back to %s already", a.RolledBackFrom.Name, a.Package.Name)
	case a.Rollback == rollbackRemove && a.ServedBefore.same(a.Package):
		return away{to: a.Package}, onlyItself(a.Package)
	}
	w = away{from: v.active.Package, to: v.active.ServedBefore}
	if v.active.Rollback == rollbackRemove {
		w.way = wayAway
		return w, ""
	}
	if d := v.rollbackFile(); d != nil {
		w.to, w.file = d.Package, v.prevData
		return w, ""
	}
	w.rebuilt = !w.to.isZero() // the file that was written ahead is gone, and the active one still says where to go
	if !w.rebuilt {
		w.way = wayAway
	}
	return w, ""
}

// onlyItself says that the unit's own files arm the same package: our file is not the way to anything else.
func onlyItself(p PackageRef) string {
	return fmt.Sprintf("nothing else served before %s: the unit's own files arm it too", p.Name)
}

// further decides where a rollback --again goes: one further back than a rollback goes from here, or than the last
// one went. A package that is blocked is passed over, and so is one that this would lead forward to. The error wraps
// ErrRefused where nothing is further back.
func (v *view) further() (away, error) {
	a := v.active
	switch {
	case a == nil && v.activeErr != nil:
		return away{}, fmt.Errorf("%w: what is in force cannot be read (%w): roll back first, without --again", ErrRefused, v.activeErr)
	case a == nil:
		return away{}, fmt.Errorf("%w: nothing of this program is in force, so nothing is further back", ErrRefused)
	case a.Act == actAdopt:
		return away{}, fmt.Errorf("%w: it was adopted and not switched since, so nothing is further back", ErrRefused)
	}
	at := a // the file whose own past is asked for
	if !a.rolledBack() {
		if a.Rollback == rollbackRemove {
			return away{}, fmt.Errorf("%w: a rollback goes to what the unit's own files say, and nothing is further back", ErrRefused)
		}
		at = v.rollbackFile()
	}
	t := target{remove: true} // where what is further back is not known, the unit's own files are
	if at != nil {
		t = before(at)
	}
	if _, bad := blocked(v.blocks(), t.ref); !t.remove && (bad || t.ref.isZero() || t.ref.same(a.Package) || t.ref.same(a.RolledBackFrom) ||
		at != nil && t.ref.same(at.Package)) {
		t = target{remove: true}
	}
	w := away{from: a.Package, to: t.ref}
	switch d := v.prev; {
	case t.remove && t.ref.same(a.Package):
		return away{}, fmt.Errorf("%w: %s", ErrRefused, onlyItself(a.Package))
	case t.remove && len(a.Adopted) > 0:
		return away{}, fmt.Errorf("%w: nothing is further back than what the unit was adopted with", ErrRefused)
	case t.remove:
		w.way = wayAway
	case a.rolledBack() && d != nil && d.rolledBack() && d.Generation == a.Generation && d.RolledBackFrom.same(a.Package) && d.Package.same(t.ref):
		w.file = v.prevData // what an undo put there
	default:
		w.way = wayAnew
	}
	return w, nil
}

// back decides where a rollback --undo goes: to what the last rollback, or return, left. done says why it changes
// nothing; the error wraps ErrRefused where what was left cannot be told.
func (v *view) back() (w away, done string, err error) {
	a, d := v.active, v.prev
	w = away{undo: true}
	switch {
	case a == nil && d == nil, a == nil && v.activeErr != nil && d.rolledBack():
		why := v.activeErr
		if why == nil {
			why = v.prevErr
		}
		return w, "", fmt.Errorf("%w: it cannot be told what to go back to: %w", ErrRefused, why)
	case a == nil && v.activeErr == nil: // put away, and nothing came in its place
		w.to, w.way, w.file = d.Package, wayBack, v.prevData
	case a == nil: // put away, and what came in its place was damaged since
		w.to, w.file = d.Package, v.prevData
	case a.RolledBackFrom.isZero():
		return away{to: a.Package}, "nothing was rolled back since it was switched to " + a.Package.Name + ": there is nothing to undo", nil
	case d != nil && d.Generation == a.Generation && d.Package.same(a.RolledBackFrom):
		w.from, w.to, w.file = a.Package, d.Package, v.prevData
	default: // a return, or an undone --again, has written something else there since
		w.from, w.to, w.way = a.Package, a.RolledBackFrom, wayAnew
	}
	return w, "", nil
}

// rebuild makes the file that a rollback of the active one puts in place.
func (v *view) rebuild(to PackageRef) (*DropIn, error) {
	next := *v.active
	return past{active: v.active}.file(to, &next, v.move)
}

// move lets the variables of a file point into another package.
func (v *view) move(env []Assignment, to PackageRef) ([]Assignment, error) {
	return binding(env).move(v.place, to.Path)
}

// anew makes the files of a way that writes both.
func (s *session) anew(v *view, w *away, reason string) error {
	if w.undo {
		if err := v.foreign(); err != nil { // the active file is written again, as .prev
			return err
		}
	}
	from := v.active
	if d := v.rollbackFile(); d != nil && !w.undo {
		from = d
	}
	next := &DropIn{
		Unit: s.unit, Package: w.to, Act: actUndo, Generation: v.generation(), By: s.h.User, At: s.h.Now().UTC().Truncate(time.Second),
		Start: from.Start, Adopted: from.Adopted, Extra: from.Extra, ServedBefore: w.from, Rollback: rollbackExchange,
		Blocks: without(v.blocks(), w.to),
	}
	if !w.undo {
		next.Act, next.RolledBackFrom = actRollback, w.from
		next.ServedBefore, next.Rollback = PackageRef{}, rollbackRemove // not known
		next.block(w.from, or(reason, blockedByRollback))
	}
	var err error
	if next.Environment, err = v.move(from.Environment, w.to); err != nil {
		return err
	}
	if w.file, err = next.Encode(); err != nil {
		return err
	}
	if !w.undo {
		w.left, err = withGeneration(v.activeData, v.active.Generation, next.Generation)
		return err
	}
	prev, err := past{active: v.active}.file(w.from, next, v.move)
	if err == nil {
		w.left, err = prev.Encode()
	}
	return err
}

// withGeneration gives a file another generation and leaves every other line as it is.
func withGeneration(file []byte, from, to int) ([]byte, error) {
	out := bytes.Replace(file, fmt.Appendf(nil, "\nGeneration=%d\n", from), fmt.Appendf(nil, "\nGeneration=%d\n", to), 1)
	if d, _, err := readDropIn(out); err != nil || d.Generation != to {
		return nil, fmt.Errorf("%w: its generation is not where this program writes it", errNotOurs)
	}
	return out, nil
}

// bare names what is armed, and what the unit's own files arm when ours is gone, as far as that can be told.
func (s *session) bare(ctx context.Context, w away) (from, to PackageRef) {
	if s.m == nil {
		return w.from, w.to
	}
	v, err := s.view(ctx)
	if err != nil {
		return w.from, w.to
	}
	if from = w.from; from.isZero() {
		from = v.armedPackage()
	}
	to, err = v.base()
	if err != nil {
		return from, w.to
	}
	return from, to
}

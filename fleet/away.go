package fleet

import (
	"context"
	"fmt"
)

// away is a rollback worked out.
type away struct {
	from, to PackageRef
	file     []byte // what comes in place, nil: nothing does
	rebuilt  bool   // .prev is missing or another switch's: file has to be made, and written
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
		return away{}, ""
	case a.Act == actAdopt:
		return away{to: a.Package}, fmt.Sprintf("it was adopted and not switched since: there is nothing to roll back (1bit pkg unadopt %s gives it back)", a.Unit)
	case a.rolledBack():
		return away{to: a.Package}, fmt.Sprintf("%s was rolled back to %s already", a.RolledBackFrom.Name, a.Package.Name)
	}
	w = away{from: v.active.Package, to: v.active.ServedBefore}
	if v.active.Rollback == rollbackRemove {
		return w, ""
	}
	if d := v.rollbackFile(); d != nil {
		w.to, w.file = d.Package, v.prevData
		return w, ""
	}
	w.rebuilt = !w.to.isZero() // the file that was written ahead is gone, and the active one still says where to go
	return w, ""
}

// rebuild makes the file that a rollback of the active one puts in place.
func (v *view) rebuild(to PackageRef) (*DropIn, error) {
	next := *v.active
	return past{active: v.active}.file(to, &next, func(env []Assignment, to PackageRef) ([]Assignment, error) {
		return binding(env).move(v.place, to.Path)
	})
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
		from = v.armed.pkg(v.place)
	}
	settings, err := v.without()
	if err != nil {
		return from, w.to
	}
	return from, ofSettings(settings, v.place).pkg(v.place)
}

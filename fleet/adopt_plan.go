package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// adoption is an adoption worked out and not yet written.
type adoption struct {
	plan  plan
	taken []ownLine // the lines that no longer decide

	proof func(*systemd.Unit) error // compares what is loaded afterwards with what was before
}

// adoption works an adoption out. It changes nothing.
func (s *session) adoption(ctx context.Context) (*view, *adoption, error) {
	v, err := s.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := errors.Join(ownFolder(s.unit), s.h.unheld(s.unit)); err != nil {
		return nil, nil, err
	}
	a := &adoption{}
	if done, err := v.adopted(); done || err != nil {
		if done {
			a.plan.from = v.active.Package
			a.plan.notes = []string{"it is adopted already"}
		}
		return v, a, err
	}
	if err := v.settled(); err != nil {
		return nil, nil, err
	}
	if !v.astray.isZero() {
		return nil, nil, fmt.Errorf("%w: %s, and what else names %s would move without it: %s",
			ErrRefused, v.astray, v.armed.pkg(v.place).Name, v.astray.remedy())
	}
	r, err := s.rewriter(ctx, v)
	if err != nil {
		return nil, nil, err
	}
	lines := ownLines(v.disk, v.path)
	r.spareFrontEnd(lines)
	next := &DropIn{
		Unit: s.unit, Act: actAdopt, Generation: v.generation(), Rollback: rollbackRemove,
		By: s.h.User, At: s.h.Now().UTC().Truncate(time.Second), Blocks: v.blocks(),
	}
	if next.Environment, err = a.variables(r, v, lines); err != nil {
		return nil, nil, err
	}
	if next.Start, err = a.commands(r, lines); err != nil {
		return nil, nil, err
	}
	for _, made := range r.vars {
		if !slices.Contains(next.Environment, made) {
			next.Environment = append(next.Environment, made)
		}
	}
	slices.SortFunc(next.Environment, func(x, y Assignment) int { return strings.Compare(x.Key, y.Key) })
	if err := stuckError(r.stuck(lines)); err != nil {
		return nil, nil, err
	}
	if len(next.Environment) == 0 {
		return nil, nil, v.nothing()
	}
	if next.Package, err = a.pkg(ctx, s, next); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(a.taken, func(x, y ownLine) int { return slices.Index(lines, x) - slices.Index(lines, y) })
	for _, l := range a.taken {
		next.Adopted = append(next.Adopted, l.origin())
	}
	a.plan.from, a.plan.next = next.Package, next
	a.plan.notes = append(a.plan.notes, missing(v.place, next.Environment)...)
	if _, ok := blocked(next.Blocks, next.Package); ok {
		a.plan.notes = append(a.plan.notes, fmt.Sprintf("%s is blocked for this service and runs all the same, as its own lines say", next.Package.Name))
	}
	return v, a, s.prove(ctx, v, a)
}

// adopted tells whether the unit is adopted already, as it stands. It refuses one whose lines are others since, or
// that a switch took over.
func (v *view) adopted() (bool, error) {
	if err := v.foreign(); err != nil {
		return false, err
	}
	switch {
	case v.active == nil:
		return false, nil
	case len(v.active.Adopted) == 0:
		return false, fmt.Errorf("%w: its values are in %s already, which a switch wrote: there is nothing left to adopt (1bit pkg unswitch %s gives them back)",
			ErrRefused, v.path, v.active.Unit)
	}
	if drift := v.drift(ownLines(v.disk, v.path)); len(drift) > 0 {
		return false, fmt.Errorf("%w: it is adopted, and its own lines have changed since: %s", ErrRefused, strings.Join(drift, "; "))
	}
	return true, nil
}

// settled refuses a unit whose files are not what is loaded: the reload would arm them.
func (v *view) settled() error {
	if v.loaded.NeedDaemonReload || !slices.Equal(v.armed, v.onDisk) || !slices.Equal(v.loaded.DropInPaths, v.disk.DropInPaths) {
		return fmt.Errorf("%w: its files were edited and systemd has not loaded them yet; see that they say what you want, reload with systemctl daemon-reload (with --user for a unit of a user), and adopt then",
			ErrRefused)
	}
	return nil
}

// rewriter prepares to rewrite the commands of a unit.
func (s *session) rewriter(ctx context.Context, v *view) (*rewriter, error) {
	r := &rewriter{place: v.place, unit: v.disk, specs: v.specs, taken: v.settings.Keys(), reuse: ofSettings(v.settings, v.place).pinned(v.place)}
	// A variable that the manager hands to every process must keep its value.
	inherited, err := s.m.Environment(ctx)
	if err != nil {
		return nil, err
	}
	r.taken = slices.AppendSeq(r.taken, maps.Keys(inherited))
	all, err := s.h.Store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	for _, p := range all {
		r.folders = append(r.folders, p.Path)
	}
	return r, nil
}

// variables finds the variables in force that point into a package, and takes over the lines that set them.
func (a *adoption) variables(r *rewriter, v *view, lines []ownLine) (binding, error) {
	effective := v.settings.Environment()
	var out binding
	for _, key := range v.settings.Keys() {
		set, ok := effective[key]
		if !ok {
			continue
		}
		at := fmt.Sprintf("%s:%d", set.File, set.Line)
		if _, in := v.place.inValue(set.Value); !in {
			if name, bad := r.named(set.Value); bad {
				return nil, fmt.Errorf("%w: %s: %s=%s names %s in a form that cannot move: let the variable hold the path alone", ErrRefused, at, key, set.Value, name)
			}
			continue
		}
		history := v.settings.History(key)
		line, found := lineAt(lines, set.File, set.Line)
		switch {
		case set.Unsure != "":
			return nil, fmt.Errorf("%w: %s: what %s is set to is not certain: %s", ErrRefused, at, key, set.Unsure)
		case history[len(history)-1].Kind == systemd.KindEnvironmentFile:
			last := history[len(history)-1]
			return nil, fmt.Errorf("%w: something would win over our drop-in: %s: %s", ErrRefused, describe(key, last), giveWay(last))
		case !found:
			return nil, fmt.Errorf("%w: %s sets %s and cannot be read again", ErrRefused, at, key)
		case strings.HasSuffix(set.Value, " (deleted)") && absentPath(set.Value):
			return nil, fmt.Errorf("%w: %s: the value of %s ends in (deleted), which the kernel adds to the name of a file that is gone: name one that is there",
				ErrRefused, at, key)
		}
		pinned := v.place.pinnedList(set.Value)
		if pinned != set.Value {
			a.plan.notes = append(a.plan.notes, pins(key, set.Value, pinned))
		}
		out = append(out, Assignment{key, pinned})
		a.take(line)
	}
	return out, nil
}

func absentPath(path string) bool {
	_, err := os.Lstat(path)
	return err != nil
}

func (a *adoption) take(l ownLine) {
	if !slices.Contains(a.taken, l) {
		a.taken = append(a.taken, l)
	}
}

// commands rewrites the commands in force; nil where none names a package, and the unit's own lines stay in force.
func (a *adoption) commands(r *rewriter, lines []ownLine) ([]string, error) {
	own := inForce(lines, "Service", "ExecStart")
	var start []string
	any := false
	for _, l := range own {
		text, changed, err := r.line(l.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.at(), err)
		}
		if value, _, ok := r.specs.Expand(r.unit, l.Value); ok && changed {
			for word := range strings.FieldsSeq(value) {
				if pinned := r.place.pinned(strings.TrimLeft(word, prefixes)); pinned != strings.TrimLeft(word, prefixes) {
					a.plan.notes = append(a.plan.notes, pins("ExecStart=", strings.TrimLeft(word, prefixes), pinned))
				}
			}
		}
		start, any = append(start, text), any || changed
	}
	if !any {
		return nil, nil
	}
	if err := r.rooted(lines); err != nil {
		return nil, err
	}
	for _, l := range own {
		a.take(l)
	}
	return start, nil
}

// nothing says why there is nothing to adopt.
func (v *view) nothing() error {
	for _, b := range bindingOf(v.settings, v.place) {
		if history := v.settings.History(b.Key); len(history) > 0 {
			return fmt.Errorf("%w: nothing to adopt: %s would name a package, and something else decides: %s",
				ErrRefused, b.Key, describe(b.Key, history[len(history)-1]))
		}
	}
	return fmt.Errorf("%w: nothing to adopt: neither Environment= nor ExecStart= of the unit names a package (1bit pkg service new NAME -- … makes a unit that does)", ErrRefused)
}

// pkg is the one package that all values point into, which must be installed and sound.
func (a *adoption) pkg(ctx context.Context, s *session, next *DropIn) (PackageRef, error) {
	all := binding(next.Environment).packages(s.place)
	if len(all) > 1 {
		var names []string
		for _, l := range a.taken {
			names = append(names, fmt.Sprintf("%s: %s", l.at(), l.text()))
		}
		return PackageRef{}, fmt.Errorf("%w: the unit names %d packages, and all of it must come from one: %s", ErrRefused, len(all), strings.Join(names, "; "))
	}
	pkg := s.place.pkg(all[0].Path)
	if pkg == nil {
		if absentPath(all[0].Path) {
			return PackageRef{}, fmt.Errorf("%w: the unit names %s, which is not there: install the package, or name another in the unit", ErrRefused, all[0].Path)
		}
		return PackageRef{}, fmt.Errorf("%w: %s has no manifest: %s", ErrRefused, all[0].Path, s.h.takeIn(all[0].Path))
	}
	if _, err := binding(next.Environment).move(s.place, pkg.Path); err != nil {
		return PackageRef{}, err
	}
	return refOf(pkg), s.h.verify(ctx, pkg, false)
}

// missing notes what a variable names and no package of that name holds.
func missing(pl *place, values []Assignment) []string {
	var out []string
	for _, a := range values {
		for part := range strings.SplitSeq(a.Value, ":") {
			if _, ok := pl.at(part); ok && absentPath(part) {
				out = append(out, fmt.Sprintf("%s names %s, which is not there", a.Key, part))
			}
		}
	}
	return out
}

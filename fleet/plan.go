package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager/store"
)

// plan is a switch worked out and not yet written.
type plan struct {
	from  PackageRef
	next  *DropIn // nil: it is armed already
	prev  *DropIn // nil: a rollback removes our file
	notes []string
}

// plan works a switch out. It changes nothing.
func (s *session) plan(ctx context.Context, v *view, pkg *store.Package) (*plan, error) {
	to := refOf(pkg)
	if err := ownFolder(s.unit); err != nil {
		return nil, err
	}
	edits, err := v.reloadable()
	if err != nil {
		return nil, err
	}
	if b, ok := blocked(v.blocks(), to); ok {
		return nil, fmt.Errorf("%w: %s is blocked for this service: %s (lift it with: 1bit pkg unblock %s %s)",
			ErrRefused, pkg.Name, b.Reason, s.unit, pkg.Name)
	}
	if err := v.foreign(); err != nil {
		return nil, err
	}
	if what, bound := boundCommand(v.disk, v.place); bound {
		return nil, fmt.Errorf("%w: ExecStart= itself names a package (%s), which no variable can move: 1bit pkg adopt %s takes the line over, with the same arguments",
			ErrRefused, what, s.unit)
	}
	if err := v.stuck(); err != nil {
		return nil, err
	}
	if problems := s.h.Missing(pkg.Manifest); len(problems) > 0 {
		return nil, fmt.Errorf("%w: %s needs what this host has not: %s; provide it, then switch", ErrRefused, pkg.Name, strings.Join(problems, "; "))
	}
	values := bindingOf(v.settings, v.place)
	if len(values) == 0 {
		return nil, fmt.Errorf("%w: no variable of the unit points into a package: set Environment=%s=PROGRAM OF A PACKAGE in the unit first",
			ErrRefused, serverVariable)
	}
	moves := slices.ContainsFunc(values, func(a Assignment) bool { return a.Key == serverVariable })
	if !v.astray.isZero() && (v.astray.setting != serverVariable || !moves) {
		return nil, fmt.Errorf("%w: %s, and a switch would move only what else names %s: %s", ErrRefused, v.astray, v.armed.pkg(v.place).Name, v.astray.remedy())
	}
	p := &plan{from: v.armedPackage(), notes: append(edits, v.edits()...)}
	moved, err := values.move(v.place, pkg.Path)
	if err != nil {
		return nil, err
	}
	next := &DropIn{
		Unit: s.unit, Environment: moved, Package: to, Act: actSwitch, Generation: v.generation(),
		By: s.h.User, At: s.h.Now().UTC().Truncate(time.Second), Blocks: v.blocks(),
	}
	if v.active != nil {
		next.Start, next.Adopted, next.Extra = v.active.Start, v.active.Adopted, v.active.Extra
	}
	if slices.Equal(v.armed, moved) && slices.Equal(v.onDisk, moved) && (v.active == nil || v.active.Package.same(to)) {
		p.notes = nil // nothing is reloaded
		return p, nil
	}
	if err := s.rollbackOf(ctx, v, p, next); err != nil {
		return nil, err
	}
	return p, s.check(v, p)
}

// rollbackOf fills in where a rollback of the switch goes.
func (s *session) rollbackOf(ctx context.Context, v *view, p *plan, next *DropIn) error {
	before, err := s.past(ctx, v)
	if err != nil {
		return err
	}
	t := before.target(next.Package)
	next.ServedBefore, next.Rollback = t.ref, rollbackExchange
	p.next = next
	if t.remove {
		if p.prev, err = v.pinsBase(before, next); p.prev != nil || err != nil {
			next.ServedBefore = before.base
			return err
		}
		next.Rollback = rollbackRemove
		return nil
	}
	p.prev, err = before.file(t.ref, next, func(env []Assignment, to PackageRef) ([]Assignment, error) {
		return binding(env).move(v.place, to.Path)
	})
	return err
}

// past gathers what is known about what the unit served.
func (s *session) past(ctx context.Context, v *view) (past, error) {
	p := past{active: v.active, prev: v.rollbackFile(), blocks: v.blocks()}
	var err error
	if p.base, err = v.base(); err != nil {
		return p, err
	}
	live, procs, err := s.h.live(v.loaded, v.place, v.armed.keys())
	if err != nil {
		return p, err
	}
	if ref, ok := live.runs(); ok {
		s.health = s.h.health(ctx, v.loaded, procs)
		switch s.health {
		case HealthOK, HealthBusy:
			p.serving = ref
		}
	}
	if v.active != nil {
		entries, err := s.h.journal().entries(string(s.h.Scope), s.unit)
		p.served = err == nil && served(entries, v.active.Package)
	}
	return p, nil
}

// check looks for whatever would win over the new file, and notes what people should know.
func (s *session) check(v *view, p *plan) error {
	data, err := p.next.Encode()
	if err != nil {
		return err
	}
	settings, err := v.with(data)
	if err != nil {
		return err
	}
	if key, a, ok := winner(settings, v.path, p.next); ok {
		return fmt.Errorf("%w: something would win over our drop-in: %s: %s", ErrRefused, describe(key, a), giveWay(a))
	}
	effective := settings.Environment()
	for _, a := range p.next.Environment {
		got := effective[a.Key]
		if got.Value != a.Value {
			return fmt.Errorf("%w: %s would be %q and not %q (%s:%d)", ErrRefused, a.Key, got.Value, a.Value, got.File, got.Line)
		}
		if got.Unsure != "" {
			p.notes = append(p.notes, fmt.Sprintf("whether %s reaches the service is not certain: %s", a.Key, got.Unsure))
		}
	}
	for _, place := range shadowed(settings, v.path, p.next) {
		p.notes = append(p.notes, fmt.Sprintf("shadows %s:%d, which sets %s=%s", place.File, place.Line, place.Setting, place.Value))
	}
	if all := bindingOf(v.settings, v.place).packages(v.place); len(all) > 1 {
		p.notes = append(p.notes, fmt.Sprintf("its variables pointed into %d packages; they all move", len(all)))
	}
	return nil
}

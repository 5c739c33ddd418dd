package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// asking bounds how many units are read at a time.
const asking = 8

// Status describes services: the named ones, or every service of the scope that has anything to do with a package.
// The error wraps [systemd.ErrNoUnit] where a named one is not known. What an earlier command left half done is
// finished or undone first, unless another command is at work on that unit.
func (h *Host) Status(ctx context.Context, units ...string) ([]Service, error) {
	m, err := h.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the services: %w", err)
	}
	defer m.Close()
	if len(units) == 0 {
		if units, err = h.discover(ctx, m); err != nil {
			return nil, fmt.Errorf("look for services that run a package: %w", err)
		}
	}
	specs, err := m.Specifiers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the services: %w", err)
	}
	pl, out := h.place(), make([]Service, len(units))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(asking)
	for i, unit := range units {
		group.Go(func() error {
			s, err := h.status(gctx, m, unit, pl, specs)
			if err != nil {
				return fmt.Errorf("read the state of %s: %w", unit, err)
			}
			out[i] = *s
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return out, nil
}

func (h *Host) status(ctx context.Context, m *systemd.Manager, unit string, pl *place, specs systemd.Specifiers) (*Service, error) {
	full, err := unitName(unit)
	if err != nil {
		return nil, err
	}
	u, err := m.Unit(ctx, full)
	if err != nil {
		return nil, err
	}
	var notes []string
	lock, _, err := tryLockDir(h.dropInDir(u.ID))
	if err == nil && lock != nil {
		notes, err = h.recover(ctx, m, u.ID)
		lock.release()
		if err != nil {
			notes = append(notes, err.Error())
		} else if len(notes) > 0 {
			if u, err = m.Unit(ctx, full); err != nil {
				return nil, err
			}
		}
	}
	s, err := h.service(ctx, m, u, pl, specs, "")
	if err != nil {
		return nil, err
	}
	s.Warnings = append(notes, s.Warnings...)
	return s, nil
}

// service describes one unit. health is what is known of it already, "" to ask.
func (h *Host) service(ctx context.Context, m *systemd.Manager, u *systemd.Unit, pl *place, specs systemd.Specifiers, health string) (*Service, error) {
	v, err := h.view(u, pl, specs)
	if err != nil {
		return nil, err
	}
	armed, disk := v.armed.pkg(v.place), v.onDisk.pkg(v.place)
	s := &Service{
		Unit: u.ID, Scope: m.Scope(), Armed: armedOf(armed), Restarts: u.NRestarts,
		State: fmt.Sprintf("%s (%s)", u.ActiveState, u.SubState),
	}
	values := v.armed
	if len(values) == 0 {
		values = v.onDisk
	}
	for _, a := range values {
		s.Binding = append(s.Binding, Setting{a.Key, a.Value})
	}
	if !slices.Equal(v.armed, v.onDisk) {
		s.OnDisk = armedOf(disk)
		s.warn("its files say %s and the manager has loaded %s: a reload by anybody arms what the files say",
			orNothing(disk.Name), orNothing(armed.Name))
	}
	h.describeOurs(v, s)
	h.describeHold(u.ID, s)
	h.describeProposal(u.ID, s, pl)
	live, procs, err := h.live(u, v.place, v.armed.keys())
	if err != nil {
		return nil, err
	}
	s.Live = live
	if s.Health = health; health == "" {
		s.Health = h.health(ctx, u, procs)
	}
	s.RestartPending = pending(u, live, armed)
	h.warnings(v, s, armed)
	return s, nil
}

func armedOf(p PackageRef) *Armed {
	if p.isZero() {
		return nil
	}
	return &Armed{p.Name, p.Digest, p.Path}
}

func (s *Service) warn(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}

// pending tells whether a restart would change what runs.
func pending(u *systemd.Unit, live *Live, armed PackageRef) bool {
	if live == nil || live.Main == nil || live.Unreadable || u.ActiveState == "inactive" || u.ActiveState == "failed" {
		return false
	}
	if armed.isZero() {
		_, ok := live.runs()
		return ok
	}
	_, ok := live.runs()
	return !ok || !live.only(armed)
}

// describeOurs adds what our files say.
func (h *Host) describeOurs(v *view, s *Service) {
	for _, b := range v.blocks() {
		s.Blocked = append(s.Blocked, Refused{b.Name, b.Reason})
	}
	for _, err := range []error{v.activeErr, v.activeEdited, v.prevErr, v.prevEdited} {
		if err != nil {
			s.warn("%v", err)
		}
	}
	d := v.active
	if d == nil {
		if lone := v.lone(); lone != nil {
			s.RolledBack = lone.Package.Name
		}
		return
	}
	s.RolledBack = d.RolledBackFrom.Name
	if !d.ServedBefore.isZero() && !d.rolledBack() {
		s.ServedBefore = &Served{d.ServedBefore.Name}
	}
	if key, a, ok := winner(v.settings, v.path, d); ok {
		s.OverriddenBy = &Place{File: a.File, Line: a.Line, Value: a.Value, Setting: key}
		s.warn("something wins over our drop-in: %s", describe(key, a))
	}
	s.Shadowed = shadowed(v.settings, v.path, d)
	if d.Rollback == rollbackExchange && !d.rolledBack() && v.rollbackFile() == nil {
		s.warn("%s is missing or not of this switch: a rollback has to write it and needs space", prevName)
	}
}

// warnings adds what would surprise the owner.
func (h *Host) warnings(v *view, s *Service, armed PackageRef) {
	u := v.loaded
	if s.RestartPending && u.Restart != "no" && u.Restart != "" {
		s.warn("a restart is pending and the unit says Restart=%s: a crash of the main process would start %s, with nobody's consent",
			u.Restart, orNothing(armed.Name))
	}
	if all := v.armed.packages(v.place); len(all) > 1 {
		names := make([]string, len(all))
		for i, p := range all {
			names[i] = p.Name
		}
		s.warn("its variables point into several packages: %s", strings.Join(names, ", "))
	}
	if what, bound := boundCommand(u, v.place); bound {
		s.warn("ExecStart= names a package itself (%s): a switch is refused until a variable names it", what)
	}
	if _, on := loadedEnvironment(u)["GGML_HRX_NAN_CONTINUE"]; on {
		s.warn("GGML_HRX_NAN_CONTINUE is set: it is for soaks only")
	}
	if l := s.Live; l != nil {
		if l.Unreadable {
			s.warn("some of its processes cannot be read: what they run from is not known")
		}
		if l.Main != nil && l.Child != nil && l.Main.Package != l.Child.Package && l.Child.Package != "" {
			s.warn("the main process runs from %s and its server from %s", orNothing(l.Main.Package), l.Child.Package)
		}
		for _, p := range []*Process{l.Main, l.Child} {
			if p != nil && p.deleted {
				s.warn("process %d runs from %s, which is no longer there", p.PID, p.Path)
			}
		}
	}
	h.warnPackage(v, s, armed)
}

// warnPackage says what is wrong with the armed package.
func (h *Host) warnPackage(v *view, s *Service, armed PackageRef) {
	if armed.isZero() {
		return
	}
	pkg := v.place.pkg(armed.Path)
	switch {
	case pkg == nil:
		s.warn("%s is no installed package: take it in with: 1bit pkg import %s", armed.Path, armed.Path)
	case pkg.State != store.StateOK:
		s.warn("%s is %s: %s", pkg.Name, pkg.State, or(pkg.Detail, "verify it"))
	}
	if v.active != nil && v.active.Package.Name == armed.Name && v.active.Package.Digest != "" && armed.Digest != "" &&
		v.active.Package.Digest != armed.Digest {
		s.warn("%s is not the package that was switched to: its digest is %s and was %s", armed.Name, armed.Digest, v.active.Package.Digest)
	}
}

// offline describes a unit from our files alone, where no manager answers.
func (h *Host) offline(unit string) (*Service, error) {
	v := &view{place: h.place(), path: filepath.Join(h.dropInDir(unit), dropInName)}
	if err := v.readPair(pair{h.dropInDir(unit)}); err != nil {
		return nil, err
	}
	s := &Service{Unit: unit, Scope: h.Scope, Health: HealthUnknown}
	if v.active != nil {
		s.OnDisk = armedOf(v.active.Package)
		s.RolledBack = v.active.RolledBackFrom.Name
		for _, a := range v.active.Environment {
			s.Binding = append(s.Binding, Setting{a.Key, a.Value})
		}
	} else if lone := v.lone(); lone != nil {
		s.RolledBack = lone.Package.Name
	}
	for _, b := range v.blocks() {
		s.Blocked = append(s.Blocked, Refused{b.Name, b.Reason})
	}
	h.describeHold(unit, s)
	h.describeProposal(unit, s, v.place)
	s.warn("no manager answers: what is loaded and what runs is not known")
	return s, nil
}

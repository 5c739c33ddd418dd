package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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
	if len(units) == 0 {
		survey, err := h.Survey(ctx)
		if err != nil {
			return nil, err
		}
		return survey.Services, nil
	}
	inspected, err := h.inspect(ctx, units)
	return services(inspected), err
}

// inspect looks at the named units.
func (h *Host) inspect(ctx context.Context, units []string) ([]Inspection, error) {
	m, err := h.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the services: %w", err)
	}
	defer m.Close()
	specs, err := m.Specifiers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the services: %w", err)
	}
	pl, out := h.place(), make([]*Inspection, len(units))
	if pl.inherited, err = m.Environment(ctx); err != nil {
		return nil, fmt.Errorf("read the services: %w", err)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(asking)
	for i, unit := range units {
		group.Go(func() (err error) {
			if out[i], err = h.status(gctx, m, unit, pl, specs); err != nil {
				return fmt.Errorf("read the state of %s: %w", unit, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var inspected []Inspection
	for _, one := range out {
		if !slices.ContainsFunc(inspected, func(have Inspection) bool { return have.Unit == one.Unit }) { // two names of one
			inspected = append(inspected, *one)
		}
	}
	return inspected, nil
}

func (h *Host) status(ctx context.Context, m *systemd.Manager, unit string, pl *place, specs systemd.Specifiers) (*Inspection, error) {
	full, err := h.serviceName(ctx, unit)
	if err != nil {
		return nil, err
	}
	u, err := m.Unit(ctx, full)
	if errors.Is(err, systemd.ErrNoUnit) {
		pids, _ := systemd.ProcessesByService(h.proc(), h.cgroup(), m.ControlGroup())
		if s, err := h.gone(full, h.processesOf(pids[full], bootTime(h.proc())), pl); s != nil || err != nil {
			return inspection(s, nil), err
		}
	}
	if err != nil {
		return nil, h.noUnit(err, full)
	}
	notes := h.settle(ctx, m, u.ID)
	if len(notes) > 0 {
		if u, err = m.Unit(ctx, full); err != nil {
			return nil, err
		}
	}
	v, live, procs, err := h.read(u, pl, specs)
	if err != nil {
		return nil, err
	}
	s := h.present(ctx, v, live, procs, "")
	s.precede(notes)
	if !h.concerns(v, live) {
		if l := h.lookalike(v, procs); l != nil {
			s.find("lookalike", l.Hint, "it looks like an engine and runs no package (%s)", l.Why)
		} else {
			s.find("", "", "it has nothing to do with a package")
		}
	}
	return inspection(s, v), nil
}

// settle finishes or undoes what an earlier command left of a unit, unless another one is at work on it or the unit
// is somebody else's. The notes say what was done, or why it was not.
func (h *Host) settle(ctx context.Context, m *systemd.Manager, unit string) (notes []string) {
	if h.ReadOnly {
		if (pair{h.dropInDir(unit)}).staged() {
			notes = append(notes, "a switch of it was cut off: the next command of its owner finishes or undoes it")
		}
		return notes
	}
	free, err := h.tryLockUnit(unit)
	switch {
	case err == nil && free != nil:
		defer free()
		notes, err = h.recover(ctx, m, unit)
	case errors.Is(err, fs.ErrNotExist): // no file of ours is left, which may not be loaded
		var entries []entry
		if entries, err = h.journal().entries(string(h.Scope), unit); err == nil {
			var note string
			if note, err = h.loadWritten(ctx, m, unit, entries); note != "" {
				notes = append(notes, note)
			}
		}
	default:
		return nil
	}
	if err != nil {
		notes = append(notes, err.Error())
	}
	return notes
}

// service describes one unit. health is what is known of it already, "" to ask.
func (h *Host) service(ctx context.Context, m *systemd.Manager, u *systemd.Unit, pl *place, specs systemd.Specifiers, health string) (*Service, error) {
	v, live, procs, err := h.read(u, pl, specs)
	if err != nil {
		return nil, err
	}
	return h.present(ctx, v, live, procs, health), nil
}

// read reads one unit and its processes.
func (h *Host) read(u *systemd.Unit, pl *place, specs systemd.Specifiers) (*view, *Live, []procInfo, error) {
	v, err := h.view(u, pl, specs)
	if err != nil {
		return nil, nil, nil, err
	}
	live, procs, err := h.live(u, v.place, v.armed.keys())
	return v, live, procs, err
}

// present describes a unit that has been read, and its processes.
func (h *Host) present(ctx context.Context, v *view, live *Live, procs []procInfo, health string) *Service {
	u := v.loaded
	v.system, v.live, v.procs = h.Scope == systemd.ScopeSystem, live, procs
	if live == nil && u.ActiveState == "active" && u.MainPID > 0 && h.Scope == systemd.ScopeSystem && os.Geteuid() != 0 {
		live = &Live{Unreadable: true} // the kernel hides the processes of others (hidepid)
	}
	armed, disk := v.armedPackage(), v.onDisk.pkg(v.place)
	if !strayOf(v.settings, v.place, v.loaded.ExecStart, v.onDisk).isZero() {
		disk = PackageRef{}
	}
	s := &Service{
		Unit: u.ID, Scope: h.Scope, User: h.Owner, Armed: armedOf(armed), Restarts: u.NRestarts,
		State: fmt.Sprintf("%s (%s)", u.ActiveState, u.SubState), Live: live,
	}
	values := v.armed
	if len(values) == 0 {
		values = v.onDisk
	}
	effective := v.settings.Environment()
	for _, a := range values {
		s.Binding = append(s.Binding, v.setting(a, effective))
	}
	s.Binding = append(s.Binding, v.words()...)
	if what := v.unloaded(armed, disk); what != "" {
		s.OnDisk = armedOf(disk)
		s.find("not-loaded", fmt.Sprintf("see that this is meant, then: systemctl%s daemon-reload", h.userFlag()), "%s", what)
	}
	h.describeOurs(v, s)
	h.describeHold(u.ID, s)
	h.describeProposal(u.ID, s, v.place)
	if s.Health = health; health == "" {
		s.Health = h.health(ctx, u, procs)
	}
	s.RestartPending = pending(u, live, armed) && !live.behind(armed)
	h.warnings(v, s, armed)
	return s
}

// setting adds to a variable where it is set, by the environment that the files make.
func (v *view) setting(a Assignment, effective map[string]systemd.Setting) Setting {
	s := Setting{Setting: a.Key, Value: a.Value}
	if from, ok := effective[a.Key]; ok && from.Value == a.Value {
		s.File, s.Line, s.Of = from.File, from.Line, v.of(from.File)
	}
	return s
}

func armedOf(p PackageRef) *Armed {
	if p.isZero() {
		return nil
	}
	return &Armed{p.Name, p.Digest, p.Path}
}

// pending tells whether a restart would change what runs.
func pending(u *systemd.Unit, live *Live, armed PackageRef) bool {
	if live == nil || live.Main == nil && live.Child == nil || live.Unreadable || u.ActiveState == "inactive" || u.ActiveState == "failed" {
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
			s.find("own-file", "", "%v", err)
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
		s.OverriddenBy = &Place{File: a.File, Line: a.Line, Value: a.Value, Setting: key, Of: v.of(a.File)}
		s.add(Finding{Check: "overridden", Where: at(a.File, a.Line), What: "something wins over our drop-in: " + describe(key, a)})
	}
	s.Shadowed = shadowed(v.settings, v.path, d)
	v.describeAdoption(s)
	for i := range s.Shadowed {
		s.Shadowed[i].Of = v.of(s.Shadowed[i].File)
	}
	if d.Rollback == rollbackExchange && !d.rolledBack() && v.rollbackFile() == nil {
		s.find("own-file", "", "%s is missing or not of this switch: a rollback has to write it and needs space", prevName)
	}
}

// nanContinue has the guard against NaN log and go on.
const nanContinue = "GGML_HRX_NAN_CONTINUE"

// warnings adds what would surprise the owner.
func (h *Host) warnings(v *view, s *Service, armed PackageRef) {
	u := v.loaded
	h.describeEnd(v, s)
	switch {
	case s.RestartPending && u.Restart != "no" && u.Restart != "":
		s.find("restart-pending", "", "a restart is pending and the unit says Restart=%s: a crash of the main process would start %s, with nobody's consent",
			u.Restart, orNothing(armed.Name))
	case s.RestartPending:
		s.find("restart-pending", "", "a restart is pending and the unit says Restart=no: a crash would leave it stopped, and start nothing")
	}
	if names := v.named(); len(names) > 1 {
		s.find("mixed-package", "", "its variables and its command point into several packages: %s", strings.Join(names, ", "))
	}
	if !v.astray.isZero() {
		s.find("stray", v.astray.remedy(), "%s, though %s names %s: the next start runs no package", v.astray, v.armed.namer(v.place), v.armed.pkg(v.place).Name)
	}
	if what, bound := boundCommand(u, v.place); bound {
		s.find("bound-command", "1bit pkg adopt "+u.ID, "ExecStart= names a package itself (%s): a switch is refused until a variable names it", what)
	}
	if g, on := v.given(nanContinue); on {
		s.add(Finding{
			Check: "nan-continue", Where: g.Where, What: fmt.Sprintf("%s %s: it is for soaks only", nanContinue, g.By), Remedy: g.Cure(u.ID),
		})
	}
	if l := s.Live; l != nil {
		if l.Unreadable {
			s.find("", "", "some of its processes cannot be read: what they run from is not known")
		}
		if l.Main != nil && l.Child != nil && l.Main.Package != l.Child.Package && l.Child.Package != "" {
			s.find("mixed-package", "", "the main process runs from %s and its server from %s", orNothing(l.Main.Package), l.Child.Package)
		}
		for _, p := range l.others {
			s.find("mixed-package", "", "process %d runs from %s too", p.PID, p.Package)
		}
		for _, p := range []*Process{l.Main, l.Child} {
			if p != nil && p.outside && !l.behind(armed) {
				s.find("stray", "", "process %d is %s, which lies in no package", p.PID, p.Path)
			}
			if p != nil && p.deleted {
				s.find("package-gone", "", "process %d runs from %s, which is no longer there", p.PID, p.Path)
			}
			if p != nil && p.replaced {
				s.find("package-gone", "", "process %d runs from files of %s that are no longer there: the package was replaced under it", p.PID, p.Path)
			}
		}
	}
	h.warnPackage(v, s, armed)
	h.surprises(v, s)
}

// warnPackage says what is wrong with the armed package.
func (h *Host) warnPackage(v *view, s *Service, armed PackageRef) {
	if armed.isZero() {
		return
	}
	pkg := v.place.pkg(armed.Path)
	_, err := os.Stat(armed.Path)
	switch {
	case pkg == nil && absent(err):
		s.find("package-missing", "install the package again, or switch or roll back to one that is installed", "%s is not there, and its next start fails", armed.Path)
	case pkg == nil && isLink(armed.Path):
		target := resolved(armed.Path)
		s.find("package-missing", fmt.Sprintf("put the folder where the link is: rm %[1]s && mv %[2]s %[1]s, then: 1bit pkg restart %[3]s", armed.Path, target, s.Unit),
			"%s is a link to %s: a package is a folder, and nothing behind a link is known as one", armed.Path, target)
	case pkg == nil && errors.Is(err, fs.ErrPermission):
		s.find("", "", "%s may not be read by this account: whether it is whole is not known", armed.Path)
	case pkg == nil:
		s.find("package-missing", h.takeIn(armed.Path), "%s is no installed package", armed.Path)
	case pkg.State != store.StateOK:
		s.find("package-state", fmt.Sprintf("1bit pkg verify %[1]s tells which files; the way to a whole one: 1bit pkg switch %[2]s OTHER --restart, 1bit pkg remove %[1]s, install it again, and switch back", pkg.Name, s.Unit), "%s is %s: %s", pkg.Name, pkg.State, pkg.Detail)
	}
	if v.active != nil && v.active.Package.Name == armed.Name && v.active.Package.Digest != "" && armed.Digest != "" &&
		v.active.Package.Digest != armed.Digest {
		s.find("package-state", "", "%s is not the package that was switched to: its digest is %s and was %s", armed.Name, armed.Digest, v.active.Package.Digest)
	}
}

// offline describes a unit from our files alone, where no manager answers.
func (h *Host) offline(unit string) (*Service, error) {
	s, err := h.fromFiles(unit, h.place())
	if err != nil {
		return nil, err
	}
	s.find("", "", "no manager answers: what is loaded and what runs is not known")
	return s, nil
}

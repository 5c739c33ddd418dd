package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/systemd"
)

// look is one look at all services of a manager: what is asked and read once for all of them.
//
// Hosts have hundreds of services, of which a few are ours, and a manager takes a millisecond to tell all of one. So
// the unit folders and the processes are read first, and the manager is asked only about services of which a file,
// a process or our own files may concern us, and about those whose files have changed since it read them: these may
// have been loaded with something that no file says any more.
type look struct {
	h     *Host
	m     *systemd.Manager
	place *place
	specs systemd.Specifiers

	files  *systemd.UnitFiles
	ours   map[string]bool // the folders in our unit folder
	loaded []systemd.Listed
	since  time.Time // every loaded service was read after it
	pids   map[string][]int
	open   map[string]bool // units with an act that was cut off
	boot   time.Time
	scan   *scan
	whole  bool // the manager is asked for all of a service of ours, also where its files tell enough for status
	unseen int  // services whose processes are another user's, and of which nothing else tells
}

// look reads what holds for all services.
func (h *Host) look(ctx context.Context, m *systemd.Manager) (*look, error) {
	l := &look{h: h, m: m, place: h.place(), boot: bootTime(h.proc()), scan: newScan(h.homes())}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { l.loaded, err = m.Loaded(gctx); return err })
	l.since = m.LoadedSince()
	group.Go(func() (err error) { l.specs, err = m.Specifiers(gctx); return err })
	group.Go(func() (err error) { l.place.inherited, err = m.Environment(gctx); return err })
	group.Go(func() (err error) {
		l.pids, err = systemd.ProcessesByService(h.proc(), h.cgroup(), m.ControlGroup())
		return err
	})
	l.files = systemd.ListUnitFiles(append(m.SearchPath(), h.outside(m)...))
	l.ours = map[string]bool{}
	entries, _ := os.ReadDir(h.UnitDir) // one that cannot be read is named by the manager's own search
	for _, e := range entries {
		l.ours[e.Name()] = true
	}
	l.open = h.journal().open(string(h.Scope))
	return l, group.Wait()
}

// outside is our unit folder where the manager does not read it: files of ours there are shown all the same.
func (h *Host) outside(m *systemd.Manager) []string {
	if slices.Contains(m.SearchPath(), h.spelled(&systemd.Unit{SearchPath: m.SearchPath()})) {
		return nil
	}
	return []string{h.UnitDir}
}

// names lists every service that there is: loaded, with a file, or, as a stopped instance of a template, only named
// by a folder.
func (l *look) names() []string {
	names := l.files.Services()
	for _, one := range l.loaded {
		names = append(names, one.Name)
	}
	names = slices.DeleteFunc(names, systemd.IsTemplate)
	slices.Sort(names)
	return slices.Compact(names)
}

// listed is a service as the manager lists it; one that is not loaded has only its name.
func (l *look) listed(name string) systemd.Listed {
	i, ok := slices.BinarySearchFunc(l.loaded, name, func(one systemd.Listed, name string) int { return strings.Compare(one.Name, name) })
	if !ok {
		return systemd.Listed{Name: name}
	}
	return l.loaded[i]
}

// candidates lists the services that may concern us.
func (l *look) candidates() []string {
	var found []string
	for _, name := range l.names() {
		if l.mayConcern(name) {
			found = append(found, name)
		}
	}
	return found
}

func (l *look) mayConcern(name string) bool {
	if l.ours[name+".d"] && l.h.exists(name) || l.scan.text([]byte(name)) {
		return true
	}
	files, hidden := l.files.Files(name)
	if hidden || slices.ContainsFunc(files, l.scan.file) {
		return true
	}
	listed := l.listed(name)
	if listed.LoadState == "loaded" {
		if _, same := l.files.Unit(listed, l.since); !same {
			return true
		}
	}
	procs := l.processes(name)
	if slices.ContainsFunc(procs, func(p procInfo) bool { return l.scan.process(p, l.place) }) {
		return true
	}
	if slices.ContainsFunc(procs, func(p procInfo) bool { return p.unreadable }) {
		l.unseen++
	}
	return false
}

// processes reads the processes of a service.
func (l *look) processes(name string) []procInfo {
	return l.h.processesOf(l.pids[name], l.boot)
}

// processesOf reads processes, less those that have ended.
func (h *Host) processesOf(pids []int, boot time.Time) []procInfo {
	var procs []procInfo
	for _, pid := range pids {
		if p, ok := readProcessOf(h.proc(), pid, boot); ok {
			procs = append(procs, p)
		}
	}
	return procs
}

// found is what a look finds of one service: a service of ours or a look-alike, or neither.
type found struct {
	service   *Inspection
	lookalike *Lookalike
}

// all looks at every candidate. A service that cannot be read is one with a warning: it hides no other.
func (l *look) all(ctx context.Context) ([]found, error) {
	names := l.candidates()
	out := make([]found, len(names))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(asking)
	for i, name := range names {
		group.Go(func() error {
			one, err := l.one(gctx, name)
			switch {
			case err == nil:
				out[i] = one
			case gctx.Err() != nil:
				return gctx.Err()
			case l.h.exists(name):
				out[i].service = inspection(l.unread(name, err), nil)
			default:
				l.h.log().Warn("service not read", "unit", name, "error", err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("read the services: %w", err)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(f found) bool {
		if f.service == nil {
			return f.lookalike == nil
		}
		again := seen[f.service.Unit]
		seen[f.service.Unit] = true
		return again
	}), nil
}

// unread is a service of ours about which not everything could be read.
func (l *look) unread(name string, err error) *Service {
	listed := l.listed(name)
	s := &Service{
		Unit: name, Scope: l.h.Scope, User: l.h.Owner, Health: HealthUnknown,
		State: fmt.Sprintf("%s (%s)", or(listed.ActiveState, "inactive"), or(listed.SubState, "dead")),
	}
	check := "unit-file"
	if errors.Is(err, fs.ErrPermission) { // which is no fault of its own
		check = ""
	}
	s.find(check, "", "it cannot be read: %v", err)
	return s
}

// one looks at one service by any of its names.
func (l *look) one(ctx context.Context, name string) (found, error) {
	var notes []string
	if l.open[name] || (pair{l.h.dropInDir(name)}).staged() {
		notes = l.h.settle(ctx, l.m, name)
	}
	v, err := l.view(ctx, name)
	if errors.Is(err, systemd.ErrNoUnit) {
		s, err := l.h.gone(name, l.processes(name), l.place)
		if err != nil {
			s = l.unread(name, err)
		}
		return found{service: inspection(s, nil)}, nil
	}
	if err != nil {
		return found{}, err
	}
	procs := l.processes(v.loaded.ID)
	for _, p := range procs {
		if v.loaded.MainStarted.IsZero() && p.pid == v.loaded.MainPID {
			v.loaded.MainStarted = p.since
		}
	}
	live := liveOf(procs, v.loaded.MainPID, v.place, v.armed.keys())
	if l.h.concerns(v, live) {
		s := l.h.present(ctx, v, live, procs, "")
		s.precede(notes)
		return found{service: inspection(s, v)}, nil
	}
	return found{lookalike: l.h.lookalike(v, procs)}, nil
}

// concerns tells whether a unit has anything to do with a package.
func (h *Host) concerns(v *view, live *Live) bool {
	if h.exists(v.loaded.ID) || len(v.armed) > 0 || len(v.onDisk) > 0 || len(v.words()) > 0 {
		return true
	}
	_, ok := live.runs()
	return ok
}

// view reads a unit, as far as that can be from its files.
func (l *look) view(ctx context.Context, name string) (*view, error) {
	listed := l.listed(name)
	if u, same := l.files.Unit(listed, l.since); same && !l.whole && (listed.LoadState == "loaded" || listed.LoadState == "") {
		v, same, err := l.sameView(ctx, u)
		if same || err != nil {
			return v, err
		}
	}
	u, err := l.m.Unit(ctx, name)
	if err != nil {
		return nil, err
	}
	return l.h.view(u, l.place, l.specs)
}

// sameView reads a unit whose files are as they were when the manager read them, and makes sure with the manager: its
// environment and its drop-ins are asked for all the same. same is false where the files do not tell for certain.
func (l *look) sameView(ctx context.Context, u *systemd.Unit) (v *view, same bool, err error) {
	s, err := systemd.ReadSettings(u, l.specs)
	if err != nil || !l.fill(u, s) {
		return nil, false, nil
	}
	if u.LoadState == "" { // not loaded: its next start reads the files
		u.LoadState, u.ActiveState, u.SubState = "loaded", "inactive", "dead"
	} else if loaded, err := l.m.Refresh(ctx, u); err != nil {
		return nil, false, err
	} else if !loaded || !declares(s, u.Environment) {
		return nil, false, nil
	}
	v = &view{loaded: u, disk: u, specs: l.specs, settings: s, place: l.place, same: true}
	return v, true, v.fill(l.h)
}

// fill gives a unit what its files say of how it starts. sure is false where they do not tell for certain, or where
// systemd would not start it.
func (l *look) fill(u *systemd.Unit, s *systemd.Settings) (sure bool) {
	refused, doubt := s.Refused()
	kind, restart, folder := s.Last("Service", "Type"), s.Last("Service", "Restart"), s.Last("Service", "WorkingDirectory")
	sure = refused+doubt+kind.Unsure+restart.Unsure+folder.Unsure == "" && len(s.Start()) > 0
	for _, c := range s.Start() {
		u.ExecStart = append(u.ExecStart, systemd.Command{Path: c.Path, Argv: c.Argv})
	}
	for _, setting := range s.Environment() {
		sure = sure && setting.Unsure == ""
	}
	u.Type, u.Restart = kind.Line.Value, restart.Line.Value
	u.WorkingDirectory, _, _ = l.specs.Expand(u, folder.Line.Value)
	return sure
}

// declares tells whether what a manager has loaded is what the Environment= lines of the files say.
func declares(s *systemd.Settings, loaded []string) bool {
	keys := s.Keys()
	if len(keys) > 256 { // to ask is faster
		return false
	}
	want := map[string]string{}
	for _, key := range keys {
		for _, a := range s.History(key) {
			switch a.Kind {
			case systemd.KindEnvironment:
				want[key] = a.Value
			case systemd.KindReset:
				delete(want, key)
			}
		}
	}
	if len(want) != len(loaded) {
		return false
	}
	for _, assignment := range loaded {
		key, value, _ := strings.Cut(assignment, "=")
		if have, ok := want[key]; !ok || have != value {
			return false
		}
	}
	return true
}

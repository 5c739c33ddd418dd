package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/1bit-systems/pkg/systemd"
)

// view is one unit at one moment: what is loaded, what the files say, and what of it is ours.
type view struct {
	loaded   *systemd.Unit
	disk     *systemd.Unit // as a reload would find it
	specs    systemd.Specifiers
	settings *systemd.Settings // of the files
	place    *place

	path         string // of our drop-in, spelled as the manager does
	namesake     string // the drop-in of our name that ours hides, in a weaker folder; "": there is none
	active       *DropIn
	activeErr    error // why the active file does not say what ours do
	activeEdited error // what in it is not ours
	activeData   []byte
	prev         *DropIn // the same of .prev
	prevErr      error
	prevEdited   error
	prevData     []byte

	armed  binding // loaded variables that point into a package
	onDisk binding // the same of the files
	astray stray   // what of the loaded unit decides and lies in no package
	same   bool    // what is loaded is known to be what the files say

	system bool // it is of the system's manager
	live   *Live
	procs  []procInfo // its processes
}

// view reads a unit. The files may change meanwhile unless the caller holds the unit's lock.
func (h *Host) view(u *systemd.Unit, pl *place, specs systemd.Specifiers) (*view, error) {
	v := &view{loaded: u, place: pl, specs: specs}
	var err error
	if v.disk, err = u.Rescan(); err != nil {
		return nil, err
	}
	if v.settings, err = systemd.ReadSettings(v.disk, v.specs); err != nil {
		return nil, err
	}
	if u.CommandsUnread { // the files tell
		for _, c := range v.settings.Start() {
			u.ExecStart = append(u.ExecStart, systemd.Command{Path: c.Path, Argv: c.Argv})
		}
		v.disk.ExecStart = u.ExecStart
	}
	return v, v.fill(h)
}

// fill adds what is ours and what points into packages.
func (v *view) fill(h *Host) error {
	v.path = filepath.Join(h.spelled(v.loaded), v.loaded.ID+".d", dropInName)
	for _, path := range h.namesakes(v.loaded.SearchPath, v.loaded.ID) {
		if filepath.Base(path) == dropInName && v.namesake == "" {
			v.namesake = path
		}
	}
	if err := v.readPair(pair{h.dropInDir(v.loaded.ID)}); err != nil {
		return err
	}
	v.onDisk = ofSettings(v.settings, v.place)
	v.armed = v.onDisk
	if given, ok := v.inherits(); ok {
		v.onDisk = append(v.onDisk, given)
		v.armed = v.onDisk
	}
	if !v.same {
		v.armed = inEnvironment(loadedEnvironment(v.loaded), v.place)
		if given, ok := v.inherits(); ok {
			v.armed = append(v.armed, given)
		}
		v.astray = v.loadedStray()
	} else {
		v.astray = strayOf(v.settings, v.place, v.loaded.ExecStart, v.armed)
	}
	return nil
}

// environment is what the next process gets from what the manager has loaded.
func (v *view) environment() map[string]string {
	if !v.same {
		return loadedEnvironment(v.loaded)
	}
	env := map[string]string{}
	for key, setting := range v.settings.Environment() {
		env[key] = setting.Value
	}
	return env
}

// readPair reads our two files. One that is not as we write it is an error of the view's, not of the reading.
func (v *view) readPair(p pair) error {
	var err error
	v.activeData, v.active, v.activeEdited, v.activeErr, err = p.look(dropInName)
	if err != nil {
		return fmt.Errorf("read our drop-in: %w", err)
	}
	v.prevData, v.prev, v.prevEdited, v.prevErr, err = p.look(prevName)
	if err != nil {
		v.prevErr = err
	}
	return nil
}

// look reads one of the files as far as it can be read. why says why there is no d, edited what in the file is not
// ours; err, that the file cannot be read at all.
func (p pair) look(name string) (data []byte, d *DropIn, edited, why, err error) {
	data, err = p.read(name)
	if errors.Is(err, ErrRefused) || errors.Is(err, errNotOurs) {
		return nil, nil, nil, err, nil
	}
	if errors.Is(err, fs.ErrPermission) { // a rename moves it all the same
		return nil, nil, nil, fmt.Errorf("read %s: %w", p.path(name), err), nil
	}
	if err != nil || data == nil {
		return nil, nil, nil, nil, err
	}
	d, edited, why = readDropIn(data)
	if edited != nil {
		edited = fmt.Errorf("read %s: %w", p.path(name), edited)
	}
	if why != nil {
		why = fmt.Errorf("read %s: %w", p.path(name), why)
	}
	return data, d, edited, why, nil
}

// foreign refuses an act that would write our files anew, or remove them, where something in them is not ours.
func (v *view) foreign() error {
	for _, err := range []error{v.activeErr, v.activeEdited, v.prevErr, v.prevEdited} {
		switch {
		case err == nil:
		case errors.Is(err, errNotOurs):
			return fmt.Errorf("%w: %w: move what is yours into a file of its own", ErrRefused, err)
		default:
			return err
		}
	}
	return nil
}

// rollbackFile is the .prev that belongs to the active file: the one that its rollback puts in place.
func (v *view) rollbackFile() *DropIn {
	if v.active == nil || v.prev == nil || v.active.Rollback != rollbackExchange || v.active.rolledBack() ||
		v.prev.Generation != v.active.Generation || !v.prev.rolledBack() || !v.prev.RolledBackFrom.same(v.active.Package) {
		return nil
	}
	return v.prev
}

// lone is a .prev without an active file: what a rollback of a first switch left behind.
func (v *view) lone() *DropIn {
	if v.active == nil && v.activeErr == nil {
		return v.prev
	}
	return nil
}

// blocks are the packages that the unit must not be switched to.
func (v *view) blocks() []Block {
	if v.active != nil {
		// An undo puts a file back as it is, also one that was put away with its own block.
		return without(v.active.Blocks, v.active.Package)
	}
	d := v.prev
	if d == nil {
		return nil
	}
	if _, ok := blocked(d.Blocks, d.Package); ok || d.Lifted || d.rolledBack() {
		return d.Blocks
	}
	return append(d.Blocks[:len(d.Blocks):len(d.Blocks)], Block{d.Package.Name, d.Package.Digest, blockedByRollback})
}

// generation is the next one: greater than that of every file of ours.
func (v *view) generation() int {
	n := 0
	for _, d := range []*DropIn{v.active, v.prev} {
		if d != nil {
			n = max(n, d.Generation)
		}
	}
	return n + 1
}

// spelled is UnitDir as the manager spells it: a home folder can be reached by several paths.
func (h *Host) spelled(u *systemd.Unit) string {
	mine, err := os.Stat(h.UnitDir)
	for _, dir := range u.SearchPath {
		if filepath.Clean(dir) == filepath.Clean(h.UnitDir) {
			return filepath.Clean(dir)
		}
		if err == nil {
			if there, err := os.Stat(dir); err == nil && os.SameFile(mine, there) {
				return filepath.Clean(dir)
			}
		}
	}
	return filepath.Clean(h.UnitDir)
}

// searched tells whether the manager reads UnitDir at all.
func (h *Host) searched(searchPath []string) bool {
	dir := h.spelled(&systemd.Unit{SearchPath: searchPath})
	return slices.ContainsFunc(searchPath, func(d string) bool { return filepath.Clean(d) == dir })
}

// without reads the settings as if our drop-in were not there. A file of its name in a weaker folder then comes to light.
func (v *view) without() (*systemd.Settings, error) {
	if v.namesake != "" {
		data, err := os.ReadFile(v.namesake)
		if err != nil {
			return nil, err
		}
		return v.with(data)
	}
	return systemd.ReadSettings(v.disk, v.specs, systemd.Edit{Path: v.path, Gone: true})
}

// with reads the settings as if our drop-in had these bytes.
func (v *view) with(data []byte) (*systemd.Settings, error) {
	return systemd.ReadSettings(v.disk, v.specs, systemd.Edit{Path: v.path, Data: data})
}

// winner finds what wins over a variable of our drop-in at path; ok is false when nothing does.
func winner(s *systemd.Settings, path string, d *DropIn) (key string, a systemd.Assignment, ok bool) {
	for _, mine := range d.Environment {
		if above := s.Above(mine.Key, path); len(above) > 0 {
			return mine.Key, above[len(above)-1], true
		}
	}
	return startWinner(s, path, d)
}

// startWinner finds an ExecStart= that takes the place of those of our drop-in, or would be started too.
func startWinner(s *systemd.Settings, path string, d *DropIn) (key string, a systemd.Assignment, ok bool) {
	if len(d.Start) == 0 {
		return "", systemd.Assignment{}, false
	}
	for _, value := range slices.Backward(s.Values("Service", "ExecStart")) {
		if value.File != path {
			return "ExecStart", systemd.Assignment{Key: "ExecStart", Value: value.Value, File: value.File, Line: value.Number}, true
		}
	}
	return "", systemd.Assignment{}, false
}

// describe says what a line does to a variable.
func describe(key string, a systemd.Assignment) string {
	at := fmt.Sprintf("%s:%d", a.File, a.Line)
	switch a.Kind {
	case systemd.KindReset:
		return fmt.Sprintf("%s: an empty Environment= takes %s away", at, key)
	case systemd.KindUnsetEnvironment:
		return fmt.Sprintf("%s: UnsetEnvironment= takes %s away", at, key)
	case systemd.KindEnvironmentFile:
		return fmt.Sprintf("%s: EnvironmentFile= sets %s=%s", at, key, a.Value)
	}
	return fmt.Sprintf("%s: sets %s=%s", at, key, a.Value)
}

// shadowed lists the lines that our drop-in at path wins over.
func shadowed(s *systemd.Settings, path string, d *DropIn) []Place {
	var out []Place
	for _, mine := range d.Environment {
		for _, a := range s.Below(mine.Key, path) {
			out = append(out, Place{File: a.File, Line: a.Line, Value: a.Value, Setting: mine.Key})
		}
	}
	return out
}

// readBack compares what the manager has loaded with our drop-in. The error wraps ErrRefused and names file and
// line where something wins over us; unsure says what could not be told. u is the unit as it was loaded.
func (h *Host) readBack(ctx context.Context, m *systemd.Manager, unit string, d *DropIn, specs systemd.Specifiers) (u *systemd.Unit, unsure []string, err error) {
	u, err = m.Unit(ctx, unit)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(h.spelled(u), unit+".d", dropInName)
	loaded := false
	for _, p := range u.DropInPaths {
		loaded = loaded || p == path
	}
	if !loaded {
		return nil, nil, fmt.Errorf("%w: the manager does not read %s (it reads %v)", ErrRefused, path, u.DropInPaths)
	}
	s, err := systemd.ReadSettings(u, specs)
	if err != nil {
		return nil, nil, err
	}
	if key, a, ok := winner(s, path, d); ok {
		return nil, nil, fmt.Errorf("%w: something wins over our drop-in: %s", ErrRefused, describe(key, a))
	}
	got, effective := loadedEnvironment(u), s.Environment()
	for _, a := range d.Environment {
		if got[a.Key] != a.Value {
			return nil, nil, fmt.Errorf("%w: the manager loaded %s=%s and not %s", ErrRefused, a.Key, got[a.Key], a.Value)
		}
		if why := effective[a.Key].Unsure; why != "" {
			unsure = append(unsure, fmt.Sprintf("whether %s reaches the service is not certain: %s", a.Key, why))
		}
	}
	if err := loadedStart(u, s, d); err != nil {
		return nil, nil, err
	}
	return u, unsure, nil
}

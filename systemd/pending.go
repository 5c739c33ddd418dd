package systemd

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	godbus "github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"
)

// Pending lists the loaded units other than ours, of any kind, whose files have changed since they were loaded: what
// a reload would take up besides our own edit.
//
// Asking every unit for NeedDaemonReload costs a question each, and it misses what systemd has not looked for since:
// the first drop-in of a unit, a unit file in a stronger folder, a file put in place with an old time (cp -p, rsync).
// So the folders are looked at first, and only units with something newer than the last reload are asked. What counts
// is the time of the inode, which nobody can set: it is new when a file was written, replaced or renamed. Where a unit
// folder itself has changed a file may have gone from it, and where the times cannot be trusted they say nothing:
// then all units are asked.
func (m *Manager) Pending(ctx context.Context, ours string) ([]string, error) {
	edits := m.edits()
	delete(edits.units, ours)
	if len(edits.units) == 0 && !edits.gone && !edits.all {
		return nil, nil
	}
	units, err := m.list(ctx, "ListUnits")
	if err != nil {
		return nil, fmt.Errorf("list the loaded units: %w", err)
	}
	var asked []question
	for _, unit := range units {
		touched, newer := edits.of(unit.Name)
		if unit.Name == ours || !touched && !edits.gone {
			continue
		}
		iface, method, property := unitInterface, getProperty, []any{"NeedDaemonReload"}
		if newer {
			method, property = getAll, nil
		}
		call := m.calls.Object(destination, unit.Path).GoWithContext(ctx, method, 0, make(chan *godbus.Call, 1), append([]any{iface}, property...)...)
		asked = append(asked, question{unit.Name, newer, call})
	}
	var names []string
	for _, q := range asked {
		pending, err := m.answer(q, edits)
		if isNoUnit(err) {
			continue // unloaded since
		} else if err != nil {
			return nil, fmt.Errorf("ask %s for pending edits: %w", q.unit, err)
		}
		if pending {
			names = append(names, q.unit)
		}
	}
	slices.Sort(names)
	return names, nil
}

// question is one that is on its way to a unit: all its properties where something of it is newer.
type question struct {
	unit  string
	newer bool
	call  *godbus.Call
}

func (m *Manager) answer(q question, e *edits) (pending bool, err error) {
	<-q.call.Done
	if !q.newer {
		var value godbus.Variant
		err = q.call.Store(&value)
		pending, _ = value.Value().(bool)
		return pending, err
	}
	var values map[string]godbus.Variant
	if err := q.call.Store(&values); err != nil {
		return false, err
	}
	u := decodeUnit(values, nil)
	u.SearchPath = m.searchPath
	u.spellDropIns()
	if u.NeedDaemonReload || u.LoadState != "loaded" {
		return u.NeedDaemonReload, nil
	}
	if slices.ContainsFunc(append([]string{u.FragmentPath}, u.DropInPaths...), func(path string) bool { return e.old[path] }) {
		return true, nil
	}
	return u.elsewhere()
}

// elsewhere compares the files that a unit has loaded with those that a reload would find.
func (u *Unit) elsewhere() (bool, error) {
	if fragment := u.Fragment(); fragment != "" && u.FragmentPath != "" && !sameFile(fragment, u.FragmentPath) {
		return true, nil
	}
	disk, err := u.Rescan()
	if err != nil {
		return false, err
	}
	loaded := slices.Clone(u.DropInPaths)
	slices.SortFunc(loaded, compareNames)
	return !slices.Equal(loaded, disk.DropInPaths), nil
}

// edits is what the unit folders hold that is newer than the last reload.
type edits struct {
	since time.Time       // with room for the clock of files
	units map[string]bool // by name; of a template, a prefix or a kind as its files and folders are named. false: only its drop-in folder is newer, so that one may have gone
	old   map[string]bool // files that came with a time of before, which systemd goes by
	gone  bool            // a file may have gone from a unit folder
	all   bool            // the times say nothing: any unit may have changed
}

// of says whether something of a unit is newer, and whether a file is.
func (e *edits) of(unit string) (touched, file bool) {
	for _, name := range append(spellings(unit), strings.TrimPrefix(filepath.Ext(unit), ".")) {
		newer, have := e.units[name]
		touched, file = touched || have, file || newer
	}
	return touched || e.all, file || e.all
}

// edits looks through the unit folders.
func (m *Manager) edits() *edits {
	e := &edits{since: m.LoadedSince(), units: map[string]bool{}, old: map[string]bool{}}
	if e.since.IsZero() {
		e.all = true
		return e
	}
	e.since = e.since.Add(-clockStep())
	for _, dir := range m.searchPath {
		switch base := filepath.Base(dir); {
		case strings.HasPrefix(base, "generator"):
			e.generated(dir)
			continue
		case base == "transient" || strings.HasSuffix(base, ".control"):
			continue // systemd writes these itself and loads what it writes
		}
		info, err := os.Stat(dir)
		if err != nil {
			continue
		}
		changed := e.newer(info)
		e.gone = e.gone || changed
		e.all = e.all || foreignClock(dir)
		e.folder(dir, changed)
	}
	return e
}

// folder looks at the unit files and the drop-in folders in one folder of the search path. Where that itself has
// changed, a drop-in folder may have come whole, with old files in it.
func (e *edits) folder(dir string, changed bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		e.all = true
		return
	}
	for _, entry := range entries {
		name, path := entry.Name(), filepath.Join(dir, entry.Name())
		unit, dropIns := strings.CutSuffix(name, ".d")
		switch {
		case !dropIns && entry.IsDir(), !dropIns && !isUnit(name):
		case !dropIns:
			e.file(unit, path)
		default:
			if info, err := os.Stat(path); err == nil && e.newer(info) {
				e.units[unit] = e.units[unit] || changed
			}
			files, err := os.ReadDir(path)
			if err != nil {
				continue // it is none
			}
			for _, file := range files {
				if isDropIn(file.Name()) {
					e.file(unit, filepath.Join(path, file.Name()))
				}
			}
		}
	}
}

// isUnit says whether a name ends as those of units do.
func isUnit(name string) bool {
	return slices.ContainsFunc(unitSuffixes[:], func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// file looks at a file and at what it is a link to.
func (e *edits) file(unit, path string) {
	for _, stat := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		info, err := stat(path)
		if err != nil || info.Mode().IsDir() || info.Mode()&fs.ModeDevice != 0 { // a link to /dev/null is as old as the link
			return
		}
		if e.newer(info) {
			e.units[unit] = true
			if info.Mode().IsRegular() && info.ModTime().Before(e.since) {
				e.old[path] = true
				if target, err := filepath.EvalSymlinks(path); err == nil {
					e.old[target] = true // a linked unit file is loaded by this name
				}
			}
		}
		if info.Mode().IsRegular() {
			return
		}
	}
}

// generated looks at what the units of a generator were made from: they are themselves made anew by every reload.
func (e *edits) generated(dir string) {
	entries, _ := os.ReadDir(dir) // most have none
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			source, ok := strings.CutPrefix(line, "SourcePath=")
			if !ok {
				continue
			}
			if info, err := os.Stat(strings.TrimSpace(source)); err != nil || e.newer(info) {
				e.units[entry.Name()] = true
			}
		}
	}
}

// newer says whether a file came, or a folder changed, after the last reload began.
func (e *edits) newer(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || !time.Unix(stat.Ctim.Unix()).Before(e.since)
}

// LoadedSince is the time after which the manager has read every unit that it has loaded: when its last reload before
// we connected began, by the clock as it is now. Zero where it does not tell. Where the clock was set back since, the
// time that has passed counts.
func (m *Manager) LoadedSince() time.Time {
	for _, name := range []string{"UnitsLoadTimestamp", "UnitsLoadStartTimestamp"} { // the second of the start alone
		at, passed := get[uint64](m.about, name), get[uint64](m.about, name+"Monotonic")
		if at == 0 || passed == 0 {
			continue
		}
		var wall, now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_REALTIME, &wall) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
			return time.Time{}
		}
		since := time.UnixMicro(int64(at))
		back := time.Unix(wall.Unix()).Add(-time.Duration(now.Nano() - int64(passed)*1000))
		if back.Before(since.Add(-clockStep())) {
			return back
		}
		return since
	}
	return time.Time{}
}

// foreignClock says whether the times in a folder may be another machine's.
func foreignClock(dir string) bool {
	var stat unix.Statfs_t
	if unix.Statfs(dir, &stat) != nil {
		return true
	}
	switch stat.Type {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC:
		return true
	}
	return false
}

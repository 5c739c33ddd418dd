package systemd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Unloaded lists the loaded units, of any kind, that a reload would find other files for: a drop-in where the unit
// had none, or a unit file in a stronger folder than the loaded one. That is what systemd's own NeedDaemonReload,
// and so Pending, does not see. Only folders that changed since the manager last read all units are looked at.
func (m *Manager) Unloaded(ctx context.Context) ([]string, error) {
	since := m.loadTime(ctx)
	names, shared := map[string]bool{}, false
	for _, dir := range m.searchPath {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // what cannot be read here is not read by the manager of this user either
		}
		for _, e := range entries {
			unit, isFolder := strings.CutSuffix(e.Name(), ".d")
			info, err := e.Info()
			if err != nil || !isFolder && !isUnitName(unit) || !changed(info, since) {
				continue
			}
			if isUnitName(unit) {
				names[unit] = true
			} else if isFolder {
				shared = true // of a template, of all units with a prefix, of a kind
			}
		}
	}
	if shared {
		units, err := m.list(ctx, "ListUnits")
		if err != nil {
			return nil, fmt.Errorf("list the loaded units: %w", err)
		}
		for _, unit := range units {
			names[unit.Name] = true
		}
	}
	var found []string
	for name := range names {
		id, differs, err := m.differs(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("look for edits of %s that are not loaded: %w", name, err)
		}
		if differs {
			found = append(found, id)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// loadTime is when the manager last read all units, zero where it does not tell (before 250).
func (m *Manager) loadTime(ctx context.Context) time.Time {
	value, err := m.property(ctx, managerPath, managerInterface, "UnitsLoadTimestamp")
	usec, ok := value.(uint64)
	if err != nil || !ok || usec == 0 {
		return time.Time{}
	}
	// The clock of a file system lags behind.
	return time.UnixMicro(int64(usec)).Add(-time.Second)
}

// changed says whether a file or a folder came, or what is in the folder changed, after a time.
func changed(info os.FileInfo, since time.Time) bool {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && time.Unix(stat.Ctim.Unix()).After(since) {
		return true
	}
	return info.ModTime().After(since)
}

// isUnitName says whether a unit of the name can be loaded.
func isUnitName(name string) bool {
	return slices.Contains(unitSuffixes[:], filepath.Ext(name)) && validUnitName(name) && !strings.HasSuffix(name, "-"+filepath.Ext(name))
}

// differs compares the files that a unit has loaded with those that are there.
func (m *Manager) differs(ctx context.Context, name string) (id string, differs bool, err error) {
	values, err := m.all(ctx, unitPath(name), unitInterface)
	if isNoUnit(err) {
		return "", false, nil
	} else if err != nil {
		return "", false, err
	}
	u := decodeUnit(values, nil)
	if u.LoadState != "loaded" {
		return u.ID, false, nil
	}
	u.SearchPath = m.searchPath
	if fragment := u.Fragment(); fragment != "" && !sameFile(fragment, u.FragmentPath) {
		return u.ID, true, nil
	}
	disk, err := u.Rescan()
	if err != nil {
		return "", false, err
	}
	loaded := slices.Clone(u.DropInPaths)
	slices.SortFunc(loaded, compareNames)
	return u.ID, !slices.Equal(loaded, disk.DropInPaths), nil
}

// Fragment is the unit file that a reload would find for the unit in its search path, "" for none: the one in the
// strongest folder, and for an instance without a file of its own that of its template.
func (u *Unit) Fragment() string {
	names := []string{u.ID}
	if prefix, rest, ok := strings.Cut(u.ID, "@"); ok {
		names = append(names, prefix+"@"+filepath.Ext(rest))
	}
	for _, name := range names {
		for _, dir := range u.SearchPath {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// sameFile says whether two paths lead to one file: a unit file that was linked into a folder is loaded under the
// path that the link leads to.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	y, yerr := os.Stat(b)
	return err == nil && yerr == nil && os.SameFile(x, y)
}

package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Rescan returns the unit as a reload would find it: DropInPaths from the folders themselves
// and not from what is loaded. It needs SearchPath. A folder that is a symbolic link counts only
// when something in it is loaded: 252 passes such folders over, other versions may not. A link to
// a file counts even when it leads nowhere: then it hides the weaker drop-in of the same name.
func (u *Unit) Rescan() (*Unit, error) {
	found := map[string]string{} // by file name
	for _, dir := range dropInFolders(u.names(), u.SearchPath) {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() && !u.loadedFrom(dir) {
			continue
		}
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("look for drop-ins of %s: %w", u.ID, err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if _, have := found[name]; !have && isDropIn(name) {
				found[name] = filepath.Join(dir, name)
			}
		}
	}
	again := *u
	again.DropInPaths = nil
	for _, path := range found {
		again.DropInPaths = append(again.DropInPaths, path)
	}
	slices.SortFunc(again.DropInPaths, compareNames)
	return &again, nil
}

// loadedFrom says whether a drop-in of a folder is loaded.
func (u *Unit) loadedFrom(dir string) bool {
	return slices.ContainsFunc(u.DropInPaths, func(path string) bool { return filepath.Dir(path) == dir })
}

// spellDropIns names the loaded drop-ins as they are found along the search path. systemd reports the folder of one
// without links: where the unit folder, or the drop-in folder, is a link, that is another path.
func (u *Unit) spellDropIns() {
	folders := dropInFolders(u.names(), u.SearchPath)
	var real map[string]string // what a folder is without links
	for i, path := range u.DropInPaths {
		if slices.Contains(folders, filepath.Dir(path)) {
			continue
		}
		if real == nil {
			real = map[string]string{}
			for _, dir := range slices.Backward(folders) {
				if to, err := filepath.EvalSymlinks(dir); err == nil {
					real[to] = dir
				}
			}
		}
		if dir, ok := real[filepath.Dir(path)]; ok {
			u.DropInPaths[i] = filepath.Join(dir, filepath.Base(path))
		}
	}
}

// names are the names of a unit, the primary one first.
func (u *Unit) names() []string {
	names := []string{u.ID}
	for _, name := range u.Names {
		if name != u.ID {
			names = append(names, name)
		}
	}
	return names
}

// isDropIn is systemd's rule for the name of a drop-in.
func isDropIn(name string) bool {
	return strings.HasSuffix(name, ".conf") && !strings.HasPrefix(name, ".")
}

// isUnitFile tells a unit file from a drop-in, whose name ends in .conf.
func isUnitFile(path string) bool { return strings.HasSuffix(path, ".service") }

// compareNames orders drop-ins as they are merged: by file name alone, in byte order.
func compareNames(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) }

// dropInFolders lists the folders that may hold drop-ins of a unit. Of two files with the same
// name the one in the earlier folder counts. The order is systemd's: for every name of the unit
// the search path, in each folder of it the unit's own, its template's and those of its dash
// prefixes; the folder for all services comes last of all.
func dropInFolders(names, searchPath []string) []string {
	var folders []string
	for _, name := range names {
		for _, dir := range searchPath {
			for _, spelling := range spellings(name) {
				folders = append(folders, filepath.Join(dir, spelling+".d"))
			}
		}
	}
	for _, dir := range searchPath {
		folders = append(folders, filepath.Join(dir, strings.TrimPrefix(filepath.Ext(names[0]), ".")+".d"))
	}
	return folders
}

// spellings lists the names under which drop-ins of a unit may stand, the most particular first.
// For a-b@c.service these are itself, a-b@.service with its dash prefix a-.service, and then
// a-@c.service, which is an instance again, with a-@.service.
func spellings(name string) []string {
	suffix := filepath.Ext(name)
	prefix, instance, templated := strings.Cut(strings.TrimSuffix(name, suffix), "@")
	list := []string{name}
	add := func(more []string) {
		for _, one := range more {
			if !slices.Contains(list, one) {
				list = append(list, one)
			}
		}
	}
	of := ""
	if templated && instance != "" {
		of = "@" + instance
		add(spellings(prefix + "@" + suffix))
	}
	if dash := strings.LastIndexByte(strings.TrimSuffix(prefix, "-"), '-'); dash > 0 {
		add(spellings(prefix[:dash+1] + of + suffix))
	}
	return list
}

// errSameName is returned where it cannot be told which of two drop-ins counts.
var errSameName = errors.New("there are two drop-ins of this name, and their folders are not in the search path")

// apply makes the list of drop-ins as it would be after an edit.
func (u *Unit) apply(paths []string, edit Edit) ([]string, error) {
	name := filepath.Base(edit.Path)
	if edit.Path == u.FragmentPath || slices.Contains(paths, edit.Path) {
		if edit.Gone {
			paths = slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path == edit.Path })
		}
		return paths, nil
	}
	switch {
	case edit.Gone:
		return paths, nil
	case !isDropIn(name):
		return nil, fmt.Errorf("%s: systemd reads no drop-in of this name", edit.Path)
	}
	paths = slices.Clone(paths)
	same := slices.IndexFunc(paths, func(path string) bool { return filepath.Base(path) == name })
	if same < 0 {
		paths = append(paths, edit.Path)
		slices.SortStableFunc(paths, compareNames)
		return paths, nil
	}
	folders := dropInFolders(u.names(), u.SearchPath)
	ours := slices.Index(folders, filepath.Dir(edit.Path))
	theirs := slices.Index(folders, filepath.Dir(paths[same]))
	switch {
	case ours < 0 || theirs < 0:
		return nil, fmt.Errorf("%s and %s: %w", edit.Path, paths[same], errSameName)
	case ours < theirs:
		paths[same] = edit.Path
	}
	return paths, nil
}

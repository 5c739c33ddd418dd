package systemd

import (
	"os"
	"path/filepath"
	"slices"
)

// hiddenBy lists the files that count for nothing because of one that has nothing in it: an
// empty file, a link to /dev/null or to nowhere hides every weaker one of the same name, and an
// empty unit file masks the unit.
func (u *Unit) hiddenBy(name string) []Problem {
	folders := u.SearchPath
	if name != u.FragmentPath {
		folders = dropInFolders(u.names(), u.SearchPath)
	}
	var hidden []Problem
	weaker := false
	for _, dir := range folders {
		path := filepath.Join(dir, filepath.Base(name))
		if path == name {
			weaker = true
		} else if _, err := os.Lstat(path); weaker && err == nil {
			hidden = append(hidden, Problem{File: path, What: "hidden by " + name + ", in which there is nothing"})
		}
	}
	return hidden
}

// linkedFolders lists the drop-in folders that are symbolic links, of which systemd 252 reads
// nothing; a version that has loaded something from one evidently does.
func (u *Unit) linkedFolders() []Problem {
	var passed []Problem
	folders := u.folders
	if folders == nil {
		folders = dropInFolders(u.names(), u.SearchPath)
	}
	for _, dir := range folders {
		info, err := os.Lstat(dir)
		if err != nil || info.Mode()&os.ModeSymlink == 0 || u.loadedFrom(dir) {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err == nil && slices.ContainsFunc(entries, func(entry os.DirEntry) bool { return isDropIn(entry.Name()) }) {
			passed = append(passed, Problem{File: dir, What: "not read, the folder is a symbolic link"})
		}
	}
	return passed
}

//go:build linux && amd64

package faultrun

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// CheckDurable names every change below one of the roots that a power loss after the program's end could undo
// or tear: a renamed file whose bytes were not synced before the rename, a file written in place and not
// synced afterwards, and a folder that got or lost a name and was not synced afterwards. A syncfs covers everything done before it. Files below the folders named scratch may be lost and are judged
// only when they are renamed out of them.
func CheckDurable(calls []Call, roots []string, scratch ...string) []string {
	d := &durability{dirtyFiles: map[string]string{}, dirtyDirs: map[string]string{}}
	durable := func(path string) bool {
		return path != "" && under(path, roots) && !under(path, scratch)
	}
	for _, c := range calls {
		if c.Result < 0 {
			continue
		}
		switch c.Name {
		case "write", "pwrite64", "writev", "ftruncate", "copy_file_range", "sendfile", "fchmod":
			if !c.Socket {
				d.dirtyFiles[c.Path] = c.String()
			}
		case "fsync", "fdatasync":
			delete(d.dirtyFiles, c.Path)
			delete(d.dirtyDirs, c.Path)
		case "syncfs":
			clear(d.dirtyFiles)
			clear(d.dirtyDirs)
		case "renameat", "renameat2":
			d.rename(c, durable)
		case "openat":
			// A lock file may be lost, and a temporary one has its folder judged by its rename.
			if c.New && !strings.HasSuffix(c.Path, ".lock") && !strings.HasSuffix(c.Path, ".tmp") {
				d.dirtyDirs[filepath.Dir(c.Path)] = c.String()
			}
		case "mkdirat", "symlinkat":
			d.dirtyDirs[filepath.Dir(c.Path)] = c.String()
		case "unlinkat":
			if c.Flags&unix.AT_REMOVEDIR == 0 {
				delete(d.dirtyFiles, c.Path)
				if !strings.HasSuffix(c.Path, ".tmp") {
					d.dirtyDirs[filepath.Dir(c.Path)] = c.String()
				}
			} else {
				delete(d.dirtyDirs, c.Path)
			}
		}
	}
	for path, by := range d.dirtyFiles {
		if durable(path) {
			d.problems = append(d.problems, fmt.Sprintf("%s is never synced after %s", path, by))
		}
	}
	for path, by := range d.dirtyDirs {
		if durable(path) {
			d.problems = append(d.problems, fmt.Sprintf("folder %s is never synced after %s", path, by))
		}
	}
	return d.problems
}

type durability struct {
	dirtyFiles, dirtyDirs map[string]string // path → the call that made it dirty
	problems              []string
}

func (d *durability) rename(c Call, durable func(string) bool) {
	for path, by := range d.dirtyFiles {
		if path != c.Path && !strings.HasPrefix(path, c.Path+"/") {
			continue
		}
		delete(d.dirtyFiles, path)
		moved := c.Target + strings.TrimPrefix(path, c.Path)
		if durable(moved) {
			d.problems = append(d.problems, fmt.Sprintf("%s gets its name %s before %s is synced", path, moved, by))
		}
	}
	d.dirtyDirs[filepath.Dir(c.Target)] = c.String()
	if from := filepath.Dir(c.Path); from != filepath.Dir(c.Target) {
		d.dirtyDirs[from] = c.String()
	}
}

func under(path string, folders []string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}

// WithoutSync is the run as it would have been without its n-th sync (from 0); ok is false past the last one.
// A check that stays silent about the rest of the calls would not have noticed that sync go missing.
func WithoutSync(calls []Call, n int) (rest []Call, dropped Call, ok bool) {
	for i, c := range calls {
		switch c.Name {
		case "fsync", "fdatasync", "syncfs":
			if n == 0 {
				rest = append(append(rest, calls[:i]...), calls[i+1:]...)
				return rest, c, true
			}
			n--
		}
	}
	return nil, Call{}, false
}

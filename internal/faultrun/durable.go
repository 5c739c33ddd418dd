//go:build linux && amd64

package faultrun

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// CheckDurable names every change below one of the roots that a power loss could undo or tear although the
// program has gone on: a renamed file whose bytes were not synced before the rename, a file written in place
// or a folder that got or lost a name, and that was not synced before the next change or message. A syncfs
// covers everything done before it. Files below the folders named scratch may be lost and are judged only when
// they are renamed out of them.
func CheckDurable(calls []Call, roots []string, scratch ...string) []string {
	d := &durability{dirtyFiles: map[string]string{}, dirtyDirs: map[string]string{}}
	durable := func(path string) bool {
		return path != "" && under(path, roots) && !under(path, scratch)
	}
	for _, c := range calls {
		if c.Result < 0 {
			continue
		}
		if c.Socket || under(c.Path, roots) && goesOn(c) {
			d.settle(durable)
		}
		switch c.Name {
		case "write", "pwrite64", "writev", "ftruncate", "copy_file_range", "sendfile", "fchmod":
			if !c.Socket && !isLock(c.Path) {
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
			// A temporary file has its folder judged by its rename.
			if c.New && !isLock(c.Path) && !temporary(c.Path) {
				d.dirtyDirs[filepath.Dir(c.Path)] = c.String()
			}
		case "mkdirat", "symlinkat":
			d.dirtyDirs[filepath.Dir(c.Path)] = c.String()
		case "unlinkat":
			if c.Flags&unix.AT_REMOVEDIR == 0 {
				delete(d.dirtyFiles, c.Path)
				if !temporary(c.Path) {
					d.dirtyDirs[filepath.Dir(c.Path)] = c.String()
				}
			} else {
				delete(d.dirtyDirs, c.Path)
			}
		}
	}
	d.settle(durable)
	return d.problems
}

type durability struct {
	dirtyFiles, dirtyDirs map[string]string // path → the call that made it dirty
	problems              []string
}

// settle reports what is still unsynced and forgets it. A temporary file is judged by its rename.
func (d *durability) settle(durable func(string) bool) {
	for path, by := range d.dirtyFiles {
		if durable(path) && !temporary(path) {
			d.problems = append(d.problems, fmt.Sprintf("%s is not synced after %s", path, by))
			delete(d.dirtyFiles, path)
		}
	}
	for path, by := range d.dirtyDirs {
		if durable(path) {
			d.problems = append(d.problems, fmt.Sprintf("folder %s is not synced after %s", path, by))
			delete(d.dirtyDirs, path)
		}
	}
}

// goesOn tells whether a call begins something new, which must not happen before the last change is safe. More
// bytes for the same file do not.
func goesOn(c Call) bool {
	switch c.Name {
	case "openat", "renameat", "renameat2", "mkdirat", "symlinkat", "linkat":
		return true
	}
	return false
}

// isLock tells a lock file, whose loss with the power means nothing.
func isLock(path string) bool { return strings.HasSuffix(path, ".lock") }

// temporary tells whether the path is one that atomicfile writes under before its rename.
func temporary(path string) bool { return atomicfile.IsTemp(filepath.Base(path)) }

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
	for path, by := range d.dirtyDirs {
		if path != c.Path && !strings.HasPrefix(path, c.Path+"/") {
			continue
		}
		delete(d.dirtyDirs, path)
		if moved := c.Target + strings.TrimPrefix(path, c.Path); durable(moved) {
			d.problems = append(d.problems, fmt.Sprintf("folder %s gets its name before %s is synced", moved, by))
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

package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"golang.org/x/sys/unix"
)

// workPattern matches what a build keeps beside its output while it works.
const workPattern = ".1bit-build.*.tmp"

// workFolder is a build's own folder beside its output: rewritten files and
// the trial's unpacked package. Whoever works in it holds a lock on it, which
// the kernel frees when that process dies however it may; the next build then
// removes the folder.
type workFolder struct {
	dir  string
	lock *os.File
	made []string // folders above dir that were not there before, inner first
	// rewritten holds the files that are not as in the tree; nil if none.
	rewritten *os.Root
}

// newWorkFolder makes a folder in out, which is made if it is not there, and
// removes what builds that were killed left in out.
func newWorkFolder(out string) (_ *workFolder, err error) {
	w := &workFolder{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("make work folder in %s: %w", out, errors.Join(err, w.remove()))
		}
	}()
	if out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	for dir := out; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		w.made = append(w.made, dir)
	}
	if err := atomicfile.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	sweep(out)
	for {
		dir, err := os.MkdirTemp(out, workPattern)
		if err != nil {
			return nil, err
		}
		lock, err := lockWork(dir)
		if err == nil {
			w.dir, w.lock = dir, lock
			return w, nil
		}
		if !taken(err) {
			return nil, errors.Join(err, os.Remove(dir))
		}
	}
}

// lockWork takes the lock on what is called path, if it is still that.
func lockWork(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := holdWork(f, path); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// holdWork locks an open file or folder. The error wraps fs.ErrNotExist if it
// is no longer what is called path, and EWOULDBLOCK if another holds it.
func holdWork(f *os.File, path string) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	locked, err := f.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(path)
	if err == nil && !os.SameFile(locked, now) {
		err = &fs.PathError{Op: "lock", Path: path, Err: fs.ErrNotExist}
	}
	return err
}

// taken tells whether holdWork met the sweep of another build, which was
// quicker.
func taken(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK)
}

// sweep removes what killed builds left in a folder. What cannot be removed
// stays for another time.
func sweep(out string) {
	left, err := filepath.Glob(filepath.Join(globQuote(out), workPattern))
	if err != nil {
		return
	}
	for _, path := range left {
		lock, err := lockWork(path)
		if err != nil {
			continue
		}
		_ = removeTree(path)
		_ = lock.Close()
	}
}

// globQuote makes a pattern that matches only the path itself.
func globQuote(path string) string {
	var quoted []byte
	for i := range len(path) {
		switch path[i] {
		case '*', '?', '[', '\\':
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, path[i])
	}
	return string(quoted)
}

// sub makes a folder inside.
func (w *workFolder) sub(name string) (string, error) {
	dir := filepath.Join(w.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("make work folder: %w", err)
	}
	return dir, nil
}

// remove removes the folder and those above it that were made for it and are
// empty.
func (w *workFolder) remove() error {
	var err error
	if w.rewritten != nil {
		_ = w.rewritten.Close()
	}
	if w.dir != "" {
		if err = removeTree(w.dir); err != nil {
			err = fmt.Errorf("remove work folder: %w", err)
		}
	}
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
	}
	for _, dir := range w.made {
		if os.Remove(dir) != nil {
			break // it holds the output
		}
	}
	*w = workFolder{}
	return err
}

// removeTree removes a folder that may hold read-only ones.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// The permissions of a folder say whether its entries can go.
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

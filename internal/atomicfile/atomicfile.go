// Package atomicfile makes small files durable: after a crash or a power loss at any moment a reader finds
// either the old bytes or the new ones, whole.
//
// A write goes to a temporary name in the same folder, is synced, renamed over the target, and then the folder
// is synced, since a rename is durable only with its folder. Temporary names begin with a dot and end in
// ".tmp", so that no program that reads a folder by suffix (systemd reads "*.conf") takes one for the file;
// one that a crash left behind is recognised by [IsTemp].
//
// Only regular files are replaced: a link, a device or a folder at the target is refused and left as it is.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotRegular is wrapped by every refusal to touch something that is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Write replaces the file at path by data with mode perm, or creates it.
func Write(path string, data []byte, perm fs.FileMode) (err error) {
	if err := checkTarget(path); err != nil {
		return err
	}
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+base+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if err = f.Chmod(perm); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	// From here on the new bytes are in place; an error says only that they may not outlive a power loss.
	if serr := SyncDir(dir); serr != nil {
		return fmt.Errorf("%s is written, its folder is not synced: %w", path, serr)
	}
	return nil
}

// RenameNew renames from to to within one file system and refuses to replace anything: the error then wraps
// [fs.ErrExist]. It syncs nothing.
func RenameNew(from, to string) error {
	return linkError("rename", from, to, unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE))
}

// Exchange swaps two files of one folder in one step and syncs the folder. It needs no free space.
func Exchange(a, b string) error {
	for _, p := range []string{a, b} {
		if err := mustBeRegular(p); err != nil {
			return err
		}
	}
	if err := linkError("exchange", a, b, unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(a))
}

// Move renames a regular file within one folder, replacing a regular file at the new name, and syncs the
// folder. It needs no free space.
func Move(from, to string) error {
	if err := mustBeRegular(from); err != nil {
		return err
	}
	if err := checkTarget(to); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// Remove removes a regular file and syncs its folder. A missing one is an error that wraps [fs.ErrNotExist].
func Remove(path string) error {
	if err := mustBeRegular(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// RemoveThese removes the regular files of one folder that are there, and syncs the folder once.
func RemoveThese(dir string, names ...string) error {
	var errs []error
	removed := false
	for _, name := range names {
		path := filepath.Join(dir, name)
		err := mustBeRegular(path)
		if err == nil {
			err = os.Remove(path)
		}
		if err == nil {
			removed = true
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if removed {
		errs = append(errs, SyncDir(dir))
	}
	return errors.Join(errs...)
}

// Append adds one record to the file at path and syncs it. A newline is added where record lacks one. A record
// is only what ends in a newline: where a crash left a torn last line, a newline closes it first, so that the
// torn bytes stay apart from the new record and a reader can drop them.
func Append(path string, record []byte, perm fs.FileMode) (err error) {
	if err := checkTarget(path); err != nil {
		return err
	}
	_, statErr := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	out := append(bytes.TrimRight(record, "\n"), '\n')
	if size := info.Size(); size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			out = append([]byte{'\n'}, out...)
		}
	}
	_, err = f.Write(out)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		// It counts as not written, so no reader should find it.
		_ = f.Truncate(info.Size())
		return err
	}
	if errors.Is(statErr, fs.ErrNotExist) {
		return SyncDir(filepath.Dir(path))
	}
	return nil
}

// MkdirAll makes the folder and those above it that are missing, and syncs every folder that got a new entry,
// so that what is later synced inside cannot be lost with its folder.
func MkdirAll(path string, perm fs.FileMode) error {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: unix.ENOTDIR}
		}
		return nil
	}
	parent := filepath.Dir(path)
	if err := MkdirAll(parent, perm); err != nil {
		return err
	}
	if err := os.Mkdir(path, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the entries of a folder durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// IsTemp tells whether name (a base name) is one that a crashed [Write] can leave behind.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".tmp")
}

// checkTarget accepts a regular file and a name that is free.
func checkTarget(path string) error {
	err := mustBeRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func mustBeRegular(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &fs.PathError{Op: "replace", Path: path, Err: fmt.Errorf("%w but %s", ErrNotRegular, info.Mode().Type())}
	}
	return nil
}

func linkError(op, from, to string, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: from, New: to, Err: err}
}

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// foreignAge is how old a work folder of another account has to be until it counts as left over: whether somebody is at
// work in it cannot be told.
const foreignAge = 24 * time.Hour

// Leftovers are the folders in staging that nobody works in any more and that this account cannot sweep: those of
// another account, as of a sudo that was cut off. An error says that staging cannot be looked at.
func (s *Store) Leftovers(now time.Time) ([]string, error) {
	parent, err := openDir(s.staging())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look for what installs have left: %w", err)
	}
	defer parent.Close()
	if unix.Flock(int(parent.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil, nil // somebody makes or sweeps work right now
	}
	names, err := parent.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("look for what installs have left: %w", err)
	}
	var left []string
	for _, name := range names {
		path := filepath.Join(s.staging(), name)
		if idle(path, now) {
			left = append(left, path)
		}
	}
	return left, nil
}

// idle tells whether nobody works in a folder. The lock on staging, which makers share, is held.
func idle(path string, now time.Time) bool {
	dir, err := openDir(path)
	if err != nil {
		info, err := os.Lstat(path)
		return err == nil && now.Sub(info.ModTime()) > foreignAge
	}
	defer dir.Close()
	return unix.Flock(int(dir.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}

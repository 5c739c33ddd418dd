package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// stores are this store and those that it also sees, its own first.
func (s *Store) stores() []*Store { return append([]*Store{s}, s.Also...) }

// home is the store that a package lies in, nil for a package of no store
// that is seen.
func (s *Store) home(p *Package) *Store {
	for _, one := range s.stores() {
		if filepath.Dir(p.Path) == one.Dir {
			return one
		}
	}
	return nil
}

// mine says why a package is not this store's to remove.
func (s *Store) mine(p *Package) error {
	switch {
	case s.home(p) != s:
		return fmt.Errorf("%w: it lies in %s: root removes it with --scope system", ErrRefused, filepath.Dir(p.Path))
	case p.native != nil:
		return fmt.Errorf("%w: it was installed by %s: %s", ErrRefused, p.native.program, p.native.removal)
	}
	return nil
}

// byName sorts packages by name, and those of one name by their places in
// the order of stores.
func byName(list []*Package) {
	slices.SortStableFunc(list, func(a, b *Package) int { return cmp.Compare(a.Name, b.Name) })
}

// lockHomes takes a shared lock on the folders of the other stores that are
// seen, whose state, with their own locks, this account may not read. A
// removal there holds its folder alone. Anybody else's lock keeps nobody from
// a switch or a rollback.
func (s *Store) lockHomes() (unlock func(), err error) {
	var held []*os.File
	unlock = func() {
		for _, d := range held {
			_ = d.Close()
		}
	}
	for _, one := range s.Also {
		d, err := os.Open(one.Dir)
		if err != nil {
			continue // nothing in it can be used either
		}
		held = append(held, d)
		if err := flockDir(d, unix.LOCK_SH); err != nil {
			if errors.Is(err, ErrBusy) && heldByStranger(d, s.Proc) {
				continue
			}
			unlock()
			return nil, err
		}
	}
	return unlock, nil
}

// lockHome takes this store's folder alone.
func (s *Store) lockHome() (unlock func(), err error) {
	d, err := os.Open(s.Dir)
	if err != nil {
		return func() {}, nil // the removal itself says so
	}
	if err := flockDir(d, unix.LOCK_EX); err != nil {
		_ = d.Close()
		return nil, err
	}
	return func() { _ = d.Close() }, nil
}

func flockDir(d *os.File, how int) error {
	for {
		switch err := unix.Flock(int(d.Fd()), how|unix.LOCK_NB); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return fmt.Errorf("%w: another process works in %s", ErrBusy, d.Name())
		default:
			return &fs.PathError{Op: "lock", Path: d.Name(), Err: err}
		}
	}
}

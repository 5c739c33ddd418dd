package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// Remove deletes a package, an imported one too, if nothing needs it: neither
// inUse, which may be nil, nor any process that is seen to refer to its
// directory gives a reason. Otherwise the error wraps [ErrInUse] and lists
// them. While somebody holds the store it wraps [ErrBusy]; for a package of
// another store or of a package manager, and for an account that could not
// tell who uses it, [ErrRefused].
//
// The package goes in one step, into staging; if deleting it there is cut
// short, the next command goes on.
func (s *Store) Remove(ctx context.Context, p *Package, inUse func(context.Context, *Package) ([]string, error)) error {
	if err := s.remove(ctx, p, inUse); err != nil {
		return fmt.Errorf("remove %s: %w", p.Name, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, p *Package, inUse func(context.Context, *Package) ([]string, error)) (err error) {
	if err := s.mine(p); err != nil {
		return err
	}
	if err := s.mayRemove(); err != nil {
		return err
	}
	s.sweep(ctx)
	unlock, err := s.lockAlone(ctx, "remove "+p.Name)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := s.load(p.Manifest.DirName())
	if err != nil || now.Digest != p.Digest {
		return fmt.Errorf("%w any more as it was: list the packages again", ErrNotInstalled)
	}
	if err := s.mine(now); err != nil {
		return err
	}
	needed, err := s.needed(ctx, func(p *Package) ([]string, error) {
		if inUse == nil {
			return nil, nil
		}
		return inUse(ctx, p)
	})
	if err != nil {
		return err
	}
	reasons, err := needed(now)
	if err != nil {
		return err
	}
	if len(reasons) > 0 {
		return fmt.Errorf("%w: %s", ErrInUse, strings.Join(reasons, "; "))
	}
	return s.take(ctx, now)
}

// mayRemove says why this account cannot tell whether a package is used.
func (s *Store) mayRemove() error {
	if s.Shared && os.Geteuid() != 0 {
		return fmt.Errorf("%w: every account may use the packages in %s, and only root sees all processes: run it as root", ErrRefused, s.Dir)
	}
	return nil
}

// needed gives the question why a package must not go, asked of inUse and of
// the processes as they are now. The caller holds the store alone.
func (s *Store) needed(ctx context.Context, inUse func(*Package) ([]string, error)) (func(*Package) ([]string, error), error) {
	processes, err := s.readProcesses(ctx)
	if err != nil {
		return nil, err
	}
	return func(p *Package) ([]string, error) {
		reasons, err := inUse(p)
		if err != nil {
			return nil, fmt.Errorf("find out who uses it: %w", err)
		}
		return append(reasons, processes.of(p)...), nil
	}, nil
}

// take removes a package that nothing needs. The caller holds the store alone.
func (s *Store) take(ctx context.Context, p *Package) (err error) {
	w, err := s.newWork(ctx, kindRemove)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.close(); cerr != nil && err == nil {
			err = fmt.Errorf("it is gone, but what is left in %s could not be deleted: %w", s.staging(), cerr)
		}
	}()
	return s.discard(p, w)
}

// discard moves the package into staging and forgets it.
func (s *Store) discard(p *Package, w *work) error {
	info, err := os.Lstat(p.Path)
	if err != nil {
		return err
	}
	// A user cannot move a read-only folder into another one.
	if err := os.Chmod(p.Path, info.Mode().Perm()|0o700); err != nil {
		return err
	}
	trash := filepath.Join(w.path, filepath.Base(p.Path))
	if err := atomicfile.RenameNew(p.Path, trash); err != nil {
		return errors.Join(err, os.Chmod(p.Path, info.Mode().Perm()))
	}
	err = errors.Join(atomicfile.SyncDir(s.Dir), atomicfile.SyncDir(w.path))
	if p.Imported {
		if rerr := atomicfile.Remove(s.record(filepath.Base(p.Path))); !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}

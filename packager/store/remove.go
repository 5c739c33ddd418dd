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
// them. While somebody holds the store it wraps [ErrBusy].
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
	s.sweep(ctx)
	unlock, err := s.lockAlone(ctx, "remove "+p.Name)
	if err != nil {
		return err
	}
	defer unlock()
	base := p.Manifest.DirName()
	now, err := s.load(base)
	if err != nil || now.Digest != p.Digest {
		return fmt.Errorf("%w any more as it was: list the packages again", ErrNotInstalled)
	}
	if err := s.mine(now); err != nil {
		return err
	}
	if err := s.checkUse(ctx, now, inUse); err != nil {
		return err
	}
	w, err := s.newWork(ctx, kindRemove)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.close(); cerr != nil && err == nil {
			err = fmt.Errorf("it is gone, but what is left in %s could not be deleted: %w", s.staging(), cerr)
		}
	}()
	return s.discard(now, w)
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

func (s *Store) checkUse(ctx context.Context, p *Package, inUse func(context.Context, *Package) ([]string, error)) error {
	var reasons []string
	if inUse != nil {
		var err error
		if reasons, err = inUse(ctx, p); err != nil {
			return fmt.Errorf("find out who uses it: %w", err)
		}
	}
	users, err := s.processes(ctx, p)
	if err != nil {
		return err
	}
	reasons = append(reasons, users...)
	if len(reasons) > 0 {
		return fmt.Errorf("%w: %s", ErrInUse, strings.Join(reasons, "; "))
	}
	return nil
}

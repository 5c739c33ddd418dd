package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager"
	"golang.org/x/sys/unix"
)

// Install puts an archive's package into the store. If the same package is
// there already, it says so and changes nothing. progress may be nil; it is
// told the bytes of content unpacked and their total.
//
// A damaged or hostile archive wraps packager.ErrIntegrity, and so does one
// over Limits, which is a [*packager.LimitError], and a package that is there
// but broken; a name that is taken wraps
// [ErrDifferent]; too little space wraps syscall.ENOSPC. After an error the
// package is not installed and staging is empty, with one exception: when the
// folder cannot be synced after the rename, the error says that the package
// is there.
func (s *Store) Install(ctx context.Context, archive string, progress func(done, total int64)) (*Package, bool, error) {
	p, already, err := s.install(ctx, archive, progress)
	if err != nil {
		return nil, false, fmt.Errorf("install %s: %w", archive, err)
	}
	return p, already, nil
}

func (s *Store) install(ctx context.Context, archive string, progress func(done, total int64)) (_ *Package, already bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	s.sweep(ctx)
	f, err := packager.OpenArchive(archive)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	r, err := packager.NewReader(f, s.Limits)
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	m := r.Manifest()
	if p, err := s.present(ctx, m); p != nil || err != nil {
		return p, p != nil, err
	}
	w, err := s.newWork(ctx, kindInstall)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if cerr := w.close(); cerr != nil && err != nil {
			err = fmt.Errorf("%w (staging could not be emptied, the next command tries again: %w)", err, cerr)
		}
	}()
	c := s.newCloner(ctx, m)
	if err := s.checkSpace(m, c); err != nil {
		return nil, false, err
	}
	staged := filepath.Join(w.path, m.DirName())
	if err := extract(ctx, r, staged, c, progress); err != nil {
		return nil, false, err
	}
	p, already, err := s.commit(ctx, w, m, staged)
	return p, already, err
}

// extract fills a new folder with the package.
func extract(ctx context.Context, r *packager.Reader, staged string, c *cloner, progress func(done, total int64)) error {
	if err := os.Mkdir(staged, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(staged)
	if err != nil {
		return err
	}
	defer root.Close()
	opts := packager.ExtractOptions{Progress: progress}
	if c != nil {
		opts.Clone = c.clone
	}
	if err := r.Extract(ctx, root, opts); err != nil {
		return err
	}
	// Writable as long as it has to be renamed: a user cannot move a
	// read-only folder into another one.
	if err := root.Chmod(".", 0o755); err != nil {
		return err
	}
	return ctx.Err()
}

// present looks for the package under its name. It returns nil and no error
// if the name is free.
func (s *Store) present(ctx context.Context, m *packager.Manifest) (*Package, error) {
	path := filepath.Join(s.Dir, m.DirName())
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	// What a removal does between its look and its rename is not to be seen.
	unlock, err := s.lockPatiently(ctx)
	switch {
	case err == nil:
		defer unlock()
	case !notOurs(err):
		return nil, err
	}
	return s.presentLocked(m)
}

// presentLocked is present for a holder of the store's lock.
func (s *Store) presentLocked(m *packager.Manifest) (*Package, error) {
	path := filepath.Join(s.Dir, m.DirName())
	digest, err := m.Digest()
	if err != nil {
		return nil, err
	}
	p, err := s.load(m.DirName())
	if err != nil {
		if _, serr := os.Lstat(path); errors.Is(serr, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: %s is no package (%w): move it away, or import it if it is one of the old script's", ErrDifferent, path, err)
	}
	switch {
	case p.Digest != digest:
		return nil, fmt.Errorf("%w: %s has digest %s, the archive %s: give the new one another id", ErrDifferent, p.Name, p.Digest, digest)
	case p.State == StateBroken:
		return nil, fmt.Errorf("%s is installed but broken (%s): remove it, then install it again: %w", p.Name, p.Detail, packager.ErrIntegrity)
	}
	if p.native != nil {
		return p, nil
	}
	// A process that died before its last sync may have left these to do.
	if err := errors.Join(seal(path), atomicfile.SyncDir(s.Dir)); err != nil && !notOurs(err) {
		return nil, err
	}
	p.State, p.Detail = look(p)
	return p, nil
}

// notOurs tells that a store is another account's or read-only: its packages
// are what they are.
func notOurs(err error) bool { return errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) }

// commit makes the package appear under its name. The lock is held until it is
// sealed: a removal must not find the folder's mode changing under it.
func (s *Store) commit(ctx context.Context, w *work, m *packager.Manifest, staged string) (*Package, bool, error) {
	unlock, err := s.lockPatiently(ctx)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	final := filepath.Join(s.Dir, m.DirName())
	err = atomicfile.RenameNew(staged, final)
	if errors.Is(err, fs.ErrExist) {
		// Somebody was faster.
		p, err := s.presentLocked(m)
		if p == nil && err == nil {
			err = fmt.Errorf("%w: %s came and went meanwhile: try again", ErrDifferent, final)
		}
		return p, p != nil, err
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return nil, false, fmt.Errorf("the file system of %s cannot rename without replacing: use another data home: %w", s.Dir, err)
	}
	if err != nil {
		return nil, false, err
	}
	err = errors.Join(seal(final), atomicfile.SyncDir(s.Dir), atomicfile.SyncDir(w.path))
	if err != nil {
		return nil, false, fmt.Errorf("%s is installed, but may be gone after a power loss: install it again: %w", m.Name(), err)
	}
	p := &Package{Manifest: m, Path: final}
	raw, info, err := readSmall(filepath.Join(final, packager.ManifestName))
	if err == nil {
		err = s.describe(p, raw, info)
	}
	if err != nil {
		return nil, false, err
	}
	p.State = StateOK // every byte of it was compared just now
	return p, false, nil
}

// checkSpace compares what the package needs with what the file system has:
// blocks and inodes. It is a courtesy; running out later is handled too.
func (s *Store) checkSpace(m *packager.Manifest, c *cloner) error {
	var st unix.Statfs_t
	if err := unix.Statfs(s.Dir, &st); err != nil {
		return &fs.PathError{Op: "statfs", Path: s.Dir, Err: err}
	}
	block := max(int64(st.Bsize), 512)
	// The package's own folder, its manifest and a little for the journal.
	need := int64(1 << 20)
	for i := range m.Files {
		if c.has(&m.Files[i]) {
			continue // if its blocks cannot be shared after all, that is found out in time
		}
		need += (m.Files[i].Size + block - 1) / block * block
		if m.Files[i].Type == packager.TypeDir {
			need += block
		}
	}
	free := int64(min(st.Bavail, uint64(1<<62)/uint64(block))) * block
	if need > free {
		return fmt.Errorf("%s needs %d MiB, %s has %d MiB free: make room: %w", m.Name(), need>>20, s.Dir, free>>20, unix.ENOSPC)
	}
	// A file system without a fixed number of inodes says it has none.
	if inodes := uint64(len(m.Files) + 3); st.Files > 0 && inodes > st.Ffree {
		return fmt.Errorf("%s needs %d inodes, %s has %d free: make room: %w", m.Name(), inodes, s.Dir, st.Ffree, unix.ENOSPC)
	}
	return nil
}

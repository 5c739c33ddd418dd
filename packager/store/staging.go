package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager"
	"golang.org/x/sys/unix"
)

const stagingName = ".1bit-staging"

// Kinds of work, which begin the names of work folders.
const (
	kindInstall = "install"
	kindRemove  = "remove"
)

func (s *Store) staging() string { return filepath.Join(s.Dir, stagingName) }

// work is a folder in staging that belongs to this process as long as its
// lock is held.
type work struct {
	path string
	lock *os.File
}

// newWork makes a work folder. The lock on staging itself, shared by makers,
// keeps a sweep from seeing a folder that is made but not locked yet.
func (s *Store) newWork(ctx context.Context, kind string) (*work, error) {
	w, err := s.makeWork(ctx, kind)
	if err != nil {
		if notOurs(err) {
			err = fmt.Errorf("%w (this account cannot write to the data home %s: use the account that owns it, or another data home)", err, s.Dir)
		}
		return nil, fmt.Errorf("make staging folder: %w", err)
	}
	return w, nil
}

func (s *Store) makeWork(ctx context.Context, kind string) (*work, error) {
	if err := atomicfile.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, err
	}
	if _, err := os.Stat(s.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the data home %s is a link to nothing: make the folder that it points to", s.Dir)
	}
	if err := os.Mkdir(s.staging(), 0o700); err == nil {
		if err := atomicfile.SyncDir(s.Dir); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	parent, err := openDir(s.staging())
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	for {
		err := unix.Flock(int(parent.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, &fs.PathError{Op: "lock", Path: s.staging(), Err: err}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPoll):
		}
	}
	path, err := os.MkdirTemp(s.staging(), kind+"-*")
	if err != nil {
		return nil, err
	}
	lock, err := openDir(path)
	if err == nil {
		if err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			lock.Close()
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return &work{path: path, lock: lock}, nil
}

// openDir opens a real folder, never through a link.
func openDir(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// close deletes the folder with all that is in it and gives up the lock.
func (w *work) close() error {
	err := removeAll(w.path)
	return errors.Join(err, w.lock.Close())
}

// removeAll deletes a tree whose folders may be read-only. It goes through no
// link.
func removeAll(path string) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer root.Close()
	base := filepath.Base(path)
	err = fs.WalkDir(root.FS(), base, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return root.Chmod(name, 0o700)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, root.RemoveAll(base))
}

// sweep deletes the work folders of dead processes and makes installed
// packages read-only where a process died just before it did. It is the
// duty of every command and nobody's failure: what it may not touch, such as
// another account's store, it leaves alone.
func (s *Store) sweep(ctx context.Context) {
	parent, err := openDir(s.staging())
	if err != nil {
		return
	}
	defer parent.Close()
	if unix.Flock(int(parent.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	names, err := parent.Readdirnames(-1)
	if err != nil {
		return
	}
	var dead []*work
	for _, name := range names {
		path := filepath.Join(s.staging(), name)
		lock, err := openDir(path)
		if err != nil {
			// Nothing of ours is a file here.
			_ = os.Remove(path)
			continue
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			lock.Close()
			continue
		}
		dead = append(dead, &work{path: path, lock: lock})
	}
	// New work may begin while the dead is buried.
	_ = unix.Flock(int(parent.Fd()), unix.LOCK_UN)
	for _, w := range dead {
		if ctx.Err() == nil {
			s.forgetRemoved(w.path)
			_ = w.close()
		} else {
			_ = w.lock.Close()
		}
	}
	s.sealAll(ctx)
}

// forgetRemoved finishes the removal of an imported package, whose record is
// deleted after its directory has gone to staging.
func (s *Store) forgetRemoved(path string) {
	if !strings.HasPrefix(filepath.Base(path), kindRemove+"-") {
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(s.Dir, e.Name())); errors.Is(err, fs.ErrNotExist) {
			_ = atomicfile.Remove(s.record(e.Name()))
		}
	}
}

// sealAll makes the folders of installed packages read-only.
func (s *Store) sealAll(ctx context.Context) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), packager.DirPrefix) {
			continue
		}
		info, err := e.Info()
		if err != nil || info.Mode().Perm() == topMode {
			continue
		}
		p, err := s.load(e.Name())
		if err != nil || p.Imported || p.native != nil {
			continue
		}
		// A removal, which needs the folder writable, holds the lock alone.
		unlock, err := s.lock(context.WithoutCancel(ctx), false, "shared")
		if err != nil {
			return
		}
		_ = seal(p.Path)
		unlock()
	}
}

// seal makes a package's folder read-only and syncs that.
func seal(path string) error {
	d, err := openDir(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Chmod(topMode); err != nil {
		return err
	}
	return d.Sync()
}

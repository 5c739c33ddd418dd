package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// A held lock is tried again after lockPoll, and then ever more seldom, up to lockPollMost: many that wait must not
// keep the one that works from its work.
const (
	lockPoll     = 10 * time.Millisecond
	lockPollMost = 80 * time.Millisecond
)

// dirLock is an exclusive flock on a folder. The kernel frees it when the process ends, however it ends.
type dirLock struct {
	dir  *os.File
	path string
}

// lockDir waits for the lock of a folder until ctx ends. After the wait it checks that the path is still the
// folder it locked, since whoever held the lock may have removed it. The folder must not be a link.
func lockDir(ctx context.Context, path string) (*dirLock, error) {
	for wait := lockPoll; ; wait = min(2*wait, lockPollMost) {
		lock, held, err := tryLockDir(path)
		if err != nil || lock != nil {
			return lock, err
		}
		if !held {
			continue // replaced meanwhile
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// tryLockDir takes the lock at once or returns nil; held then tells whether somebody else has it.
func tryLockDir(path string) (lock *dirLock, held bool, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	for {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = f.Close()
		return nil, true, nil
	}
	if err != nil {
		_ = f.Close()
		return nil, false, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	var mine, there unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &mine), unix.Lstat(path, &there)); err != nil && !errors.Is(err, unix.ENOENT) {
		_ = f.Close()
		return nil, false, &fs.PathError{Op: "stat", Path: path, Err: err}
	} else if err != nil || mine.Ino != there.Ino || mine.Dev != there.Dev {
		_ = f.Close()
		return nil, false, nil
	}
	return &dirLock{f, path}, false, nil
}

func (l *dirLock) release() { _ = l.dir.Close() }

func (h *Host) lockWait() time.Duration {
	if h.LockWait <= 0 {
		return time.Minute
	}
	return h.LockWait
}

// lockUnit takes the lock of a unit: the one in the state folder, where there is one, and that of the unit's drop-in
// folder, which it makes where it is missing. done releases both and removes a folder that is empty again. It waits up
// to h.LockWait; the error then wraps [ErrBusy]. note says what a stranger does to the folder.
func (h *Host) lockUnit(ctx context.Context, unit string) (done func(), note string, err error) {
	busy := fmt.Errorf("%w: another switch, restart or rollback of %s is under way", ErrBusy, unit)
	ctx, cancel := context.WithTimeoutCause(ctx, h.lockWait(), busy)
	defer cancel()
	var own *dirLock
	if path, err := stateLock(h.StateDir, unit); err != nil {
		h.log().Info("without the lock in the state folder", "unit", unit, "error", err) // a rollback needs no state folder
	} else {
		h.tellHolder(path, unit)
		if own, err = lockDir(ctx, path); err != nil {
			return nil, "", fmt.Errorf("lock %s: %w", unit, h.namingHolder(err, path))
		}
	}
	done, note, err = h.lockDropIns(ctx, unit, own)
	if err != nil && own != nil {
		own.release()
	}
	return done, note, err
}

// lockDropIns locks a unit's drop-in folder; own is the lock in the state folder, which is released with it.
func (h *Host) lockDropIns(ctx context.Context, unit string, own *dirLock) (done func(), note string, err error) {
	dir, made := h.dropInDir(unit), false
	for {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
				return nil, "", fmt.Errorf("make the drop-in folder of %s: %w", unit, unwritable(h.UnitDir, err))
			}
			made = true
		case err != nil:
			return nil, "", fmt.Errorf("look at the drop-in folder of %s: %w", unit, err)
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, "", fmt.Errorf("%w: %s is a link, which systemd may not follow and this program does not write through", ErrRefused, dir)
		}
		h.tellHolder(dir, unit)
		lock, stranger, err := h.lockFolder(ctx, dir, own != nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue // whoever held it has removed it
		}
		if err != nil {
			return nil, "", fmt.Errorf("lock the drop-in folder of %s: %w", unit, h.namingHolder(err, dir))
		}
		if stranger != "" {
			note = fmt.Sprintf("the folder %s is locked by %s, which has no business there: it was not waited for", dir, stranger)
		}
		return func() {
			// Only a folder that this program may have made is removed, and only while the lock is held; rmdir
			// refuses one that holds anything.
			if made && os.Remove(dir) == nil {
				_ = atomicfile.SyncDir(filepath.Dir(dir))
			}
			for _, l := range []*dirLock{lock, own} {
				if l != nil {
					l.release()
				}
			}
		}, note, nil
	}
}

// tellHolder says who has a lock that is about to be waited for.
func (h *Host) tellHolder(path, unit string) {
	if lock, held, err := tryLockDir(path); lock != nil {
		lock.release()
	} else if held && err == nil {
		h.progress("waiting for %s, which works on %s", or(holder(h.proc(), path), "another command"), unit)
	}
}

// namingHolder adds to the error of a wait that was too long who has the lock.
func (h *Host) namingHolder(err error, path string) error {
	if who := holder(h.proc(), path); who != "" && errors.Is(err, ErrBusy) {
		return fmt.Errorf("%w: %s holds it", err, who)
	}
	return err
}

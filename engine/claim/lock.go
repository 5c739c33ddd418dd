package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/procfs"
)

// DefaultPath is the lock of a host that names no other: one for all its users, whatever their environment, and gone
// with the boot that it belongs to.
const DefaultPath = "/run/lock/1bit-gpu.lock"

// Lock is a file that is taken with flock(2), and what tells who holds it.
type Lock struct {
	Path string
	Proc string // "": /proc

	flock func(fd, how int) error // in tests: a file system that cannot lock
}

// ErrLock is wrapped where a lock cannot be taken by anybody, or not by this user: what was to be run is not.
var ErrLock = errors.New("the claim lock cannot be used")

// errHeld: somebody has it.
var errHeld = errors.New("it is held")

func (l Lock) proc() string { return cmp.Or(l.Proc, "/proc") }

// Usable tells why the lock cannot be taken by this user, nil if it can. It takes nothing, and makes nothing where the
// file is not there yet.
func (l Lock) Usable() error {
	f, _, err := l.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		dir := filepath.Dir(l.Path)
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return l.unusable(fmt.Errorf("it is not there, and the folder: %w", err))
		}
		return nil
	}
	if err == nil {
		f.Close()
	}
	return err
}

// open opens the lock file, for writing if we may. It is made only if it is not there: to open the file of another
// account for creation in a folder that all may write in is refused by the kernel (fs.protected_regular).
func (l Lock) open(create bool) (f *os.File, writable bool, err error) {
	// A link could make us write into a file of ours that another account chose. A pipe would block.
	const flags = unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY
	for range 100 {
		fd, err := unix.Open(l.Path, unix.O_RDWR|flags, 0)
		writable = err == nil
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
			fd, err = unix.Open(l.Path, unix.O_RDONLY|flags, 0)
		}
		if errors.Is(err, unix.ENOENT) && create {
			fd, err = unix.Open(l.Path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|flags, 0o666)
			if errors.Is(err, unix.EEXIST) {
				continue // made by another at this moment
			}
			if err == nil {
				writable, err = true, unix.Fchmod(fd, 0o666) // for every user of the host, whatever our mask
			}
		}
		if err != nil {
			return nil, false, l.unusable(err)
		}
		f = os.NewFile(uintptr(fd), l.Path)
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			f.Close()
			return nil, false, l.unusable(cmp.Or(err, errors.New("it is no regular file")))
		}
		return f, writable, nil
	}
	return nil, false, l.unusable(errors.New("it is made and removed all the time"))
}

// unusable says what to do about a lock that does not work.
func (l Lock) unusable(err error) error {
	remedy := "name one that every user of this host may open with the key claim_lock"
	switch {
	case errors.Is(err, unix.ELOOP):
		err, remedy = errors.New("it is a symbolic link"), "name the file itself with the key claim_lock"
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		err, remedy = fmt.Errorf("locking does not work on its file system: %w", err), "name a file on a local disk with the key claim_lock"
	case errors.Is(err, unix.EBADF):
		err, remedy = fmt.Errorf("its file system locks only what may be written: %w", err), "make the file writable for every user of the GPU"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		remedy = fmt.Sprintf("make it as root, once and for every boot: echo 'f %s 0666' >/etc/tmpfiles.d/1bit-gpu.conf; systemd-tmpfiles --create; or %s", l.Path, remedy)
	}
	return fmt.Errorf("%w: %s: %w: %s", ErrLock, l.Path, err, remedy)
}

// lock is flock(2), which a signal does not end.
func (l Lock) lock(f *os.File, how int) error {
	call := l.flock
	if call == nil {
		call = unix.Flock
	}
	for {
		if err := call(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// take takes the lock: at once or not at all (errHeld), or in the kernel's queue, beside the flock(1) of others.
func (l Lock) take(ctx context.Context, wait bool) (*hold, error) {
	for range 100 {
		f, writable, err := l.open(true)
		if err != nil {
			return nil, err
		}
		err = l.lock(f, unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) && wait {
			if err = l.await(ctx, f); err != nil && ctx.Err() != nil {
				return nil, context.Cause(ctx) // the file is closed when it can be
			}
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errHeld
		} else if err != nil && !errors.Is(err, unix.ESTALE) {
			err = l.unusable(err)
		}
		if err == nil && l.is(f) {
			return &hold{lock: l, file: f, writable: writable}, nil
		}
		f.Close()
		if err != nil && !errors.Is(err, unix.ESTALE) {
			return nil, err
		}
		if ctx.Err() != nil { // else: whoever held it removed it, which is no reason to share the new one
			return nil, context.Cause(ctx)
		}
	}
	return nil, l.unusable(errors.New("it is made and removed all the time"))
}

// await waits for a lock. Nothing takes a thread out of flock(2): where ctx ends first, it waits on until the lock is
// let go or the program ends, and lets it go again at once.
func (l Lock) await(ctx context.Context, f *os.File) error {
	got := make(chan error)
	go func() {
		err := l.lock(f, unix.LOCK_EX)
		select {
		case got <- err:
		case <-ctx.Done():
			f.Close()
		}
	}()
	select {
	case err := <-got:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// is tells whether a file is what the lock's name still stands for.
func (l Lock) is(f *os.File) bool {
	info, err := f.Stat()
	there, err2 := os.Lstat(l.Path)
	return err == nil && err2 == nil && os.SameFile(info, there)
}

// bootID names one boot of the host.
func (l Lock) bootID() string {
	return procfs.FirstLine(filepath.Join(l.proc(), "sys/kernel/random/boot_id"))
}

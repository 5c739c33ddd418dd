package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Whoever may open a folder for reading can lock it, and the drop-in folders of the machine may be read by everybody.
// So what decides is a folder in the state folder that only its owner can open. It is never removed. The lock on the
// drop-in folder is taken too, for commands with another state folder, but not waited for where a stranger has it.

// locksName is the folder of these locks below the state folder.
const locksName = "locks"

// stateLock makes a lock in a state folder where it is missing, and gives its path. It does not make the state folder.
func stateLock(stateDir, name string) (path string, err error) {
	if !filepath.IsAbs(stateDir) {
		return "", fmt.Errorf("%q is no state folder", stateDir)
	}
	dir := filepath.Join(stateDir, locksName)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	path = filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, nil
}

// tryLockUnit takes the lock of a unit at once and makes nothing; nil: somebody else has it.
func (h *Host) tryLockUnit(unit string) (done func(), err error) {
	own, held, err := tryLockDir(filepath.Join(h.StateDir, locksName, unit))
	if held {
		return nil, nil
	}
	free := func() {
		if own != nil {
			own.release()
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	lock, _, err := tryLockDir(h.dropInDir(unit))
	if lock == nil {
		free()
		return nil, err
	}
	return func() { lock.release(); free() }, nil
}

// strangerPolls is every how many polls of a held folder it is looked up who holds it.
const strangerPolls = 20

// lockFolder waits for the lock of a unit's drop-in folder. ours tells that the lock in the state folder is held. lock
// is nil where a stranger has it, and stranger says who.
func (h *Host) lockFolder(ctx context.Context, dir string, ours bool) (lock *dirLock, stranger string, err error) {
	for i := 0; ; i++ {
		lock, held, err := tryLockDir(dir)
		if err != nil || lock != nil {
			return lock, "", err
		}
		if held && i%strangerPolls == 0 {
			if pid := holderOf(h.proc(), dir); h.stranger(pid, dir) {
				return nil, words(h.proc(), pid), nil
			}
		}
		err = pause(ctx, lockPoll)
		switch {
		case err == nil:
		case ours && errors.Is(err, ErrBusy) && holderOf(h.proc(), dir) == 0: // no command of ours hides
			return nil, "a process that the kernel does not name", nil
		default:
			return nil, "", err
		}
	}
}

// stranger tells whether a process belongs to an account that has no business with a folder: neither root's, nor this
// one, nor the folder's owner. Its real account counts: a program such as su runs as root for anybody.
func (h *Host) stranger(pid int, dir string) bool {
	if pid <= 0 {
		return false
	}
	status, err := os.ReadFile(filepath.Join(h.proc(), strconv.Itoa(pid), "status"))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(status), "\nUid:\t")
	real, _, _ := strings.Cut(rest, "\t")
	uid, err := strconv.Atoi(real)
	var st unix.Stat_t
	if !ok || err != nil || unix.Stat(dir, &st) != nil {
		return false
	}
	return uid != 0 && uid != os.Getuid() && uid != int(st.Uid)
}

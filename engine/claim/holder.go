package claim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/secret"
)

// Holder tells who holds the lock. What stands in the file counts only if who wrote it lives and is the one that the
// kernel names; of a holder that does not use this program the kernel tells the process. held without a record:
// nobody tells who. The look may take a lock that seems free for a moment, as a reader: flock -n may then be refused.
func (l Lock) Holder() (holder *Record, held bool, err error) {
	ours, others, err := l.text()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	pids := l.holders()
	if len(pids) == 0 {
		if free, err := l.free(l.Path); free || err != nil {
			return nil, false, err
		}
		pids = l.openers()
	}
	if ours == nil || !l.stands(*ours) || !fits(pids, ours.PID) {
		ours = nil
		for _, t := range l.tickets(holderSuffix) { // its holder may not write into the lock
			if fits(pids, t.PID) {
				ours = &t.line
			}
		}
	}
	switch {
	case ours != nil:
		return &ours.Record, true, nil
	case len(pids) > 0:
		r := l.process(pids[0])
		r.Text = others
		return &r, true, nil
	case others != "":
		return &Record{Text: others}, true, nil
	}
	return nil, true, nil
}

// fits: the host names the process as one that has the lock, or names none.
func fits(pids []int, pid int) bool { return len(pids) == 0 || slices.Contains(pids, pid) }

// free tells whether nobody holds a file's lock.
func (l Lock) free(path string) (bool, error) {
	f, err := openQuietly(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist), nil
	}
	defer f.Close()
	err = l.lock(f, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, l.unusable(err)
	}
	return true, nil
}

// openQuietly opens a file of another account: a link is not followed, a pipe does not block.
func openQuietly(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// process is what the host tells of a holder that does not use this program.
func (l Lock) process(pid int) Record {
	r := Record{PID: pid}
	dir := filepath.Join(l.proc(), strconv.Itoa(pid))
	if info, err := os.Stat(dir); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			r.User = userName(int(owner.Uid))
		}
	}
	text, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	r.Command = command(strings.Split(strings.TrimRight(string(text), "\x00"), "\x00"))
	return r
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(uid)
}

// command is a command line without secrets, of at most 200 bytes.
func command(words []string) string {
	const most = 200
	text := strings.ToValidUTF8(strings.Join(secret.Words(words), " "), "?")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// holders lists the processes that took the lock and live, as far as the kernel tells: not of those outside of our
// container.
func (l Lock) holders() []int {
	table, err := os.ReadFile(filepath.Join(l.proc(), "locks"))
	if err != nil {
		return nil
	}
	file, err := l.identity()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(parseLocks(string(table), file), func(pid int) bool {
		_, alive := engine.StartTicks(l.proc(), pid)
		return !alive
	})
}

// openers lists the processes that have the open file with the lock, of those that we may look into: who took it may
// have ended and left it to what it had started.
func (l Lock) openers() (pids []int) {
	file, err := l.identity()
	if err != nil {
		return nil
	}
	infos, _ := filepath.Glob(filepath.Join(l.proc(), "[0-9]*/fdinfo/*"))
	for _, path := range infos {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), file) {
			continue
		}
		for row := range strings.Lines(string(text)) {
			rest, is := strings.CutPrefix(row, "lock:")
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
			if is && err == nil && !slices.Contains(pids, pid) && len(parseLocks(rest, file)) > 0 {
				pids = append(pids, pid)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// identity is how the kernel names the file in its table of locks. The device that stat tells can be another one, on
// btrfs for instance: that of the mount is right.
func (l Lock) identity() (string, error) {
	var x unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, l.Path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_MNT_ID, &x); err != nil {
		return "", err
	}
	major, minor := x.Dev_major, x.Dev_minor
	mounts, _ := os.ReadFile(filepath.Join(l.proc(), "self/mountinfo"))
	for row := range strings.Lines(string(mounts)) {
		fields := strings.Fields(row) // id parent major:minor …
		if len(fields) < 3 || fields[0] != strconv.FormatUint(x.Mnt_id, 10) {
			continue
		}
		a, b, _ := strings.Cut(fields[2], ":")
		m, err := strconv.ParseUint(a, 10, 32)
		n, err2 := strconv.ParseUint(b, 10, 32)
		if cmp.Or(err, err2) == nil {
			major, minor = uint32(m), uint32(n)
		}
	}
	return fmt.Sprintf("%02x:%02x:%d", major, minor, x.Ino), nil
}

// parseLocks finds in /proc/locks who has a flock on a file. Who waits for one has an arrow before it.
func parseLocks(table, file string) (pids []int) {
	for row := range strings.Lines(table) {
		// 1: FLOCK  ADVISORY  WRITE 4711 00:1a:12345 0 EOF
		fields := strings.Fields(row)
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

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
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
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

// openQuietly opens a regular file of another account. A link is not followed, and nothing blocks: whoever reads from a
// pipe would wait for who writes.
func openQuietly(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, cmp.Or(err, fmt.Errorf("%s is no regular file", path))
	}
	return f, nil
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
		if _, alive := engine.StartTicks(l.proc(), pid); !alive {
			return true
		}
		has, known := l.has(pid, file)
		return known && !has // the number of who took it is another's by now
	})
}

// openers lists the processes that have the open file with the lock, of those that we may look into: who took it may
// have ended and left it to what it had started.
func (l Lock) openers() (pids []int) {
	file, err := l.identity()
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(l.proc())
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if has, _ := l.has(pid, file); has {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// has tells whether a process has a file with a lock open. known is false where we may not look into it.
func (l Lock) has(pid int, file string) (has, known bool) {
	dir := filepath.Join(l.proc(), strconv.Itoa(pid), "fdinfo")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, false
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			continue
		}
		for row := range strings.Lines(string(text)) {
			if rest, is := strings.CutPrefix(row, "lock:"); is && len(parseLocks(rest, file)) > 0 {
				return true, true
			}
		}
	}
	return false, true
}

// lineage is a process of ours that has the lock: we ourselves, or one that we descend from. Who waits for that waits
// for itself.
func (l Lock) lineage() (Record, bool) {
	pids := l.holders()
	if len(pids) == 0 {
		pids = l.openers()
	}
	for pid, steps := os.Getpid(), 0; pid > 1 && steps < mostAncestors; pid, steps = engine.Parent(l.proc(), pid), steps+1 {
		if slices.Contains(pids, pid) {
			return l.process(pid), true
		}
	}
	return Record{}, false
}

// mostAncestors bounds a look that numbers which are given anew could lead in a circle.
const mostAncestors = 1000

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

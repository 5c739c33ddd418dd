package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/engine"
)

// What the names of tickets end in: of who waits, and of who has the lock.
const (
	ticketSuffix = ".ticket"
	holderSuffix = ".holder"
)

// turnPoll is how often who waits looks whether it is its turn.
const turnPoll = 50 * time.Millisecond

// queuePatience bounds how long the folder of the queue may be taken by another, who needs it for an instant.
const queuePatience = 10 * time.Second

func (l Lock) queue() string { return l.Path + ".queue" }

// Waiting lists the claims that wait for the lock, first come first.
func (l Lock) Waiting() ([]Record, error) {
	if _, err := os.ReadDir(l.queue()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look at the queue of the claim lock: %w", err)
	}
	var list []Record
	for _, t := range l.tickets(ticketSuffix) {
		list = append(list, t.Record)
	}
	return list, nil
}

// ticket is a place in the queue. It is worth something while its file is locked, which ends with its owner.
type ticket struct {
	line
	name string
	file *os.File // nil: another's
}

// tickets lists those that are worth something, in order.
func (l Lock) tickets(suffix string) (list []ticket) {
	for _, name := range l.names() {
		if !strings.HasSuffix(name, suffix) || !l.alive(name) {
			continue
		}
		list = append(list, l.ticket(name))
	}
	return list
}

// ticket reads one.
func (l Lock) ticket(name string) ticket {
	t := ticket{name: name}
	if f, err := openQuietly(filepath.Join(l.queue(), name)); err == nil {
		_ = json.NewDecoder(io.LimitReader(f, mostText)).Decode(&t.line) // then who it is is not told
		f.Close()
	}
	return t
}

// names lists the files of the queue in order.
func (l Lock) names() (names []string) {
	entries, _ := os.ReadDir(l.queue())
	for _, e := range entries {
		if _, ok := number(e.Name()); ok {
			names = append(names, e.Name())
		}
	}
	return names
}

// number is the place of a ticket. The names have leading zeros, so that their order is that of the numbers.
func number(name string) (int, bool) {
	digits, suffix, _ := strings.Cut(name, ".")
	n, err := strconv.Atoi(digits)
	return n, err == nil && n > 0 && len(digits) == 12 && (suffix == ticketSuffix[1:] || suffix == holderSuffix[1:])
}

// alive tells whether a place is worth something. What cannot be opened is nobody's.
func (l Lock) alive(name string) bool {
	free, err := l.free(filepath.Join(l.queue(), name))
	return !free && err == nil
}

// enter takes the next place.
func (l Lock) enter(ctx context.Context, r Record) (*ticket, error) {
	return l.put(ctx, r, ticketSuffix)
}

// put makes a ticket. The folder is locked meanwhile, so that no two take one place and none is looked at
// before it is locked.
func (l Lock) put(ctx context.Context, r Record, suffix string) (*ticket, error) {
	dir, err := l.lockQueue(ctx)
	if err != nil {
		return nil, fmt.Errorf("queue at the claim lock: %w", err)
	}
	defer dir.Close()
	last := 0
	for _, name := range l.names() {
		if l.alive(name) {
			last, _ = number(name)
		} else {
			_ = os.Remove(filepath.Join(l.queue(), name)) // another account's is left to it
		}
	}
	t := &ticket{line: l.line(r)}
	for t.file == nil {
		last++
		t.name = fmt.Sprintf("%012d%s", last, suffix)
		t.file, err = os.OpenFile(filepath.Join(l.queue(), t.name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil && !errors.Is(err, fs.ErrExist) { // or what the dead of another account left
			return nil, fmt.Errorf("queue at the claim lock: %w", err)
		}
	}
	err = l.lock(t.file, unix.LOCK_EX)
	if err == nil {
		err = t.file.Chmod(0o644) // for every user, whatever our mask
	}
	if err == nil {
		err = json.NewEncoder(t.file).Encode(t.line)
	}
	if err != nil {
		l.leave(t)
		return nil, fmt.Errorf("queue at the claim lock: %w", err)
	}
	return t, nil
}

// lockQueue takes the folder of the queue, and makes it where it is not there: every user may put a ticket in, and
// take out none but its own.
func (l Lock) lockQueue(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, queuePatience, fmt.Errorf("somebody keeps %s locked", l.queue()))
	defer cancel()
	err := os.Mkdir(l.queue(), 0o777)
	if err == nil {
		err = os.Chmod(l.queue(), 0o777|fs.ModeSticky)
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	fd, err := unix.Open(l.queue(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: l.queue(), Err: err}
	}
	dir := os.NewFile(uintptr(fd), l.queue())
	for {
		err := l.lock(dir, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return dir, nil
		}
		if errors.Is(err, unix.EWOULDBLOCK) {
			select {
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-time.After(time.Millisecond):
				continue
			}
		}
		dir.Close()
		return nil, err
	}
}

// first tells whether nobody that is awake waits before a ticket.
func (l Lock) first(t *ticket) bool {
	names := l.names()
	for _, name := range slices.Backward(names) {
		if name < t.name && strings.HasSuffix(name, ticketSuffix) && l.alive(name) && !l.suspended(l.ticket(name)) {
			return false
		}
	}
	return true
}

// suspended tells whether who waits would not take its turn: it was stopped, and loses its place to those that are not
// for as long.
func (l Lock) suspended(t ticket) bool { return l.stands(t.line) && engine.IsStopped(l.proc(), t.PID) }

// sign says in the queue who has a lock that may not be written in.
func (l Lock) sign(r Record) (*ticket, error) {
	return l.put(context.Background(), r, holderSuffix)
}

// leave gives a place up.
func (l Lock) leave(t *ticket) {
	if t != nil {
		_ = os.Remove(filepath.Join(l.queue(), t.name))
		t.file.Close()
	}
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"

	"golang.org/x/sys/unix"
)

// errTaken says that another command changed the unit while this one watched a restart of it.
var errTaken = errors.New("another command took over")

// hold marks the intent of a restart as one that its process still works on: a lock on one byte of the journal,
// far behind its end, which the kernel frees when the process ends. Without it another command would take the
// restart for one that was cut off.
func (j journal) hold(e entry) (release func()) {
	f, err := os.OpenFile(j.path(), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return func() {}
	}
	lock := byteOf(e)
	_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
	return func() { _ = f.Close() }
}

// held tells whether the process of a restart still works on it.
func (j journal) held(e entry) bool {
	if e.Act != actRestart {
		return false
	}
	f, err := os.OpenFile(j.path(), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	lock := byteOf(e)
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock) == nil && lock.Type != unix.F_UNLCK
}

// byteOf is the lock that stands for an intent.
func byteOf(e entry) unix.Flock_t {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%s %s %d", e.Scope, e.Unit, e.Seq)
	return unix.Flock_t{Type: unix.F_WRLCK, Start: int64(sum.Sum64()>>2 | 1<<61), Len: 1}
}

// restarting tells whether a command restarts the unit and watches it.
func (h *Host) restarting(unit string) bool {
	entries, err := h.journal().entries(string(h.Scope), unit)
	if err != nil {
		return false
	}
	found := false
	unfinished(entries, func(e entry) bool {
		found = found || h.journal().held(e)
		return true
	})
	return found
}

// since says in words which act on the unit followed an intent, "" for none, and whether another command has
// closed the intent.
func (h *Host) since(intent entry) (later string, closed bool) {
	entries, err := h.journal().entries(intent.Scope, intent.Unit)
	if err != nil {
		return "", false
	}
	for _, e := range entries {
		switch {
		case e.Seq > intent.Seq && e.Act != actOutside:
			later = fmt.Sprintf("%s from %s to %s by %s", e.Act, orNothing(e.From), orNothing(e.To), or(e.By, "somebody"))
		case e.Seq == intent.Seq && e.Phase != phaseIntent:
			closed = true
		}
	}
	return later, closed
}

// mark is what our drop-in says at this moment, as far as it decides what the unit runs.
func (s *session) mark() string {
	v := &view{}
	if err := v.readPair(pair{s.h.dropInDir(s.unit)}); err != nil {
		return err.Error()
	}
	switch {
	case v.active != nil:
		d := *v.active
		d.Blocks, d.Extra = nil, nil
		if data, err := d.Encode(); err == nil {
			return sum(data)
		}
	case v.activeErr != nil:
		return v.activeErr.Error() + sum(v.activeData)
	}
	return sum(v.activeData)
}

// stands says in words how the unit stands.
func (s *session) stands(ctx context.Context) string {
	now, err := s.service(ctx)
	if err != nil {
		return "what is armed and what runs cannot be told (" + err.Error() + ")"
	}
	armed, ref := "nothing", PackageRef{}
	if now.Armed != nil {
		armed = now.Armed.Package
	}
	ref, _ = now.Live.runs()
	return fmt.Sprintf("%s is armed and %s runs", armed, orNothing(ref.Name))
}

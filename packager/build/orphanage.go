package build

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// orphanage finds what the programs of a trial have left behind. A process
// that makes a session of its own is in no group that could be killed, and
// would outlive the build. While this process is the reaper of orphans (man 2
// PR_SET_CHILD_SUBREAPER) they become its children, one generation after the
// other. Those that it had before are not among them; one process holds one
// trial at a time.
type orphanage struct {
	before map[int]bool // children that are none of ours
	reaper int32        // what this process was before
}

// sweepTime bounds the hunt for those that make new ones while they are killed.
const sweepTime = 10 * time.Second

func openOrphanage() (*orphanage, error) {
	o := &orphanage{before: map[int]bool{}}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&o.reaper)), 0, 0, 0, 0); errno != 0 {
		return nil, fmt.Errorf("ask whose orphans come to this process: %w", errno)
	}
	children, err := children()
	if err != nil {
		return nil, err
	}
	for _, c := range children {
		o.before[c.pid] = true
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("have orphans come to this process: %w", err)
	}
	return o, nil
}

// close kills all that was left and returns the names of what would have gone
// on, without those of the programs' own groups, which were killed already:
// the end of a pipe may be a little later than the program.
func (o *orphanage) close(groups []int) ([]string, error) {
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(o.reaper), 0, 0, 0)
	var names []string
	for until := time.Now().Add(sweepTime); ; {
		all, err := children()
		if err != nil {
			return names, err
		}
		all = slices.DeleteFunc(all, func(c child) bool { return o.before[c.pid] })
		if len(all) == 0 {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
		if time.Now().After(until) {
			return names, fmt.Errorf("what they leave running, %s among it, cannot be killed", all[0].name)
		}
		for _, c := range all {
			if !c.ended && !slices.Contains(groups, c.group) {
				names = append(names, c.name)
			}
			_ = syscall.Kill(c.pid, syscall.SIGKILL) // one that ended is still there until it is waited for
		}
		waited := false
		for _, c := range all {
			pid, _ := syscall.Wait4(c.pid, nil, syscall.WNOHANG, nil)
			waited = waited || pid == c.pid
		}
		if !waited {
			time.Sleep(time.Millisecond)
		}
	}
}

// child is a child of this process.
type child struct {
	pid, group int
	name       string
	ended      bool // and nobody has asked how
}

// children lists those that this process has now.
func children() ([]child, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []child
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil { // it ended meanwhile
			continue
		}
		c, parent, err := parseStat(b)
		if err != nil {
			return nil, err
		}
		if parent == os.Getpid() {
			c.pid = pid
			out = append(out, c)
		}
	}
	return out, nil
}

var errStat = errors.New("a line of /proc/PID/stat is not as it should be")

// parseStat reads a process's line (man 5 proc): number, name in brackets,
// which it chooses itself and which may have brackets and blanks, state,
// parent, group.
func parseStat(b []byte) (c child, parent int, err error) {
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return c, 0, errStat
	}
	rest := strings.Fields(string(b[to+1:]))
	if len(rest) < 3 {
		return c, 0, errStat
	}
	c.name = printable(string(b[from+1 : to]))
	c.ended = rest[0] == "Z" || rest[0] == "X"
	if parent, err = strconv.Atoi(rest[1]); err == nil {
		c.group, err = strconv.Atoi(rest[2])
	}
	if err != nil {
		return c, 0, errStat
	}
	return c, parent, nil
}

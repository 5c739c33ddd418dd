package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/secret"
)

// A Mark stands in the environment of all that a piece of work starts, and so of
// all that those start. It finds what has left its process group where no cage
// holds it, also when whoever started it is long gone. Only what is provably of
// the work is found: by its mark, and because it is younger than what began. It is a Cage.
type Mark struct {
	Proc  string // /proc
	Text  string // KEY=value, of this work and no other
	Since uint64 // ticks since boot, see BootTicks
}

// Members lists the processes that bear the mark, but for ourselves.
func (m Mark) Members() ([]int, error) {
	names, err := os.ReadDir(m.Proc)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, entry := range names {
		pid, err := strconv.Atoi(entry.Name())
		if err == nil && pid > 1 && pid != os.Getpid() && m.bears(pid) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// bears tells whether a process has the mark. The environment of other users can
// be read by root alone, and that of the dead is empty.
func (m Mark) bears(pid int) bool {
	if ticks, alive := StartTicks(m.Proc, pid); !alive || ticks < m.Since {
		return false
	}
	env, err := os.ReadFile(filepath.Join(m.Proc, strconv.Itoa(pid), "environ"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(env, []byte{0}), func(kv []byte) bool {
		return string(kv) == m.Text
	})
}

// End kills what bears the mark until nothing does, and tells what it was. ctx
// bounds how long is waited for what was killed.
func (m Mark) End(ctx context.Context) (ended []string, err error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	known, clear := map[string]bool{}, 0
	for {
		pids, err := m.Members()
		if err != nil {
			return ended, fmt.Errorf("look for processes that have left their group: %w", err)
		}
		if len(pids) > 0 {
			clear = 0
		} else if clear++; clear > 1 { // what was just born may hide from one look
			return ended, nil
		}
		for _, pid := range pids {
			ticks, _ := StartTicks(m.Proc, pid)
			if id := fmt.Sprint(pid, ticks); !known[id] {
				known[id], ended = true, append(ended, Describe(m.Proc, pid))
			}
		}
		SignalEach(func() []int {
			return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !m.bears(pid) })
		}, syscall.SIGKILL)
		select {
		case <-ctx.Done():
			if len(pids) == 0 {
				return ended, nil
			}
			return ended, fmt.Errorf("%d processes that had left their process group are still there after SIGKILL: %s", len(pids), strings.Join(ended, ", "))
		case <-tick.C:
		}
	}
}

// mostCommand bounds what is told of a command, in bytes.
const mostCommand = 80

// Describe names a process by its number and its command line, without secrets.
// proc is /proc outside tests.
func Describe(proc string, pid int) string {
	b, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cmdline"))
	words := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	command := strings.ToValidUTF8(strings.Join(secret.Words(words), " "), "?")
	return fmt.Sprintf("process %d (%s)", pid, strings.ToValidUTF8(command[:min(len(command), mostCommand)], ""))
}

// SinceBoot counts on while the host sleeps, and does not jump when its time is
// set. Go's own clock stands still in sleep.
func SinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // there is no Linux without this clock
	}
	return time.Duration(ts.Nano())
}

// BootTicks is now as the kernel counts the starts of processes: in hundredths
// of a second since boot.
func BootTicks() uint64 { return uint64(SinceBoot() / (10 * time.Millisecond)) }

package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/engine"
)

// markVariable stands in the environment of all that a run starts, and so of all
// that those start. It finds what left its process group where no scope holds
// it, also when whoever started it is long gone.
const markVariable = "ONEBIT_SOAK"

// markOf is the mark of a run, as it stands in an environment.
func markOf(run string) string { return markVariable + "=" + run }

// A search is for processes that bear a mark. Only what is provably ours is
// found: by its mark, by its user, and because it is younger than what began.
type search struct {
	proc  string // /proc
	mark  string
	since uint64 // ticks since boot
}

// A marked process is named for ever by its number and its start.
type marked struct {
	pid   int
	ticks uint64
}

// find lists the processes.
func (s search) find() []marked {
	names, err := os.ReadDir(s.proc)
	if err != nil {
		return nil
	}
	var list []marked
	for _, entry := range names {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue
		}
		ticks, alive := engine.StartTicks(s.proc, pid)
		if alive && ticks >= s.since && s.bears(pid) {
			list = append(list, marked{pid, ticks})
		}
	}
	return list
}

// bears tells whether a process of our user has the mark. The environment of
// others cannot be read, and that of the dead is empty.
func (s search) bears(pid int) bool {
	dir := filepath.Join(s.proc, strconv.Itoa(pid))
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return false
	}
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(env, []byte{0}), func(kv []byte) bool {
		return string(kv) == s.mark
	})
}

// end kills what is found until nothing is, and tells what it was.
func (s search) end(ctx context.Context) (ended []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, killPatience)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	known := map[marked]bool{}
	for {
		list := s.find()
		if len(list) == 0 {
			return ended, nil
		}
		for _, m := range list {
			what := m.describe(s.proc)
			if err := s.kill(m); err != nil {
				return ended, fmt.Errorf("end %s, which had left its process group: %w", what, err)
			}
			if !known[m] {
				known[m], ended = true, append(ended, what)
			}
		}
		select {
		case <-ctx.Done():
			return ended, fmt.Errorf("%d processes that had left their process group are still there after SIGKILL: %s", len(list), strings.Join(ended, ", "))
		case <-tick.C:
		}
	}
}

// kill kills one process and no other that has been given its number since.
func (s search) kill(m marked) error {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if ticks, alive := engine.StartTicks(s.proc, m.pid); !alive || ticks != m.ticks || !s.bears(m.pid) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// mostCommand bounds what is told of a command, in bytes.
const mostCommand = 80

func (m marked) describe(proc string) string {
	b, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(m.pid), "cmdline"))
	command := strings.TrimSpace(string(bytes.ReplaceAll(b[:min(len(b), mostCommand)], []byte{0}, []byte{' '})))
	return fmt.Sprintf("process %d (%s)", m.pid, strings.ToValidUTF8(command, "?"))
}

// bootTicks is now as the kernel counts the starts of processes: in hundredths
// of a second since boot.
func bootTicks() uint64 { return uint64(sinceBoot() / (10 * time.Millisecond)) }

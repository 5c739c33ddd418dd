package build

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// programRun is a program that was asked for its version.
type programRun struct {
	group    int            // of its processes; 0 if it has not begun
	status   int            // that it ended with
	signal   syscall.Signal // that ended it; 0 if none
	timedOut time.Duration  // the limit that it went over; 0 if it did not
	notBegun error          // why the kernel does not execute it
	said     transcript
}

// loaderError is how the C library's loader says that a library is too old; it
// then ends with 1, like any program.
var loaderError = lazyregexp.New("version `[^']+' not found")

// runProgram runs `path --version` with nothing in its environment, no input
// and a process group of its own, which is killed when the program ends. The
// error is that of the context.
func runProgram(ctx context.Context, path string, limit time.Duration) (*programRun, error) {
	// The kernel kills the program with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &programRun{}
	var cmd *exec.Cmd
	for range 200 {
		cmd = exec.Command(path, "--version")
		cmd.Dir, cmd.Env = "/", []string{}
		cmd.Stdout, cmd.Stderr = &r.said, &r.said
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.WaitDelay = time.Second // for what left the group and holds the output
		// A process that another thread forks at this moment can still hold
		// the file open from when it was written.
		if r.notBegun = cmd.Start(); !errors.Is(r.notBegun, syscall.ETXTBSY) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r.notBegun != nil {
		return r, ctx.Err()
	}
	r.group = cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The process is left as it is, so that its group is still its own.
		for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-timer.C:
		r.timedOut = limit
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	_ = cmd.Wait() // what it says is in the state
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		r.signal = status.Signal()
	}
	r.status = cmd.ProcessState.ExitCode()
	return r, ctx.Err()
}

// failure says why the program cannot be said to run; nil if it can.
func (r *programRun) failure() error {
	switch {
	case errors.Is(r.notBegun, syscall.ENOENT):
		return errors.New("does not start: the interpreter that it names is not on this machine")
	case errors.Is(r.notBegun, syscall.ENOEXEC):
		return errors.New("does not start: it is no program of this kind of machine, and no script, which begins with #!")
	case errors.Is(r.notBegun, syscall.EACCES):
		return errors.New("does not start: permission denied: is the output folder on a file system that is mounted noexec?")
	case r.notBegun != nil:
		return fmt.Errorf("does not start: %w", errors.Unwrap(r.notBegun))
	case r.timedOut != 0:
		return fmt.Errorf("has not ended after %v and was killed", r.timedOut)
	case r.signal != 0:
		return fmt.Errorf("was killed by signal %d (%v)", int(r.signal), r.signal)
	case r.status == 126 || r.status == 127:
		return fmt.Errorf("ended with status %d: a program or library that it needs is not there", r.status)
	case r.status > 128 && r.status <= 128+64:
		return fmt.Errorf("ended with status %d: a program that it started was killed by signal %d", r.status, r.status-128)
	case r.status != 0 && loaderError().MatchString(r.said.String()):
		return fmt.Errorf("ended with status %d: a library of this machine is too old for it", r.status)
	}
	return nil
}

const (
	maxSaid    = 64 << 10 // kept of the beginning of an output
	maxSaidEnd = 4 << 10  // and of its end
)

// transcript keeps the beginning and the end of what is written to it.
type transcript struct {
	head, tail []byte
}

func (t *transcript) Write(p []byte) (int, error) {
	n := len(p)
	room := min(maxSaid-len(t.head), n)
	t.head = append(t.head, p[:room]...)
	if p = p[room:]; len(p) > maxSaidEnd {
		p = p[len(p)-maxSaidEnd:]
	}
	t.tail = append(t.tail, p...)
	if over := len(t.tail) - maxSaidEnd; over > 0 {
		t.tail = append(t.tail[:0], t.tail[over:]...)
	}
	return n, nil
}

// String is the output; where that was too long, its beginning and its end.
func (t *transcript) String() string { return string(t.head) + string(t.tail) }

// version returns the line that has the word version in it, else the first.
func (t *transcript) version() string {
	for line := range strings.Lines(string(t.head)) {
		if strings.Contains(strings.ToLower(line), "version") {
			return printable(line)
		}
	}
	return t.first()
}

// first returns the first line with something in it.
func (t *transcript) first() string {
	for line := range strings.Lines(string(t.head)) {
		if line = printable(line); line != "" {
			return line
		}
	}
	return ""
}

// ending is the last lines for an error, without the folder that the package
// was tried in; "" if there are none.
func (t *transcript) ending(dir string) string {
	const most = 5
	var lines []string
	for line := range strings.Lines(strings.ReplaceAll(t.String(), dir+"/", "")) {
		if line = printable(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return ": it said: " + strings.Join(lines[max(0, len(lines)-most):], " | ")
}

// printable is a line as it may be shown: without what a terminal acts on, and
// not too long.
func printable(line string) string {
	line = strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, "?"))
	if runes := []rune(strings.TrimSpace(line)); len(runes) > 300 {
		return string(runes[:300]) + "…"
	}
	return strings.TrimSpace(line)
}

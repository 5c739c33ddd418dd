package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ProcessOptions say what to run. The child gets exactly Env, in Dir. What it
// says is appended to files, so that no line is lost when we are killed, or it
// is handed streams of ours.
type ProcessOptions struct {
	Program    string
	Args       []string
	Env        []string // KEY=value; nil is an empty environment
	Dir        string   // working folder; "" is ours
	LogPath    string   // takes standard error, and standard output unless StdoutPath is set
	StdoutPath string

	// Stdin, Stdout and Stderr are handed on as they are. nil: /dev/null, or the
	// files above.
	Stdin, Stdout, Stderr *os.File
	// Terminal is the controlling terminal, whose foreground the child's group
	// becomes before it runs. nil: it stays where it is.
	Terminal *os.File

	// Cage puts the child, and the process that watches over it, into something
	// that holds whatever they start, before the child has run its first
	// instruction. nil: the process group alone. Where the
	// host forbids to hold a child (ptrace), it has no cage either: see Uncaged.
	Cage func(pids ...int) (Cage, error)

	// Watcher is the program that ends what is left of the child when we are gone,
	// however we went: it is given the number of the process group as its last
	// argument, and its standard input ends when we do. nil: a shell that kills the
	// group.
	Watcher *exec.Cmd
}

// A Cage holds a process and all that it starts, also what leaves its process
// group, such as a control group does.
type Cage interface {
	Members() ([]int, error) // pids that live in it, none once it is gone
}

// A Process is a child in a process group of its own. The group ends with us,
// whatever ends us: the kernel kills the child itself, and a watcher process
// that reads a pipe from us kills the group when the pipe closes.
type Process struct {
	pid     int
	cage    Cage // nil: none
	uncaged error
	exited  chan struct{}
	status  ExitStatus // valid once exited is closed
	stop    sync.Mutex
	killed  bool // by Stop, under its lock
	watcher *watcher
}

// ExitStatus is how a process ended: a code, or the signal that killed it.
type ExitStatus struct {
	Code   int            // -1 if a signal ended it
	Signal syscall.Signal // 0 if it exited
}

// String says it in words.
func (e ExitStatus) String() string {
	if s := e.KilledBy(); s != 0 {
		return fmt.Sprintf("signal %d (%s)", int(s), s)
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// KilledBy gives the signal that ended the process, also when a shell in
// between reported it as 128 plus its number. It is 0 after an ordinary exit.
func (e ExitStatus) KilledBy() syscall.Signal {
	switch {
	case e.Signal != 0:
		return e.Signal
	case e.Code > 128 && e.Code < 128+32:
		return syscall.Signal(e.Code - 128)
	}
	return 0
}

// StartProcess starts a child. The context bounds the start alone: call Stop to
// end the child.
func StartProcess(ctx context.Context, o ProcessOptions) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Program, err)
	}
	out, err := openOutputs(o)
	defer out.close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Program, err)
	}
	p := &Process{exited: make(chan struct{})}
	started := make(chan error)
	go p.run(o, out, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Program, err)
	}
	return p, nil
}

// command is the child to be. One that is held is traced: it stops at its first
// instruction, and so can be put into its cage without a program in between that
// changes its environment.
func command(o ProcessOptions, out outputs, held bool) *exec.Cmd {
	cmd := exec.Command(o.Program, o.Args...)
	cmd.Env, cmd.Dir = o.Env, o.Dir
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	// A nil file in an interface is not nothing.
	if o.Stdin != nil {
		cmd.Stdin = o.Stdin
	}
	if f := cmp.Or(o.Stdout, out.stdout); f != nil {
		cmd.Stdout = f
	}
	if f := cmp.Or(o.Stderr, out.stderr); f != nil {
		cmd.Stderr = f
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Ptrace: held}
	if o.Terminal != nil {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(o.Terminal.Fd())
	}
	return cmd
}

// run starts and reaps the child on one thread: the death signal follows the
// thread that started the child, not the process.
func (p *Process) run(o ProcessOptions, out outputs, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	held := o.Cage != nil || o.Watcher != nil
	cmd := command(o, out, held)
	err := cmd.Start()
	if err != nil && held {
		// A sandbox or the Yama module may forbid tracing, and then exec fails.
		// What fails for another reason fails again.
		p.uncaged = fmt.Errorf("hold it before it runs: %w", err)
		held, cmd = false, command(o, out, false)
		err = cmd.Start()
	}
	if err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	p.watcher, err = startWatcher(o.Watcher, p.pid)
	if err == nil && held {
		err = p.enter(o.Cage)
	}
	if err != nil {
		syscall.Kill(-p.pid, syscall.SIGKILL)
		cmd.Wait()
		p.watcher.dismiss()
		started <- err
		return
	}
	started <- nil
	cmd.Wait()
	p.status = ExitStatus{Code: cmd.ProcessState.ExitCode()}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		p.status.Signal = ws.Signal()
	}
	close(p.exited)
}

// enter puts the child, which is stopped, into its cage and lets it go.
func (p *Process) enter(cage func(...int) (Cage, error)) error {
	var ws syscall.WaitStatus
	var got int
	var err error
	for until := time.Now().Add(holdPatience); ; time.Sleep(200 * time.Microsecond) {
		if got, err = syscall.Wait4(p.pid, &ws, syscall.WNOHANG, nil); got != 0 || err != nil && err != syscall.EINTR {
			break
		}
		if time.Now().After(until) { // it runs already
			p.uncaged = fmt.Errorf("hold it before it runs: %w", errNotHeld)
			return nil
		}
	}
	if err != nil || !ws.Stopped() {
		return fmt.Errorf("hold process %d before it runs: %w", p.pid, errors.Join(err, errNotHeld))
	}
	if cage != nil {
		if p.cage, err = cage(p.pid, p.watcher.pid()); err != nil {
			return err
		}
	}
	if err := syscall.PtraceDetach(p.pid); err != nil {
		return fmt.Errorf("let process %d run: %w", p.pid, err)
	}
	return nil
}

var errNotHeld = errors.New("it did not stop")

// holdPatience is how long a traced child may take to stop. It is at its first
// instruction at once; a kernel that only claims to trace never stops it.
const holdPatience = 5 * time.Second

// Uncaged says why the child is not in the cage that was asked for: the host
// does not let it be held before it runs. Then its process group alone holds it.
// nil: it is, or none was asked for.
func (p *Process) Uncaged() error { return p.uncaged }

// outputs are the files that take what the child says; nil: /dev/null.
type outputs struct{ stdout, stderr *os.File }

func (o outputs) close() {
	for _, f := range []*os.File{o.stdout, o.stderr} {
		if f != nil {
			f.Close()
		}
	}
}

func openOutputs(o ProcessOptions) (out outputs, err error) {
	open := func(path string) (f *os.File) {
		if err == nil {
			f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		}
		return f
	}
	if o.LogPath != "" {
		out.stderr = open(o.LogPath)
		out.stdout = out.stderr
	}
	if o.StdoutPath != "" {
		out.stdout = open(o.StdoutPath)
	}
	return out, err
}

// PID is the child's process id, which is also its group's.
func (p *Process) PID() int { return p.pid }

// Exited is closed when the child itself has ended; others of its group may
// still be there.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Wait waits for the child's end and says how it ended.
func (p *Process) Wait(ctx context.Context) (ExitStatus, error) {
	select {
	case <-p.exited:
		return p.status, nil
	case <-ctx.Done():
		return ExitStatus{}, ctx.Err()
	}
}

// Stop ends the whole group and the cage: SIGTERM, after grace SIGKILL, and
// then it waits until no member is left. A grace of 0 kills at once. It returns
// an error if members remain, and may be called again. A llama-server does not
// end on SIGTERM while it has clients: cancel their requests first.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	p.stop.Lock()
	defer p.stop.Unlock()
	if grace > 0 {
		p.Signal(syscall.SIGTERM)
		wait, cancel := context.WithTimeout(ctx, grace)
		defer cancel()
		if p.gone(wait, nil) {
			p.watcher.dismiss()
			return nil
		}
	}
	p.killed = true
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
	defer cancel()
	if !p.gone(wait, func() { p.Signal(syscall.SIGKILL) }) {
		return fmt.Errorf("end process group %d: still there after SIGKILL: %v", p.pid, p.Members())
	}
	p.watcher.dismiss()
	return nil
}

// Release leaves what is still there to the watcher, which acts at once.
func (p *Process) Release() { p.watcher.release() }

// Signal reaches the group and what has left it for elsewhere in the cage. What
// is stopped goes on, or it would not hear of it.
func (p *Process) Signal(s syscall.Signal) {
	syscall.Kill(-p.pid, s)
	SignalEach(p.strays, s)
	if s != syscall.SIGKILL {
		syscall.Kill(-p.pid, syscall.SIGCONT)
		SignalEach(p.strays, syscall.SIGCONT)
	}
}

// strays are in the cage and not in the group.
func (p *Process) strays() []int {
	group := GroupMembers("/proc", p.pid)
	return slices.DeleteFunc(p.caged(), func(pid int) bool { return slices.Contains(group, pid) })
}

// Killed tells whether Stop sent SIGKILL: the group had not ended within the
// grace, or had none.
func (p *Process) Killed() bool {
	p.stop.Lock()
	defer p.stop.Unlock()
	return p.killed
}

// killPatience is how long a killed process may need to leave, for instance out
// of a driver that frees tens of gigabytes.
const killPatience = 30 * time.Second

// Members lists what lives of the group and in the cage.
func (p *Process) Members() []int {
	pids := append(GroupMembers("/proc", p.pid), p.caged()...)
	slices.Sort(pids)
	return slices.Compact(pids)
}

func (p *Process) caged() []int {
	if p.cage == nil {
		return nil
	}
	pids, err := p.cage.Members()
	if err != nil {
		return nil // then the group alone tells
	}
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == p.watcher.pid() })
}

// gone waits until the child is reaped and nothing else of it lives. Until then
// it does what is asked again and again, since what is killed may have started
// something a moment before.
func (p *Process) gone(ctx context.Context, again func()) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if again != nil {
			again()
		}
		select {
		case <-p.exited:
			if len(p.Members()) == 0 {
				return true
			}
		default:
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

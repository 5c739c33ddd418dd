//go:build linux && amd64

// Package faultrun runs a program under ptrace and makes trouble at one of its system calls: it kills the
// program just before the call, lets the call fail with an errno of choice, breaks the connection that a message
// goes out on, or runs a command meanwhile. The program is the one that ships; nothing in it knows of the tool.
//
// A point is a system call that changes something outside the process: a file created, written, synced,
// renamed, removed or re-moded, or a message sent to a socket. Points are counted over all threads, so a test
// walks them one by one ("kill at point 17") until a run ends before its point is reached. Where threads do not
// always come in the same order, [Keys] names the points of a run, and a key leads to the same one in the next.
//
// The recorded calls of an undisturbed run are also the evidence for durability: [CheckDurable] says which
// write could be lost with the power.
//
// The program stops only at calls that matter, which a seccomp filter picks out: stopping at each would take ten times
// as long. [Stage] installs the filter, in a process that then becomes the program.
//
// Run must be called from a process that has no other children, since it waits for any, and whose executable calls
// Stage: use the program in cmd/faultrun.
package faultrun

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Fault says what happens at which point.
type Fault struct {
	// At is the number of the point, from 1; 0 disturbs nothing.
	At int `json:"at,omitempty"`
	// Key names the point instead, as one of [Keys].
	Key string `json:"key,omitempty"`
	// Match names it instead by what the call looks like: the first one that [Call.String] and this have in common.
	Match *regexp.Regexp `json:"-"`
	// Kill sends SIGKILL before the call is made.
	Kill bool `json:"kill,omitempty"`
	// Errno is what the call returns instead of being made. Points on sockets are left alone.
	Errno syscall.Errno `json:"errno,omitempty"`
	// Sticky lets every later call that needs space fail too, as on a disk that stays full.
	Sticky bool `json:"sticky,omitempty"`
	// Hangup breaks every connection to a local socket (AF_UNIX) at a message of one, as if the other side had died:
	// sending gives EPIPE, receiving ECONNRESET, a new connection ECONNREFUSED.
	Hangup bool `json:"hangup,omitempty"`
	// Sent lets the message out before the connections break: only its answer is lost.
	Sent bool `json:"sent,omitempty"`
	// Meanwhile is a shell command that runs to its end while the program waits before the call, which is then made.
	Meanwhile string `json:"meanwhile,omitempty"`
}

// A Call is one point that a run came to.
type Call struct {
	Name string `json:"name"`
	// Path is the file the call is about, Target the new name of a rename, as absolute paths.
	Path   string `json:"path,omitempty"`
	Target string `json:"target,omitempty"`
	Flags  uint64 `json:"flags,omitempty"`
	// New marks an open that creates its file.
	New bool `json:"new,omitempty"`
	// Socket marks a message on a socket, Peer is where a local one leads.
	Socket bool   `json:"socket,omitempty"`
	Peer   string `json:"peer,omitempty"`
	// Result is the return value, negative for an errno.
	Result   int64 `json:"result"`
	Injected bool  `json:"injected,omitempty"`
}

func (c Call) String() string {
	s := c.Name + " " + c.Path
	if c.Target != "" {
		s += " -> " + c.Target
	}
	return s
}

// Keys names each point of a run by its call, its path (the random part of a temporary name left out) or its local
// socket, and how often that came before.
func Keys(calls []Call) []string {
	seen := map[string]int{}
	keys := make([]string, len(calls))
	for i, c := range calls {
		keys[i] = c.key(seen)
	}
	return keys
}

// key is the name of the next point of a run, of whose earlier ones seen is the count.
func (c Call) key(seen map[string]int) string {
	path := c.Path
	switch {
	case c.Socket:
		path = "socket " + c.Peer
	case temporary(path):
		path = randomPart.ReplaceAllString(path, ".*.tmp")
	}
	what := c.Name + " " + path
	seen[what]++
	return fmt.Sprintf("%s #%d", what, seen[what])
}

var randomPart = regexp.MustCompile(`\.[0-9]+\.tmp$`)

// A Result is what a run did.
type Result struct {
	Calls []Call `json:"calls"`
	// Fired tells whether the fault's point was reached.
	Fired bool `json:"fired"`
	// Exit is the exit status, 128+n for a death by signal n.
	Exit int `json:"exit"`
}

// Run starts cmd, traces it and all its threads and children to the end, and injects the fault.
func Run(cmd *exec.Cmd, fault Fault) (*Result, error) {
	runtime.LockOSThread() // ptrace belongs to the thread that started the tracee
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Ptrace = true
	stage(cmd, fault)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	leader := cmd.Process.Pid
	var ws unix.WaitStatus
	if _, err := unix.Wait4(leader, &ws, unix.WALL, nil); err != nil {
		return nil, fmt.Errorf("wait for the first stop: %w", err)
	}
	options := unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
		unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(leader, options); err != nil {
		return nil, fmt.Errorf("ptrace options: %w", err)
	}
	if err := unix.PtraceCont(leader, 0); err != nil {
		return nil, fmt.Errorf("ptrace continue: %w", err)
	}
	t := &tracer{leader: leader, fault: fault, inCall: map[int]*pending{}, seen: map[string]int{}, peers: map[string]string{}}
	if err := t.loop(); err != nil {
		return nil, err
	}
	_ = cmd.Process.Release()
	return &t.result, nil
}

// pending is a call that a thread has entered and not left.
type pending struct {
	index  int // in result.Calls, -1 when it is no point
	inject int64
	skip   bool
}

type tracer struct {
	leader int
	fault  Fault
	inCall map[int]*pending  // by thread
	seen   map[string]int    // points by their keys
	peers  map[string]string // of local sockets, by what a descriptor's link says
	gone   bool              // the other side of every local socket
	result Result
}

func (t *tracer) loop() error {
	for {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		}
		switch {
		case ws.Exited():
			delete(t.inCall, tid)
			if tid == t.leader {
				t.result.Exit = ws.ExitStatus()
			}
			continue
		case ws.Signaled():
			delete(t.inCall, tid)
			if tid == t.leader {
				t.result.Exit = 128 + int(ws.Signal())
			}
			continue
		}
		deliver, resume := 0, unix.PtraceCont
		switch sig := ws.StopSignal(); {
		case sig == unix.SIGTRAP|0x80:
			t.leave(tid)
		case sig == unix.SIGTRAP && ws.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
			if t.enter(tid) {
				resume = unix.PtraceSyscall // and stop where it leaves
			}
		case sig == unix.SIGTRAP: // an event of clone, fork or exec
		case sig == unix.SIGSTOP: // a new thread's first stop
		default:
			deliver = int(sig)
		}
		if err := resume(tid, deliver); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("ptrace continue: %w", err)
		}
	}
}

// leave looks at a call of note that has returned.
func (t *tracer) leave(tid int) {
	var regs unix.PtraceRegsAmd64
	p, ok := t.inCall[tid]
	delete(t.inCall, tid)
	if !ok || unix.PtraceGetRegsAmd64(tid, &regs) != nil {
		return // it was killed under our hands
	}
	if p.skip {
		regs.Rax = uint64(p.inject)
		_ = unix.PtraceSetRegsAmd64(tid, &regs)
	}
	if p.index >= 0 {
		t.result.Calls[p.index].Result = int64(regs.Rax)
	}
}

// enter looks at a call that is about to be made and tells whether its end is of note.
func (t *tracer) enter(tid int) bool {
	var regs unix.PtraceRegsAmd64
	if unix.PtraceGetRegsAmd64(tid, &regs) != nil {
		return false // it was killed under our hands
	}
	p := &pending{index: -1}
	t.disturb(tid, &regs, p)
	if p.index < 0 && !p.skip {
		return false
	}
	t.inCall[tid] = p
	return true
}

func (t *tracer) disturb(tid int, regs *unix.PtraceRegsAmd64, p *pending) {
	if errno := t.overSocket(tid, regs); errno != 0 {
		p.fail(tid, regs, errno)
		return
	}
	call, ok := decode(tid, regs)
	if !ok {
		return
	}
	call.Peer = t.peers[call.Path]
	t.result.Calls = append(t.result.Calls, call)
	p.index = len(t.result.Calls) - 1
	n, key := len(t.result.Calls), call.key(t.seen)
	switch {
	case t.gone && call.Peer != "":
		t.result.Calls[p.index].Injected = true
		p.fail(tid, regs, unix.EPIPE)
	case t.fault.At == n || t.fault.Key == key, t.fault.Match != nil && !t.result.Fired && t.fault.Match.MatchString(call.String()):
		t.fire(tid, regs, p, call)
	case t.fault.Sticky && t.result.Fired && needsSpace(call):
		t.result.Calls[p.index].Injected = true
		p.fail(tid, regs, t.fault.Errno)
	}
}

// fire does what the fault says at its point.
func (t *tracer) fire(tid int, regs *unix.PtraceRegsAmd64, p *pending, call Call) {
	errno := t.fault.Errno
	switch {
	case t.fault.Kill:
		t.result.Fired = true
		_ = unix.Kill(t.leader, unix.SIGKILL)
		return
	case t.fault.Meanwhile != "":
		t.result.Fired = true
		command := exec.Command("/bin/sh", "-c", t.fault.Meanwhile)
		command.Stdout, command.Stderr = os.Stderr, os.Stderr
		if err := command.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "faultrun: meanwhile:", err)
		}
		return
	case t.fault.Hangup:
		if call.Peer == "" {
			return
		}
		t.gone = true
		if t.fault.Sent {
			t.result.Fired = true
			return
		}
		errno = unix.EPIPE
	case call.Socket:
		return
	}
	t.result.Fired = true
	t.result.Calls[p.index].Injected = true
	p.fail(tid, regs, errno)
}

// fail lets a call return an errno instead of being made.
func (p *pending) fail(tid int, regs *unix.PtraceRegsAmd64, errno syscall.Errno) {
	p.skip, p.inject = true, -int64(errno)
	regs.Orig_rax = ^uint64(0)
	_ = unix.PtraceSetRegsAmd64(tid, regs)
}

// overSocket remembers where local sockets lead and says how a call on one fails once the other side is gone, 0 for
// not at all. Messages that go out are points, and not its concern.
func (t *tracer) overSocket(tid int, regs *unix.PtraceRegsAmd64) syscall.Errno {
	switch regs.Orig_rax {
	case unix.SYS_CONNECT:
		peer, ok := localAddress(tid, uintptr(regs.Rsi), int(regs.Rdx))
		if !ok {
			return 0
		}
		t.peers[fdPath(tid, int32(regs.Rdi))] = peer
		if t.gone {
			return unix.ECONNREFUSED
		}
	case unix.SYS_READ, unix.SYS_RECVFROM, unix.SYS_RECVMSG:
		if t.gone && t.peers[fdPath(tid, int32(regs.Rdi))] != "" {
			return unix.ECONNRESET
		}
	}
	return 0
}

// needsSpace tells whether a full disk can refuse the call.
func needsSpace(c Call) bool {
	switch c.Name {
	case "write", "pwrite64", "writev", "fsync", "fdatasync", "syncfs", "mkdirat", "symlinkat", "linkat",
		"ftruncate", "fallocate", "copy_file_range", "sendfile":
		return !c.Socket
	case "openat":
		return c.Flags&unix.O_CREAT != 0
	}
	return false
}

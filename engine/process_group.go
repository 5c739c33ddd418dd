package engine

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// A watcher kills a process group when we are gone. It waits for the end of a
// pipe whose other end only we hold: the kernel closes that end however we die.
// The death signal of the kernel alone would reach the child but not what the
// child has started.
type watcher struct {
	cmd  *exec.Cmd
	hold io.Closer
	over bool
}

func (w *watcher) pid() int { return w.cmd.Process.Pid }

// startWatcher starts a watcher's program, nil being a shell.
func startWatcher(cmd *exec.Cmd, group int) (*watcher, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watch process group %d: %w", group, err)
	}
	defer r.Close()
	if cmd == nil {
		cmd = exec.Command("/bin/sh", "-c", `read line; kill -s KILL -- "-$1"`, "sh")
		cmd.Env = []string{}
	}
	cmd.Args = append(cmd.Args, strconv.Itoa(group))
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("watch process group %d: %w", group, err)
	}
	return &watcher{cmd: cmd, hold: w}, nil
}

// dismiss ends the watcher before it could act.
func (w *watcher) dismiss() {
	if w == nil || w.over {
		return
	}
	w.cmd.Process.Kill()
	w.cmd.Wait()
	w.hold.Close()
	w.over = true
}

// release lets the watcher act, as it does when we are gone.
func (w *watcher) release() {
	if w != nil && !w.over {
		w.hold.Close()
		w.over = true
	}
}

// GroupMembers lists the processes of a group that are not dead yet. proc is
// /proc outside tests.
func GroupMembers(proc string, group int) []int {
	dir, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		// state ppid pgrp …
		fields := statFields(proc, pid)
		if len(fields) < 3 || string(fields[2]) != strconv.Itoa(group) {
			continue
		}
		if !hasEnded(fields) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// statFields are the fields of a process's stat after its name, which may hold
// anything; none if it has ended.
func statFields(proc string, pid int) [][]byte {
	b, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}

// hasEnded tells it from the fields of a stat. A process whose first thread has
// ended looks dead while the others run on.
func hasEnded(fields [][]byte) bool {
	if state := fields[0][0]; state != 'Z' && state != 'X' {
		return false
	}
	return len(fields) < 18 || string(fields[17]) == "0" || string(fields[17]) == "1" // its threads
}

// IsStopped tells whether a process is suspended, by SIGSTOP or a key of its
// terminal. proc is /proc outside tests.
func IsStopped(proc string, pid int) bool {
	fields := statFields(proc, pid)
	return len(fields) > 0 && fields[0][0] == 'T'
}

// Parent is the parent of a process, 0 if it has ended. proc is /proc outside
// tests.
func Parent(proc string, pid int) int {
	fields := statFields(proc, pid)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// StartTicks tells when a process was started, in the kernel's ticks since boot:
// with its pid that names one process of a boot. proc is /proc outside tests.
func StartTicks(proc string, pid int) (uint64, bool) {
	fields := statFields(proc, pid)
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return ticks, err == nil
}

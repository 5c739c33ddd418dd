package engine

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Foreground tells which process group a terminal listens to.
func Foreground(terminal *os.File) (int, error) {
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0, fmt.Errorf("ask who has the terminal: %w", err)
	}
	return group, nil
}

// SetForeground makes a terminal listen to a process group of our session. Who
// does that from the background is stopped (SIGTTOU), unless it holds the signal
// off.
func SetForeground(terminal *os.File, group int) error {
	err := FromBackground(func() error { return unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPGRP, group) })
	if err != nil {
		return fmt.Errorf("hand the terminal over: %w", err)
	}
	return nil
}

// FromBackground does what a process in the background may be stopped for
// (SIGTTOU): it writes to its terminal or changes it.
func FromBackground(do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var off, before unix.Sigset_t
	off.Val[0] = 1 << (uint(syscall.SIGTTOU) - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &off, &before); err != nil {
		return err
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	return do()
}

// Settings are how a terminal treats what is typed and shown: whether it echoes,
// for instance.
func Settings(terminal *os.File) (*unix.Termios, error) {
	s, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("ask for the settings of the terminal: %w", err)
	}
	return s, nil
}

// SetSettings sets them.
func SetSettings(terminal *os.File, s *unix.Termios) error {
	err := FromBackground(func() error { return unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETS, s) })
	if err != nil {
		return fmt.Errorf("set the terminal as it was: %w", err)
	}
	return nil
}

// MindTerminal lets a child go on that a terminal has stopped: because it reads
// from one that listens to us, which then listens to it, or because somebody
// pressed Ctrl-Z, which would suspend it and not us. One that is stopped while
// the terminal listens to others stays so. handed tells whether the terminal was
// handed over.
func (p *Process) MindTerminal(terminal *os.File) (handed bool) {
	fields := statFields("/proc", p.pid)
	if len(fields) == 0 || fields[0][0] != 'T' {
		return false
	}
	group, err := Foreground(terminal)
	if err != nil || group != p.pid && group != syscall.Getpgrp() {
		return false
	}
	if group != p.pid {
		if SetForeground(terminal, p.pid) != nil {
			return false
		}
		handed = true
	}
	syscall.Kill(-p.pid, syscall.SIGCONT)
	return handed
}

package engine

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalEach sends a signal to each process that list gives, and to no other
// that has been given its number since: it is asked again once the processes
// are held. It passes over what is gone, and what may not be signalled.
func SignalEach(list func() []int, s syscall.Signal) {
	held := map[int]int{} // -1: the host forbids to hold it
	for _, pid := range list() {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			fd = -1
		}
		if err != unix.ESRCH {
			held[pid] = fd
		}
	}
	if len(held) == 0 {
		return
	}
	again := list()
	for pid, fd := range held {
		switch {
		case fd < 0 && slices.Contains(again, pid):
			_ = syscall.Kill(pid, s)
		case fd >= 0 && slices.Contains(again, pid):
			_ = unix.PidfdSendSignal(fd, s, nil, 0)
		}
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

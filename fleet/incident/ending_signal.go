package incident

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName gives SIGSEGV for 11, and "" for what is no signal.
func signalName(n int) string {
	if n <= 0 || n > 64 {
		return ""
	}
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	if n < 34 {
		return "signal " + strconv.Itoa(n)
	}
	return strings.TrimSuffix("SIGRTMIN+"+strconv.Itoa(n-34), "+0")
}

// endingSignal is the signal behind an exit status of a shell, which says 128 and more.
func endingSignal(status int) string {
	if status <= 128 {
		return ""
	}
	return signalName(status - 128)
}

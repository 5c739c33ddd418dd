package fleet

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/systemd"
)

// ending says in words how the last incarnation of a unit ended, "" where systemd does not know that it has.
func ending(u *systemd.Unit) string {
	wasReady := !u.MainStarted.IsZero() && u.ActiveLeft.After(u.MainStarted)
	switch {
	case u.Result == "timeout" && wasReady:
		return "a time limit ended it after it was ready (RuntimeMaxSec=, or TimeoutStopSec= at its stop)"
	case u.Result == "timeout" && strings.HasPrefix(u.Type, "notify"):
		return fmt.Sprintf("READY=1 did not come within TimeoutStartSec=%s (Type=%s)", u.TimeoutStart, u.Type)
	case u.Result == "timeout":
		return fmt.Sprintf("it was not ready within its start limit of %s", u.TimeoutStart)
	case u.Result == "start-limit-hit":
		return fmt.Sprintf("it was started too often in a row, the main process ended with status %d", u.ExecMainStatus)
	case u.Result == "watchdog":
		return "its watchdog was not served in time"
	case u.Result == "oom-kill":
		return "a process of it was killed for want of memory"
	case u.Result == "resources":
		return "systemd could not provide what the unit asks for"
	case u.ExecMainCode == 1:
		return fmt.Sprintf("the main process exited with status %d%s", u.ExecMainStatus, statusWord(u.ExecMainStatus))
	case u.ExecMainCode == 2 || u.ExecMainCode == 3:
		return fmt.Sprintf("the main process was killed by signal %d%s", u.ExecMainStatus, signalWord(u.ExecMainStatus))
	case u.Result == "exit-code":
		return "one of its processes failed before the main one ran (ExecStartPre= or the like)"
	}
	return ""
}

// statusWord explains the statuses with which systemd ends a process before the program runs.
func statusWord(status int) string {
	words := map[int]string{
		200: "its WorkingDirectory= could not be entered", 203: "its program could not be executed",
		208: "its standard input could not be set up", 209: "its standard output could not be set up",
		218: "its capabilities could not be set up, as with PrivateDevices= or ProtectKernelModules= in a user's unit",
		216: "its Group= could not be taken", 217: "its User= could not be taken", 226: "its namespaces could not be set up",
	}
	if word := words[status]; word != "" {
		return ": " + word
	}
	return ""
}

func signalWord(number int) string {
	if name := unix.SignalName(syscall.Signal(number)); name != "" {
		return " (" + name + ")"
	}
	return ""
}

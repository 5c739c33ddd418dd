package fakeengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// childVariable marks the servers that a front end starts: the first and the
// second.
const childVariable = "FAKE_ENGINE_CHILD"

// respawn is the exit code with which a child asks for its successor.
const respawn = 75

// front is a front end that starts the server and, once it has ended, another
// on the same port: its own process id stays.
func front(ctx context.Context, args []string, stderr io.Writer) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	for _, child := range []string{"1", "2"} {
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Env = append(os.Environ(), childVariable+"="+child)
		cmd.Stdout, cmd.Stderr = stderr, stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = 5 * time.Second
		err := cmd.Run()
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return 0
		case errors.As(err, &exit) && exit.ExitCode() == respawn:
		case errors.As(err, &exit):
			return exit.ExitCode()
		case err != nil:
			fmt.Fprintln(stderr, err)
			return 1
		default:
			return 0
		}
	}
	return respawn
}

package testhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Command is a command inside, as root or as the host's user, in that user's home and with HOME, USER, PATH and, for
// the user, XDG_RUNTIME_DIR. name is looked up inside. Add to its Env before it is started; its Dir must stay empty:
// for another folder see [Host.CommandIn]. TERM, INT, HUP, QUIT, USR1 and USR2 are passed on to it. Its exit status is
// the command's; 128 and more stand for a signal, 125 for a failure to get inside, 126 and 127 for one to execute it.
// When ctx ends it is killed with all that it started.
func (h *Host) Command(ctx context.Context, user, name string, args ...string) *exec.Cmd {
	return h.CommandIn(ctx, user, "", name, args...)
}

// CommandIn is [Host.Command] in a folder inside; an empty one is the user's home.
func (h *Host) CommandIn(ctx context.Context, user, dir, name string, args ...string) *exec.Cmd {
	v := visit{
		PID: h.PID, Started: h.Started, Cgroups: filepath.Join(h.Cgroup, enteredCgroup),
		Dir: dir, Command: append([]string{name}, args...),
	}
	home := "/root"
	env := []string{"PATH=" + systemPath, "SHELL=/bin/sh", "LANG=C.UTF-8", "USER=" + user, "LOGNAME=" + user}
	var wrong error
	switch user {
	case "root":
	case h.User:
		home, v.UID = h.Home, h.UID
		env = append(env, "XDG_RUNTIME_DIR=/run/user/"+strconv.Itoa(h.UID))
	default:
		wrong = fmt.Errorf("run %s inside: no user %q, only root and %s", name, user, h.User)
	}
	if v.Dir == "" {
		v.Dir = home
	}
	made, err := helper(enterName, v)
	if err != nil {
		wrong = err
		made = &exec.Cmd{Args: []string{enterName}}
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = made.Args
	cmd.Err = wrong
	cmd.Env = append(env, "HOME="+home)
	cmd.Cancel = func() error {
		// The command and its children first, so that none is left with our pipes open.
		kill := filepath.Join(commandCgroup(v.Cgroups, cmd.Process.Pid), "cgroup.kill")
		return errors.Join(ignoreMissing(os.WriteFile(kill, []byte("1"), 0)), cmd.Process.Kill())
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Run runs a command inside and returns its stdout. The error of a command that failed carries its stderr and
// wraps [exec.ExitError].
func (h *Host) Run(ctx context.Context, user, name string, args ...string) (string, error) {
	cmd := h.Command(ctx, user, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("run %s inside as %s: %w: %s",
			strings.Join(append([]string{name}, args...), " "), user, err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

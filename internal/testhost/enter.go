package testhost

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// visit is what the owner tells enter, and enter the command's first moment. The command's environment is theirs.
type visit struct {
	PID     int    // of the host's PID 1
	Started string // its start time
	Cgroups string // below which the command gets a cgroup of its own
	UID     int    // user and group to be
	Dir     string // folder to be in
	Command []string
}

// enterMain joins a host's namespaces, runs the command there and hands signals and the exit status through.
func enterMain() error {
	var v visit
	if err := parameters(&v); err != nil {
		return err
	}
	host, err := unix.PidfdOpen(v.PID, 0)
	if err != nil {
		return fmt.Errorf("enter host: %w", err)
	}
	if !alive(v.PID, v.Started) {
		return errors.New("enter host: it has ended")
	}
	cgroup := commandCgroup(v.Cgroups, os.Getpid())
	if err := os.Mkdir(cgroup, 0o755); err != nil {
		return fmt.Errorf("enter host: %w", err)
	}
	// Open it now: after setns the path leads elsewhere.
	folder, err := os.Open(v.Cgroups)
	if err != nil {
		return fmt.Errorf("enter host: %w", err)
	}
	if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("enter host: %w", err)
	}
	err = runInside(host, v)
	// If nothing of the command runs on, its cgroup goes, once we are out of it.
	if procs, open := unix.Openat(int(folder.Fd()), "cgroup.procs", unix.O_WRONLY|unix.O_CLOEXEC, 0); open == nil {
		_, _ = unix.Write(procs, []byte("0"))
		unix.Close(procs)
	}
	_ = unix.Unlinkat(int(folder.Fd()), filepath.Base(cgroup), unix.AT_REMOVEDIR)
	return err
}

// commandCgroup is the cgroup of the command that the enter helper pid runs.
func commandCgroup(cgroups string, pid int) string {
	return filepath.Join(cgroups, "command-"+strconv.Itoa(pid))
}

func runInside(host int, v visit) error {
	// A thread that shares its working folder with others may not change its mount namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter host: %w", err)
	}
	spaces := unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET |
		unix.CLONE_NEWCGROUP
	if err := unix.Setns(host, spaces); err != nil {
		return fmt.Errorf("enter host: %w", err)
	}
	cmd, err := helper(commandName, v)
	if err != nil {
		return err
	}
	cmd.Env = os.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("enter host: %w", err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	signal.Stop(signals)
	close(signals)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	status, known := exit.Sys().(syscall.WaitStatus)
	if known && status.Signaled() {
		return &exitStatus{128 + int(status.Signal())}
	}
	return &exitStatus{exit.ExitCode()}
}

// commandMain is inside: it becomes the user and then the command.
func commandMain() error {
	var v visit
	if err := parameters(&v); err != nil {
		return err
	}
	if err := limitPower(plan{}, ""); err != nil {
		return err
	}
	if v.UID != 0 {
		if err := errors.Join(syscall.Setgroups([]int{v.UID}), syscall.Setgid(v.UID), syscall.Setuid(v.UID)); err != nil {
			return fmt.Errorf("become user %d: %w", v.UID, err)
		}
	}
	// A change of user takes the parent-death signal away, so it is set after that. The parent is outside, which
	// reads as process 0; when it died already we have PID 1 for a parent.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if os.Getppid() != 0 {
		return errors.New("whoever started this has died")
	}
	if err := os.Chdir(v.Dir); err != nil {
		return err
	}
	program, err := exec.LookPath(v.Command[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return &exitStatus{127}
	}
	if err := syscall.Exec(program, v.Command, os.Environ()); err != nil {
		fmt.Fprintf(os.Stderr, "execute %s: %v\n", program, err)
		return &exitStatus{126}
	}
	return nil
}

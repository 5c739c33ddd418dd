package testhost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A machine is what a host cannot be: it has a kernel of its own (Debian's user-mode-linux, an ordinary program that
// needs no virtualization), and so a memory controller that MemoryMax= is enforced by, an OOM killer and a kernel log.
// A host shares those with the machine below, whose kernel may have given the controllers to another hierarchy.
// It costs more than a host: every system call inside is traced. So it runs one program, a test, and is gone.

const (
	machineTime   = 5 * time.Minute // bounds the life of a machine; it boots in some 6 s
	machineTest   = "ONEBIT_TESTHOST_MACHINE"
	machineKernel = "/usr/bin/linux.uml"
)

// Machine is the machine that a test runs in: as root, with a lingering user whose user manager runs.
type Machine struct {
	User string
	UID  int
	Home string
}

// course is what the owner tells a machine: a file in a folder that both see.
type course struct {
	Machine
	Share   string // that folder
	Memory  int64  // bytes
	Program string
	Args    []string
	Env     []string
	Dir     string
}

// InMachine runs body inside a machine of that memory in bytes, which it boots: the machine runs this very test again, alone,
// and there InMachine calls body. All files of the machine below are seen inside, and what is written stays inside,
// but for t.TempDir, which is lost. The test must be a top-level one. Where no machine can run it skips the test, or
// fails it when ONEBIT_CI is set.
func InMachine(t *testing.T, memory int64, body func(t *testing.T, m Machine)) {
	t.Helper()
	if text, found := os.LookupEnv(machineTest); found {
		var m Machine
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		body(t, m)
		return
	}
	if err := unableMachine(); err != nil {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	output, err := runMachine(t.Context(), memory, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=4m")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if !strings.Contains(output, "--- PASS: "+t.Name()+" ") {
		t.Fatalf("the test did not run inside:\n%s", output)
	}
	t.Log(output)
}

// unableMachine tells why no machine can run here, or gives nil.
func unableMachine() error {
	if err := errors.Join(haveRoot(), haveSystemd(), haveBus()); err != nil {
		return fmt.Errorf("no test machine: %w", err)
	}
	if _, err := os.Stat(machineKernel); err != nil {
		return fmt.Errorf("no test machine: install user-mode-linux: %w", err)
	}
	return nil
}

// runMachine boots a machine, runs this program inside with these arguments and returns what it wrote.
func runMachine(ctx context.Context, memory int64, args ...string) (output string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("start test machine: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("start test machine: %w", err)
	}
	share, err := os.MkdirTemp("/var/tmp", "onebit-testmachine-")
	if err != nil {
		return "", fmt.Errorf("start test machine: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(share)) }()
	m := Machine{User: "ai", UID: 20000 + rand.IntN(40000), Home: "/home/ai"}
	told, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("start test machine: %w", err)
	}
	c := course{
		Machine: m, Share: share, Memory: memory, Program: program, Args: args, Dir: dir,
		Env: append(os.Environ(), machineTest+"="+string(told)),
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("start test machine: %w", err)
	}
	if err := errors.Join(os.WriteFile(c.file("course"), text, 0o600), os.Symlink(program, c.file(machineBootName)),
		os.Symlink(program, c.file(machineWorkName))); err != nil {
		return "", fmt.Errorf("start test machine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, machineTime)
	defer cancel()
	console, ended := c.run(ctx)
	out, err := os.ReadFile(c.file("output"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	status, err := os.ReadFile(c.file("status"))
	if err != nil {
		return string(out), fmt.Errorf("run test machine: it ended before its program did: %w; its console ends: %q",
			errors.Join(ctx.Err(), ended, err), tail(console, 2000))
	}
	if string(status) != "0" {
		return string(out), fmt.Errorf("run test machine: its program ended with status %s", status)
	}
	return string(out), nil
}

func (c course) file(name string) string { return filepath.Join(c.Share, name) }

// run runs the machine until it ends, and returns what its console showed.
func (c course) run(ctx context.Context) ([]byte, error) {
	made, err := helper(machineName, c)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Args = made.Args
	cmd.Env = []string{"PATH=" + systemPath, "HOME=" + c.Share} // the kernel keeps files of its own in its home
	cmd.Dir = c.Share
	var console bytes.Buffer
	cmd.Stdout, cmd.Stderr = &console, &console
	cmd.WaitDelay = 5 * time.Second
	// In a process namespace of its own, whose end is the end of all that the kernel started.
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Setsid: true, Pdeathsig: syscall.SIGKILL,
	}
	runtime.LockOSThread() // the parent-death signal is that of a thread
	defer runtime.UnlockOSThread()
	err = cmd.Run()
	return console.Bytes(), err
}

// machineMain is PID 1 of the machine's process namespace, outside of the machine: it runs the kernel.
func machineMain() error {
	var c course
	if err := parameters(&c); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	cmd := exec.Command(machineKernel, fmt.Sprintf("mem=%dM", c.Memory>>20), "root=none", "rootfstype=hostfs",
		"rootflags=/", "ro", "con=null", "con0=null,fd:1", "quiet", "init="+c.file(machineBootName))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run the machine's kernel: %w", err)
	}
	return nil
}

package testhost

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// plan is what the owner tells the keeper and the keeper tells boot.
type plan struct {
	Base    string // folder of hosts
	Image   bool   // keep the files in an ext4 image
	Cgroups string // mount point of the unified hierarchy
	User    string
	UID     int
	Others  []string // folders of the machine that are other mounts than /

	// The keeper sets these.
	ID, Dir, Cgroup string
}

// report is what the keeper tells the owner once PID 1 runs, and the sweeper if it dies.
type report struct {
	ID, Dir, Cgroup string
	PID             int    // of PID 1, as the machine sees it
	Started         string // its start time, which tells it from a later process of that number
	Error           string `json:",omitempty"`
}

// keeperMain makes a host, keeps it until its stdin ends, and removes it.
func keeperMain() error {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE, unix.SIGQUIT)
	host, err := keep()
	if err != nil {
		return json.NewEncoder(os.Stdout).Encode(report{Error: err.Error()})
	}
	if err := json.NewEncoder(os.Stdout).Encode(host.report); err == nil {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the owner
	}
	return host.remove()
}

// kept is a host in the keeper's hands.
type kept struct {
	report
	lock *os.File
	boot *exec.Cmd
}

// keep makes a host's folder and cgroup and starts its PID 1.
func keep() (k *kept, err error) {
	var p plan
	if err := parameters(&p); err != nil {
		return nil, err
	}
	k = &kept{}
	if err := k.makeDir(&p); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.remove())
		}
	}()
	p.ID, p.Dir = k.ID, k.Dir
	p.Cgroup = filepath.Join(p.Cgroups, cgroupPrefix+k.ID)
	k.Cgroup = p.Cgroup
	if err := k.save(); err != nil {
		return nil, err
	}
	for _, dir := range []string{p.Cgroup, filepath.Join(p.Cgroup, enteredCgroup)} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
	}
	log, err := os.OpenFile(filepath.Join(k.Dir, "log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	boot, err := helper(bootName, p)
	if err != nil {
		return nil, err
	}
	boot.Env = []string{"PATH=" + systemPath}
	boot.Stdout, boot.Stderr = log, log
	boot.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL, // of this thread, the main one
	}
	if err := boot.Start(); err != nil {
		return nil, fmt.Errorf("start the host's PID 1: %w", err)
	}
	k.boot, k.PID = boot, boot.Process.Pid
	if k.Started, err = startTime(k.PID); err != nil {
		return nil, err
	}
	return k, k.save()
}

// makeDir sweeps what dead keepers left and makes a folder of our own, with its lock held.
func (k *kept) makeDir(p *plan) error {
	b := &base{dir: p.Base}
	guard, err := b.open()
	if err != nil {
		return err
	}
	defer guard.Close()
	sweep(p.Base)
	if k.Dir, err = os.MkdirTemp(p.Base, "host-"); err != nil {
		return err
	}
	k.ID = strings.TrimPrefix(filepath.Base(k.Dir), "host-")
	k.lock, err = lock(filepath.Join(k.Dir, "lock"), true)
	return err
}

func (k *kept) save() error {
	text, err := json.Marshal(k.report)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(k.Dir, "state"), text, 0o600)
}

// remove ends the host and removes all that it left.
func (k *kept) remove() error {
	if k.boot != nil {
		_ = k.boot.Process.Kill()
		_ = k.boot.Wait() // returns when every process of the host is gone
	}
	err := discard(k.report)
	k.lock.Close()
	return err
}

// discard removes the cgroup and the folder of a host that has ended.
func discard(r report) error {
	var err error
	if r.Cgroup != "" {
		err = killCgroup(r.Cgroup)
	}
	return errors.Join(err, os.RemoveAll(r.Dir))
}

// sweep removes the hosts below base whose keeper is dead. The lock of base is held. What cannot be removed now
// stays for the next one.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, "host-*"))
	for _, dir := range dirs {
		held, err := lock(filepath.Join(dir, "lock"), false)
		if err != nil {
			continue
		}
		r := report{Dir: dir}
		if text, err := os.ReadFile(filepath.Join(dir, "state")); err == nil {
			var saved report
			if json.Unmarshal(text, &saved) == nil && saved.Dir == dir {
				r = saved
			}
		}
		if r.PID > 1 && alive(r.PID, r.Started) {
			_ = unix.Kill(r.PID, unix.SIGKILL)
		}
		_ = discard(r)
		held.Close()
	}
}

// processStat returns the fields of a process's stat file from its state on, and so without its name.
func processStat(pid int) ([]string, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	// The name, in brackets, may hold anything, brackets too.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return nil, fmt.Errorf("read state of process %d: %w", pid, fs.ErrInvalid)
	}
	return fields, nil
}

// startTime returns when a process started, in the kernel's ticks since boot.
func startTime(pid int) (string, error) {
	fields, err := processStat(pid)
	if err != nil {
		return "", err
	}
	return fields[19], nil
}

// alive tells whether process pid is still the one that started then, and no zombie.
func alive(pid int, started string) bool {
	fields, err := processStat(pid)
	return err == nil && fields[19] == started && fields[0] != "Z"
}

// readReport reads the keeper's report.
func readReport(from io.Reader) (*report, error) {
	line, err := bufio.NewReader(from).ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("hear from the host's keeper: %w", err)
	}
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("hear from the host's keeper: %w", err)
	}
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	return &r, nil
}

package systemd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Processes lists the processes of a unit, ascending: those of its control group and of the
// groups below it, so that the child of a front end counts wherever it was moved. procRoot is
// /proc and cgroupRoot /sys/fs/cgroup; where the tree of the second is not cgroup v2, or is
// another namespace's, the processes are found by what /proc says of each. A unit that does not
// run has none.
func Processes(procRoot, cgroupRoot string, u *Unit) ([]int, error) {
	if u.ControlGroup == "" {
		return nil, nil
	}
	group := filepath.Join(cgroupRoot, filepath.Clean("/"+u.ControlGroup))
	if _, err := os.Stat(filepath.Join(group, "cgroup.procs")); err != nil {
		return scanProcesses(procRoot, u.ControlGroup)
	}
	var pids []int
	err := filepath.WalkDir(group, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // ended while we looked
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case entry.Name() != "cgroup.procs":
			return nil
		}
		found, err := readPIDs(path)
		pids = append(pids, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the processes of %s: %w", u.ID, err)
	}
	slices.Sort(pids)
	return slices.Compact(pids), nil
}

// readPIDs reads a cgroup.procs file. A group that went away, or that holds threads only, has
// none of its own.
func readPIDs(path string) ([]int, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var pids []int
	for word := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if pid > 0 { // 0 stands for a process of another pid namespace
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// scanProcesses finds the processes of a control group and of those below it in /proc.
func scanProcesses(procRoot, group string) ([]int, error) {
	entries, err := os.ReadDir(procRoot)
	if err != nil {
		return nil, fmt.Errorf("look for the processes of %s: %w", group, err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(procRoot, entry.Name(), "cgroup"))
		if err == nil && inGroup(data, group) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids, nil
}

// inGroup reads a /proc/PID/cgroup: lines of hierarchy:controllers:path. The unified hierarchy
// has no controllers, and systemd's own on cgroup v1 is called name=systemd.
func inGroup(data []byte, group string) bool {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) != 3 || (fields[1] != "" && fields[1] != "name=systemd") {
			continue
		}
		if fields[2] == group || strings.HasPrefix(fields[2], strings.TrimSuffix(group, "/")+"/") {
			return true
		}
	}
	return false
}

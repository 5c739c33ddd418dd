package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ProcessesByService lists the processes of every service of a manager, by its name, in one walk
// over the control groups below the manager's own, group. A service that hands its group to
// programs of its own has all processes below it; only a user's manager, which is a service of the
// system's, does not have those of the user's services.
func ProcessesByService(procRoot, cgroupRoot, group string) (map[string][]int, error) {
	top := filepath.Join(cgroupRoot, filepath.Clean("/"+group))
	pids := map[string][]int{}
	if _, err := os.Stat(filepath.Join(top, "cgroup.procs")); err != nil {
		return pids, scanByService(procRoot, group, pids)
	}
	if err := walkGroup(top, "", pids); err != nil {
		return nil, fmt.Errorf("read the processes of the services: %w", err)
	}
	for _, list := range pids {
		slices.Sort(list)
	}
	return pids, nil
}

// walkGroup adds the processes of a control group and of those below it.
func walkGroup(dir, service string, pids map[string][]int) error {
	if service != "" {
		found, err := readPIDs(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return err
		}
		pids[service] = append(pids[service], found...)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // ended while we looked
	} else if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || isUserManager(service) && entry.Name() != "init.scope" {
			continue
		}
		if err := walkGroup(filepath.Join(dir, entry.Name()), outer(service, entry.Name()), pids); err != nil {
			return err
		}
	}
	return nil
}

func isUserManager(service string) bool {
	return strings.HasPrefix(service, "user@") && strings.HasSuffix(service, ".service")
}

// outer is the service of a control group, given that of the group above.
func outer(service, group string) string {
	if service == "" && strings.HasSuffix(group, ".service") {
		// A name that could be one of the kernel's own files has a "_" before it.
		return strings.TrimPrefix(group, "_")
	}
	return service
}

// scanByService does the same by what /proc says of each process.
func scanByService(procRoot, group string, pids map[string][]int) error {
	entries, err := os.ReadDir(procRoot)
	if err != nil {
		return fmt.Errorf("look for the processes of the services: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(filepath.Join(procRoot, entry.Name(), "cgroup"))
		if err != nil {
			continue
		}
		if service := serviceIn(data, group); service != "" {
			pids[service] = append(pids[service], pid)
		}
	}
	for _, list := range pids {
		slices.Sort(list)
	}
	return nil
}

// serviceIn finds the service of a process in its /proc/PID/cgroup.
func serviceIn(data []byte, group string) string {
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) != 3 || fields[1] != "" && fields[1] != "name=systemd" {
			continue
		}
		rest, ok := strings.CutPrefix(fields[2], strings.TrimSuffix(group, "/")+"/")
		if !ok {
			continue
		}
		service := ""
		for part := range strings.SplitSeq(rest, "/") {
			if isUserManager(service) && part != "init.scope" {
				return ""
			}
			service = outer(service, part)
		}
		return service
	}
	return ""
}

package testhost

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupPrefix  = "onebit-testhost-" // begins the name of a host's cgroup, a child of the hierarchy's root
	enteredCgroup = "entered"          // below it: the commands that were run inside
)

// findCgroups returns where the machine has the unified cgroup hierarchy mounted.
func findCgroups() (string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("find cgroup2: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		mount, super, _ := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(mount); strings.HasPrefix(super, "cgroup2 ") && len(fields) >= 5 {
			var stat unix.Statfs_t
			if err := unix.Statfs(fields[4], &stat); err == nil && stat.Flags&unix.ST_RDONLY == 0 {
				return fields[4], nil
			}
		}
	}
	if err := lines.Err(); err != nil {
		return "", fmt.Errorf("find cgroup2: %w", err)
	}
	return "", errors.New("find cgroup2: no writable mount of it")
}

// killCgroup kills every process of the cgroup at dir and of those below it, and removes them all. It waits until
// the last process is gone, but not for ever.
func killCgroup(dir string) error {
	if dir == "" || !strings.HasPrefix(filepath.Base(dir), cgroupPrefix) {
		return fmt.Errorf("remove cgroup %q: not a host's", dir)
	}
	var err error
	for range 200 {
		// Linux has it since 5.14; without it the death of PID 1 has to do.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0)
		if err = removeCgroup(dir); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("remove cgroup: %w", err)
}

func removeCgroup(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it or a part of it has just gone: what is left shows below
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if rm := unix.Rmdir(dirs[i]); rm != nil && rm != unix.ENOENT {
			err = errors.Join(err, &os.PathError{Op: "rmdir", Path: dirs[i], Err: rm})
		}
	}
	return err
}

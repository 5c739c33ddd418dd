package fleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// holder says in words which process holds the flock of a folder, "" where the kernel does not tell: not every file
// system numbers its files as it shows them.
func holder(proc, dir string) string { return words(proc, holderOf(proc, dir)) }

// holderOf is that process, 0 where the kernel does not tell.
func holderOf(proc, dir string) int {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return 0
	}
	locks, err := os.ReadFile(filepath.Join(proc, "locks"))
	if err != nil {
		return 0
	}
	return lockedBy(locks, fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino))
}

// words says in words which process it is, "" for none.
func words(proc string, pid int) string {
	if pid <= 0 {
		return ""
	}
	line, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cmdline"))
	if err != nil || len(line) == 0 {
		return fmt.Sprintf("process %d", pid)
	}
	const most = 200 // bytes of a command line that help to find it
	line = bytes.TrimRight(line[:min(len(line), most)], "\x00")
	return fmt.Sprintf("process %d (%q)", pid, strings.ReplaceAll(string(line), "\x00", " "))
}

// lockedBy finds the process that holds the flock of a file in /proc/locks, 0 for none. A line reads
// "1: FLOCK  ADVISORY  WRITE 4711 fe:00:1630218 0 EOF", one that waits has "->" after the number.
func lockedBy(locks []byte, file string) int {
	for line := range strings.Lines(string(locks)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil {
			return pid
		}
	}
	return 0
}

package engine

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Descendants lists the processes that descend from one and are not dead yet,
// however many steps away. What lost its parent descends from whoever adopted
// it. proc is /proc outside tests.
func Descendants(proc string, ancestor int) []int {
	children, _ := families(proc)
	var pids []int
	for next := []int{ancestor}; len(next) > 0; next = next[1:] {
		for _, pid := range children[next[0]] {
			if !slices.Contains(pids, pid) { // numbers may be given anew while we look
				pids, next = append(pids, pid), append(next, pid)
			}
		}
	}
	slices.Sort(pids)
	return pids
}

// Children lists the children of a process, also those that have ended and that
// it has not waited for: while one of its descendants lives it has a child, of
// either kind, if what loses its parent becomes its own. So where this finds
// none there is none. proc is /proc outside tests.
func Children(proc string, parent int) []int {
	living, dead := families(proc)
	return append(living[parent], dead[parent]...)
}

// HasChildren tells whether we have any.
func HasChildren() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return !errors.Is(err, unix.ECHILD)
}

// KillChildren sends SIGKILL to our children, but for some, as quickly as it can:
// it catches what goes on by starting another and ending. It tells which they
// were, also those that had ended, and may miss some. Nothing else may wait for
// what it kills meanwhile: until then their numbers are theirs.
func KillChildren(but ...int) (pids []int) {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, path := range lists {
		text, _ := os.ReadFile(path)
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil && !slices.Contains(but, pid) {
				_ = unix.Kill(pid, unix.SIGKILL)
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// families lists the children of each process, those that live and those that
// do not.
func families(proc string) (living, dead map[int][]int) {
	living, dead = map[int][]int{}, map[int][]int{}
	names, err := os.ReadDir(proc)
	if err != nil {
		return living, dead
	}
	for _, entry := range names {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// state ppid …
		fields := statFields(proc, pid)
		if len(fields) < 2 {
			continue
		}
		children := living
		if hasEnded(fields) {
			children = dead
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return living, dead
}

package engine

import (
	"os"
	"slices"
	"strconv"
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

// DeadChildren lists the children of a process that it has not waited for. proc
// is /proc outside tests.
func DeadChildren(proc string, parent int) []int {
	_, dead := families(proc)
	return dead[parent]
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
		if state := fields[0][0]; state == 'Z' || state == 'X' {
			children = dead
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return living, dead
}

package store

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// heldByStranger tells whether the lock that somebody holds alone on a store's
// folder is certainly not a removal's: flock(2) lets everybody who may read a
// folder lock it, and only its owner and root remove packages from it. proc is
// the root of the proc file system.
func heldByStranger(dir *os.File, proc string) bool {
	info, err := dir.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	locks, err := os.ReadFile(filepath.Join(proc, "locks"))
	if err != nil {
		return false
	}
	pids := lockHolders(locks, st.Ino)
	for _, pid := range pids {
		holder, err := os.Stat(filepath.Join(proc, strconv.Itoa(pid)))
		if err != nil {
			// It left its lock to a child. A removal hands it to nobody, and a dead
			// one's is gone.
			if os.IsNotExist(err) {
				continue
			}
			return false
		}
		if h, ok := holder.Sys().(*syscall.Stat_t); !ok || h.Uid == 0 || h.Uid == st.Uid {
			return false
		}
	}
	return len(pids) > 0
}

// lockHolders are the processes that hold a file with that inode number alone,
// by the text of /proc/locks (proc_locks(5)). Of two file systems with that
// number both are listed: which one is meant is not told in the same way by
// all.
func lockHolders(locks []byte, inode uint64) []int {
	var pids []int
	for line := range bytes.Lines(locks) {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF; "->" is one that waits.
		field := strings.Fields(string(line))
		if len(field) < 6 || field[1] != "FLOCK" || field[3] != "WRITE" {
			continue
		}
		at := strings.Split(field[5], ":")
		if at[len(at)-1] != strconv.FormatUint(inode, 10) {
			continue
		}
		if pid, err := strconv.Atoi(field[4]); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

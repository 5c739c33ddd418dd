package fleet

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestLockedBy(t *testing.T) {
	locks := []byte("1: POSIX  ADVISORY  WRITE 11 fe:00:7 0 EOF\n2: FLOCK  ADVISORY  WRITE 24382 fe:00:7 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 99 fe:00:7 0 EOF\n3: FLOCK\n")
	for file, want := range map[string]int{"fe:00:7": 24382, "fe:00:77": 0, "": 0} {
		if got := lockedBy(locks, file); got != want {
			t.Errorf("%q: %d, want %d", file, got, want)
		}
	}
}

// Who waits in vain for a command that hangs is told which it is.
func TestLockUnitNamesTheHolder(t *testing.T) {
	h := &Host{UnitDir: t.TempDir(), LockWait: 20 * time.Millisecond}
	done, _, err := h.lockUnit(t.Context(), "u.service")
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	told := holder("/proc", h.dropInDir("u.service")) // not on every file system
	_, _, err = h.lockUnit(t.Context(), "u.service")
	if !errors.Is(err, ErrBusy) || told != "" && !strings.Contains(err.Error(), fmt.Sprintf("process %d (", os.Getpid())) {
		t.Errorf("held by this process: %v", err)
	}
}

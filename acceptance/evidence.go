package acceptance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ArmsDir is the folder of an evidence folder that has one folder a server life.
const ArmsDir = "arms"

// ArmDir gives the folder of the n-th life, from 1, below an evidence folder.
func ArmDir(evidence string, n int) string {
	return filepath.Join(evidence, ArmsDir, fmt.Sprintf("%04d", n))
}

// ErrRunning says that another runner holds the evidence folder.
var ErrRunning = errors.New("a run is going on in this evidence folder")

// holdFolder takes the lock that says that a run is alive. The kernel gives it
// back when we end, however we do. The error wraps ErrRunning if another has it.
func holdFolder(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the evidence folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: %s", ErrRunning, dir)
	} else if err != nil {
		err = fmt.Errorf("lock the evidence folder: %w", err)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

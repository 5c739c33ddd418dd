package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// AnswersName is the file of a life's raw answers, in its folder.
const AnswersName = "answers.zst"

// ArmsDir is the folder of an evidence folder that has one folder a server life.
const ArmsDir = "arms"

// ArmDir gives the folder of the n-th life, from 1, below an evidence folder.
func ArmDir(evidence string, n int) string {
	return filepath.Join(evidence, ArmsDir, fmt.Sprintf("%04d", n))
}

// sumEvidence is the digest of a file of a life, "" if there is none.
func sumEvidence(ctx context.Context, path string) (string, error) {
	digest, _, err := sumInput(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return digest, err
}

// setAside renames the folder of a life that the ledger does not have: a ledger
// loses its end when the host goes down, and what it told of stays.
func setAside(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.lost-%d", dir, n)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(dir, aside)
		}
	}
}

// ErrRunning says that another runner holds the evidence folder.
var ErrRunning = errors.New("a run is going on in this evidence folder")

// holdFolder takes the lock that says that a run is alive. The kernel gives it
// back when we end, however we do. The error wraps ErrRunning if another has it.
func holdFolder(dir string) (*os.File, error) {
	const tries = 5 // whoever looks whether a run is alive holds it for a moment
	for try := 1; ; try++ {
		f, err := lockFolder(dir, unix.LOCK_EX)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return f, err
		}
		if try == tries {
			return nil, fmt.Errorf("%w: %s", ErrRunning, dir)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// isHeld tells whether a run is alive in a folder.
func isHeld(dir string) (bool, error) {
	f, err := lockFolder(dir, unix.LOCK_SH)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}

// Running tells whether a run goes on in an evidence folder.
func Running(dir string) bool {
	held, err := isHeld(dir)
	return err == nil && held
}

func lockFolder(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the evidence folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the evidence folder %s: %w", dir, err)
	}
	return f, nil
}

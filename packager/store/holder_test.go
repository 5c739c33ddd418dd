package store

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLockHolders(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 10 fe:00:131 0 EOF
2: FLOCK  ADVISORY  WRITE 11 fe:00:131 0 EOF
2: -> FLOCK  ADVISORY  WRITE 12 fe:00:131 0 EOF
3: FLOCK  ADVISORY  READ  13 fe:00:131 0 EOF
4: FLOCK  ADVISORY  WRITE 14 fe:00:1310 0 EOF
5: FLOCK  ADVISORY  WRITE 15 00:2a:131 0 EOF
6: FLOCK  ADVISORY  WRITE 0 00:2a:131 0 EOF
7: FLOCK
`
	if got := lockHolders([]byte(locks), 131); !slices.Equal(got, []int{11, 15}) {
		t.Errorf("got %v", got)
	}
}

func FuzzLockHolders(f *testing.F) {
	f.Add([]byte("2: FLOCK  ADVISORY  WRITE 11 fe:00:131 0 EOF\n"))
	f.Fuzz(func(t *testing.T, locks []byte) {
		for _, pid := range lockHolders(locks, 131) {
			if pid <= 0 {
				t.Errorf("process %d", pid)
			}
		}
	})
}

// Another account's lock on the machine's store keeps nobody from a rollback; its owner's does.
func TestStrangersLock(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatal("it takes root to be another account")
		}
		t.Skip("it takes root to be another account")
	}
	s, machine := newStore(t), newStore(t)
	s.Proc = "/proc"
	s.Also = []*Store{machine}
	if err := os.MkdirAll(machine.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := machine.Dir; dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const nobody = 65534
	for uid, busy := range map[uint32]bool{nobody: false, 0: true} {
		cmd := exec.Command("flock", "-x", machine.Dir, "sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		d, err := os.Open(machine.Dir)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			if unix.Flock(int(d.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil {
				break
			}
			_ = unix.Flock(int(d.Fd()), unix.LOCK_UN)
			if time.Now().After(deadline) {
				t.Fatal("flock(1) takes no lock")
			}
		}
		unlock, err := s.LockShared(context.Background())
		if got := errors.Is(err, ErrBusy); got != busy {
			t.Errorf("locked by uid %d: %v", uid, err)
		}
		if err == nil {
			unlock()
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		// sleep(1), which has the lock too, may end a little after flock(1).
		if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
			t.Error(err)
		}
		d.Close()
	}
}

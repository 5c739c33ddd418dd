package store

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// requireDisk mounts a new file system of that kind and size, on a file, and
// returns its folder. Without root or mkfs it skips the test with the reason,
// or fails it when ONEBIT_CI is set.
func requireDisk(t *testing.T, kind, size string, options ...string) string {
	t.Helper()
	mkfs, err := exec.LookPath("mkfs." + kind)
	if err == nil && os.Geteuid() != 0 {
		err = fmt.Errorf("mounting %s needs root", kind)
	}
	if err != nil {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	dir := t.TempDir()
	image, at := filepath.Join(dir, "image"), filepath.Join(dir, "disk")
	for _, args := range [][]string{
		{"truncate", "-s", size, image},
		append(append([]string{mkfs, "-q"}, options...), image),
		{"mkdir", at},
		{"mount", "-o", "loop", image, at},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, out)
		}
	})
	return at
}

// diskStore is a store on its own file system.
func diskStore(t *testing.T, at string) *Store {
	t.Helper()
	s := Open(filepath.Join(at, "share"), filepath.Join(at, "state"))
	s.Proc = t.TempDir()
	return s
}

func freeBytes(t *testing.T, dir string) int64 {
	t.Helper()
	unix.Sync()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bfree) * st.Bsize
}

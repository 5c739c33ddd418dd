package store

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestLeftovers(t *testing.T) {
	s := newStore(t)
	now := time.Now()
	if left, err := s.Leftovers(now); err != nil || len(left) > 0 {
		t.Fatalf("without staging: %q, %v", left, err)
	}
	dead, busy := filepath.Join(s.staging(), "install-1"), filepath.Join(s.staging(), "install-2")
	for _, dir := range []string{dead, busy} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := openDir(busy)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(s.staging(), "stranger") // what cannot be opened counts by its age
	if err := os.Symlink("nothing", link); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Leftovers(now); err != nil || !slices.Equal(left, []string{dead}) {
		t.Errorf("left over are %q (%v), want %q", left, err, dead)
	}
	left, err := s.Leftovers(now.Add(48 * time.Hour))
	slices.Sort(left)
	if want := []string{dead, link}; err != nil || !slices.Equal(left, want) {
		t.Errorf("two days later %q (%v), want %q", left, err, want)
	}
}

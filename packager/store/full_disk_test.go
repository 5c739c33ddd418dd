package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fill takes all the space that is left.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := f.Sync(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// A disk that is full, or becomes so midway, ends an install with that error;
// what was installed stays whole, staging is empty, and with room again it
// works. A removal needs no room.
func TestFullDisk(t *testing.T) {
	at := requireDisk(t, "ext4", "96M")
	s := diskStore(t, at)
	first := install(t, s, "x", "a")
	m, contents := bigSample("b", 0)
	big := archive(t, m, contents)
	filler := filepath.Join(at, "filler")
	untouched := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", what, err)
		}
		wantList(t, s, "hrx-x ok")
		wantEmptyStaging(t, s)
		wantVerified(t, s, first)
	}
	_, _, err := s.Install(context.Background(), big, func(int64, int64) {
		if _, err := os.Lstat(filler); err != nil {
			fill(t, filler)
		}
	})
	untouched("filled midway", err)
	_, _, err = s.Install(context.Background(), big, nil)
	untouched("full before", err)
	if err == nil || !strings.Contains(err.Error(), "make room") && !strings.Contains(err.Error(), "no space left") {
		t.Errorf("it says %v", err)
	}
	if err := s.Remove(context.Background(), first, nil); err != nil {
		t.Errorf("remove on a full disk: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	p, _, err := s.Install(context.Background(), big, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantVerified(t, s, p)
}

// A disk without inodes left says so before anything is unpacked.
func TestNoInodes(t *testing.T) {
	at := requireDisk(t, "ext4", "64M", "-N", "32")
	s := diskStore(t, at)
	install(t, s, "x", "a")
	for i := 0; ; i++ {
		var st unix.Statfs_t
		if err := unix.Statfs(at, &st); err != nil {
			t.Fatal(err)
		}
		if st.Ffree <= 5 {
			break
		}
		write(t, filepath.Join(at, "used", strconv.Itoa(i)), "")
	}
	_, _, err := s.Install(context.Background(), sampleArchive(t, "y", "b"), nil)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "inodes") {
		t.Errorf("got %v", err)
	}
	wantList(t, s, "hrx-x ok")
	wantEmptyStaging(t, s)
}

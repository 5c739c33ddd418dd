package packager

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// manyFiles is from how many on one sync of the file system is quicker than
	// a sync of each file.
	manyFiles = 256
	// maxForeign is how much of other programs' writing, in bytes, such a sync
	// may have to wait for.
	maxForeign = 256 << 20
)

// wholeSync syncs a file system with all that is on it.
type wholeSync struct {
	// dir was opened before anything was written: from then on the kernel tells
	// it of every error.
	dir *os.File
}

// newWholeSync returns nil where the files had better be synced one by one:
// where they are few; where much else waits to be written, such as a model
// that is being downloaded; where the kernel (before Linux 5.8) keeps errors
// to itself; and on a file system that is not known to put all on stable
// storage when it is asked to, such as one of a server or of FUSE.
func newWholeSync(root *os.Root, m *Manifest) (*wholeSync, error) {
	if len(m.Files) < manyFiles || !syncfsTells() || waiting() > maxForeign {
		return nil, nil
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	if !onDisk(dir) {
		return nil, dir.Close()
	}
	return &wholeSync{dir}, nil
}

// onDisk tells a file system that syncfs(2) makes durable.
func onDisk(dir *os.File) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(int(dir.Fd()), &st) != nil {
		return false
	}
	switch st.Type {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return true
	}
	return false
}

// syncfsTells tells whether this kernel's syncfs(2) returns errors of writing.
func syncfsTells() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 8
}

// waiting is how many bytes this machine has still to write to its disks.
func waiting() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return maxForeign + 1 // it may be any number
	}
	var sum int64
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 2 || field[0] != "Dirty:" && field[0] != "Writeback:" {
			continue
		}
		if kib, err := strconv.ParseInt(field[1], 10, 54); err == nil {
			sum += kib << 10
		}
	}
	return sum
}

func (s *wholeSync) run() error {
	_, err := again(func() (int, error) { return 0, unix.Syncfs(int(s.dir.Fd())) })
	if err != nil {
		return fmt.Errorf("sync the file system of %s: %w", s.dir.Name(), err)
	}
	return nil
}

func (s *wholeSync) close() {
	if s != nil {
		_ = s.dir.Close()
	}
}

package testhost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// baseName is the folder that holds all hosts of a machine, inside a candidate folder.
const baseName = "onebit-testhost"

// base is where hosts are kept.
type base struct {
	dir   string
	fs    string // its file system
	image bool   // it is no disk: hosts keep their files in an ext4 image there
}

// findBase chooses the first of the candidate folders that lies on a disk file system; failing that, the first
// that can hold an image; tmpfs never.
func findBase(candidates []string) (*base, error) {
	var second *base
	var refused []error
	for _, dir := range candidates {
		if dir == "" {
			continue
		}
		name, disk, err := fileSystem(dir)
		switch {
		case err != nil:
			refused = append(refused, err)
		case disk:
			return &base{dir: filepath.Join(dir, baseName), fs: name}, nil
		case name == "overlay" && second == nil:
			second = &base{dir: filepath.Join(dir, baseName), fs: "ext4 image on " + name, image: true}
		default:
			refused = append(refused, fmt.Errorf("%s is on %s", dir, name))
		}
	}
	if second != nil {
		return second, nil
	}
	return nil, fmt.Errorf("find a disk file system for the host: %w", errors.Join(refused...))
}

// fileSystem names the file system of dir and tells whether it is one of a disk.
func fileSystem(dir string) (name string, disk bool, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "", false, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	switch stat.Type {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4", true, nil
	case unix.XFS_SUPER_MAGIC:
		return "xfs", true, nil
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs", true, nil
	case unix.F2FS_SUPER_MAGIC:
		return "f2fs", true, nil
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay", false, nil
	case unix.TMPFS_MAGIC:
		return "tmpfs", false, nil
	}
	return fmt.Sprintf("a file system of type %#x", stat.Type), false, nil
}

// open makes the base folder if need be, and takes its lock until the returned file is closed.
func (b *base) open() (*os.File, error) {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return nil, fmt.Errorf("open folder of hosts: %w", err)
	}
	info, err := os.Lstat(b.dir)
	if err != nil {
		return nil, fmt.Errorf("open folder of hosts: %w", err)
	}
	// Its parent may be writable by all, so it may be another's trap.
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !known || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("open folder of hosts: %s is not a folder that only we can write", b.dir)
	}
	return lock(filepath.Join(b.dir, "lock"), true)
}

var errLocked = errors.New("is locked")

// lock takes the lock of a file, which is made if need be; without wait it gives errLocked if another has it.
func lock(path string, wait bool) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err = unix.Flock(int(file.Fd()), how)
		if err != unix.EINTR {
			break
		}
	}
	if err == nil {
		return file, nil
	}
	file.Close()
	if err == unix.EWOULDBLOCK {
		err = errLocked
	}
	return nil, &os.PathError{Op: "lock", Path: path, Err: err}
}

package systemd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// OpenRegular opens a file for reading if it is a regular one. Anybody can have a link lie where
// units lie, and some devices do something as soon as root opens them (a watchdog starts): so the
// type is looked at first, and f is nil for what is no regular file, or one that the kernel keeps
// for root alone, such as its log. Reads do not wait: see NoWait.
func OpenRegular(path string) (f *os.File, info fs.FileInfo, err error) {
	at, err := open(path, unix.O_PATH)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	handle := os.NewFile(uintptr(at), path)
	defer handle.Close()
	info, err = handle.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 && ofTheKernel(at) {
		return nil, info, err
	}
	fd, err := open(filepath.Join("/proc/self/fd", strconv.Itoa(at)), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("open %s: there is no /proc", path)
	case err != nil:
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), info, nil
}

func open(path string, flags int) (fd int, err error) {
	for {
		if fd, err = unix.Open(path, flags|unix.O_CLOEXEC, 0); !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// ofTheKernel says whether a file has no bytes but those that the kernel makes when it is read.
func ofTheKernel(fd int) bool {
	var system unix.Statfs_t
	if err := unix.Fstatfs(fd, &system); err != nil {
		return false
	}
	switch int64(system.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC:
		return true
	}
	return false
}

// errNoFile is wrapped for what is there and no regular file.
var errNoFile = errors.New("not a regular file")

// readFile reads a unit file or drop-in. A device is taken for /dev/null, as systemd does.
func readFile(name string) ([]byte, error) {
	file, info, err := OpenRegular(name)
	if err != nil {
		return nil, err
	}
	if file == nil && info.Mode()&fs.ModeDevice != 0 {
		return nil, nil
	}
	return readOpen(file, name, maxFile)
}

// readOpen reads a file that OpenRegular has opened, and closes it.
func readOpen(file *os.File, name string, limit int) ([]byte, error) {
	if file == nil {
		return nil, fmt.Errorf("%s: %w", name, errNoFile)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(NoWait(file), int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		if limit == maxFile {
			return nil, fmt.Errorf("%s: %w", name, ErrTooBig)
		}
		return nil, fmt.Errorf("%s: %w", name, ErrTooMuch)
	}
	return data, nil
}

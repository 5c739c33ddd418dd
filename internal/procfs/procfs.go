// Package procfs reads the small text files of /proc and /sys, and what lies where a small file should.
package procfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// most is how much of a file is read, in bytes: more than any of them has.
const most = 1 << 20

// Text reads a file; "" if it cannot.
func Text(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(b)
}

// ErrNoFile is wrapped for what is there and no file that can be read whole: a FIFO, a device, or one without an end.
var ErrNoFile = errors.New("not a regular file of a size that is sane")

// Read reads a regular file of at most 1 MiB. It waits for nobody: a FIFO without a writer would hold whoever opens it.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, ErrNoFile)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(b) > most {
		err = fmt.Errorf("read %s: %w: more than 1 MiB", path, ErrNoFile)
	}
	return b, err
}

// FirstLine is the first line of a file without the blanks around it; "" if it cannot be read.
func FirstLine(path string) string {
	line, _, _ := strings.Cut(Text(path), "\n")
	return strings.TrimSpace(line)
}

// Counter finds the number after a name at the beginning of a line, such as "MemAvailable:" in /proc/meminfo.
func Counter(path, name string) (int64, bool) { return counter(Text(path), name) }

func counter(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == name {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return n, true
			}
			return 0, false
		}
	}
	return 0, false
}

package acceptance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

var errNoFile = errors.New("not a regular file")

// openInput opens a file that this package is given. Anything but a regular
// file is refused, at once: a pipe that nobody writes to, or a device without
// an end, must not hang the program.
func openInput(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := regular(f); err != nil {
		return nil, err
	}
	return f, nil
}

// regular closes what is no regular file, and refuses it.
func regular(f *os.File) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is %w", f.Name(), errNoFile)
	}
	if err != nil {
		f.Close()
	}
	return err
}

func readInput(path string) ([]byte, error) {
	f, err := openInput(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// sumInput gives size and digest of a file; models are large, so the context
// ends it.
func sumInput(ctx context.Context, path string) (digest string, size int64, err error) {
	f, err := openInput(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	for buf := make([]byte, 1<<20); ; {
		if err := ctx.Err(); err != nil {
			return "", 0, err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		size += int64(n)
		if err == io.EOF {
			return hex.EncodeToString(h.Sum(nil)), size, nil
		}
		if err != nil {
			return "", 0, err
		}
	}
}

package testhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bring copies a file or folder of the machine into the host's /opt/onebit, readable by all, and returns its path
// inside.
func (h *Host) Bring(path string) (string, error) {
	inside := filepath.Join("/opt/onebit", filepath.Base(path))
	to := h.Outside(inside)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return "", fmt.Errorf("bring %s into the host: %w", path, err)
	}
	if err := errors.Join(os.RemoveAll(to), bring(path, to)); err != nil {
		return "", fmt.Errorf("bring %s into the host: %w", path, err)
	}
	return inside, nil
}

func bring(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return copyFile(from, to, info.Mode().Perm()|0o444)
	}
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			return os.Mkdir(target, info.Mode().Perm()|0o755)
		case entry.Type()&os.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case entry.Type().IsRegular():
			return copyFile(path, target, info.Mode().Perm()|0o444)
		}
		return nil
	})
}

func copyFile(from, to string, perm os.FileMode) error {
	// While a program being written is open, a process forked at that moment would hold it open too and make it "busy".
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(perm), out.Close())
}

// MountSmall mounts an empty tmpfs of size bytes at path inside, which is made if need be and given to the user: a
// file system to fill.
func (h *Host) MountSmall(ctx context.Context, path string, size int64) error {
	options := fmt.Sprintf("size=%d,uid=%d,gid=%d,mode=0755", size, h.UID, h.UID)
	if _, err := h.Run(ctx, "root", "mkdir", "-p", path); err != nil {
		return fmt.Errorf("mount a small file system at %s: %w", path, err)
	}
	if _, err := h.Run(ctx, "root", "mount", "-t", "tmpfs", "-o", options, "tmpfs", path); err != nil {
		return fmt.Errorf("mount a small file system at %s: %w", path, err)
	}
	return nil
}

// Fill writes the file at path inside until its file system has no byte left. Remove the file to make room again.
func (h *Host) Fill(path string) error {
	file, err := os.Create(h.Outside(path))
	if err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; {
		_, err := file.Write(make([]byte, size))
		switch {
		case errors.Is(err, unix.ENOSPC):
			size /= 2
		case err != nil:
			return fmt.Errorf("fill disk: %w", err)
		}
	}
	return nil
}

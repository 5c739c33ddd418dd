package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"golang.org/x/sys/unix"
)

// ErrDifferent is wrapped when another file, or another package, has the name
// of one that is built.
var ErrDifferent = errors.New("a package is never replaced by another of its name")

type output struct {
	path         string
	size         int64
	sha256       string
	alreadyThere bool
}

// writeOutput makes the file at path with what write writes: whole, synced
// and in one step, or not at all. Before it gets its name, check, which may be
// nil, sees what was written. If the same bytes are there already they stay;
// other bytes are an error that wraps [ErrDifferent] and fs.ErrExist.
func writeOutput(ctx context.Context, path string, write func(io.Writer) error, check func(io.Reader) error) (*output, error) {
	dir := filepath.Dir(path)
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make output folder: %w", err)
	}
	f, publish, err := create(dir)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	defer f.Close()
	sum := sha256.New()
	count := &counter{}
	if err := write(io.MultiWriter(f, sum, count)); err != nil {
		return nil, errors.Join(err, publish(""))
	}
	out := &output{path: path, size: count.n, sha256: hex.EncodeToString(sum.Sum(nil))}
	synced := make(chan error, 1)
	go func() { synced <- f.Sync() }() // the disk works while check does
	var checkErr error
	if check != nil {
		checkErr = check(io.NewSectionReader(f, 0, count.n))
	}
	err = <-synced
	if checkErr != nil {
		return nil, errors.Join(checkErr, publish(""))
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, errors.Join(err, publish("")))
	}
	err = publish(path)
	if errors.Is(err, fs.ErrExist) {
		out.alreadyThere = true
		err = compare(ctx, path, out)
	} else if err == nil {
		err = atomicfile.SyncDir(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return out, nil
}

// create opens a new file in dir. publish gives it its name, which must be
// free, or with "" drops it.
func create(dir string) (f *os.File, publish func(path string) error, err error) {
	f, publish, err = createUnnamed(dir)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EINVAL) {
		return createNamed(dir)
	}
	return f, publish, err
}

// createUnnamed makes a file that has no name, so that nothing is left of it
// if this process is killed.
func createUnnamed(dir string) (*os.File, func(path string) error, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, nil, &fs.PathError{Op: "create file in", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir, "(unnamed)"))
	if err := f.Chmod(0o644); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, func(path string) error {
		if path == "" {
			return nil
		}
		proc := "/proc/self/fd/" + strconv.Itoa(fd)
		if err := unix.Linkat(unix.AT_FDCWD, proc, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
			return &fs.PathError{Op: "link", Path: path, Err: err}
		}
		return nil
	}, nil
}

// createNamed is for file systems that have no files without a name.
func createNamed(dir string) (*os.File, func(path string) error, error) {
	var f *os.File
	for {
		var err error
		if f, err = os.CreateTemp(dir, workPattern); err != nil {
			return nil, nil, err
		}
		if err = holdWork(f, f.Name()); err == nil {
			break
		}
		if err = errors.Join(f.Close(), err); !taken(err) {
			return nil, nil, errors.Join(err, os.Remove(f.Name()))
		}
	}
	if err := f.Chmod(0o644); err != nil {
		return nil, nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, func(path string) error {
		var err error
		if path != "" {
			err = atomicfile.RenameNew(f.Name(), path)
		}
		if path == "" || err != nil {
			return errors.Join(err, os.Remove(f.Name()))
		}
		return nil
	}, nil
}

// compare is nil if the file at path is what would have been written.
func compare(ctx context.Context, path string, want *output) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	different := fmt.Errorf("%w: give this one another id with --id, or build into another folder: %w", ErrDifferent, fs.ErrExist)
	if !info.Mode().IsRegular() || info.Size() != want.size {
		return different
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != want.sha256 {
		return different
	}
	return ctx.Err()
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

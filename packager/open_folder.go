package packager

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// openFolder is a folder of the tree that is extracted. A file in it is one
// step away, whatever becomes of the path. It is closed when the last of those
// who entered leaves.
type openFolder struct {
	path string
	dir  *os.File
	fd   int
	in   atomic.Int32
}

// move leaves f, which may be nil, and enters the folder of that path, unless
// it is the same.
func (f *openFolder) move(root *os.Root, path string) (*openFolder, error) {
	if f != nil && f.path == path {
		return f, nil
	}
	f.leave()
	dir, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	f = &openFolder{path: path, dir: dir, fd: int(dir.Fd())}
	return f.enter(), nil
}

func (f *openFolder) enter() *openFolder {
	f.in.Add(1)
	return f
}

func (f *openFolder) leave() {
	if f != nil && f.in.Add(-1) == 0 {
		_ = f.dir.Close()
	}
}

// create makes a new file of that name, which is no path. It can be read too,
// to look at a clone.
func (f *openFolder) create(name string) (*newFile, error) {
	path := filepath.Join(f.dir.Name(), name)
	fd, err := again(func() (int, error) {
		return unix.Openat(f.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: err}
	}
	return &newFile{fd, path}, nil
}

func (f *openFolder) setTime(name string, at time.Time) error {
	t, err := unix.TimeToTimespec(at)
	if err == nil {
		err = unix.UtimesNanoAt(f.fd, name, []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return &fs.PathError{Op: "set the time of", Path: filepath.Join(f.dir.Name(), name), Err: err}
	}
	return nil
}

// newFile is a file that is being written. Beside an os.File it is bare: no
// poller and no finalizer, of which thousands would be felt.
type newFile struct {
	fd   int
	path string
}

// writeAt writes all of b at an offset.
func (f *newFile) writeAt(b []byte, at int64) error {
	for len(b) > 0 {
		n, err := again(func() (int, error) { return unix.Pwrite(f.fd, b, at) })
		if err != nil {
			return f.failed("write", err)
		}
		b, at = b[n:], at+int64(n)
	}
	return nil
}

// readAt fills b from an offset, as far as the file goes.
func (f *newFile) readAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		k, err := again(func() (int, error) { return unix.Pread(f.fd, b[n:], at+int64(n)) })
		if err != nil {
			return n, f.failed("read", err)
		}
		if k == 0 {
			break
		}
		n += k
	}
	return n, nil
}

func (f *newFile) chmod(mode uint32) error { return f.failed("chmod", unix.Fchmod(f.fd, mode)) }

func (f *newFile) truncate(size int64) error { return f.failed("truncate", unix.Ftruncate(f.fd, size)) }

func (f *newFile) sync() error {
	_, err := again(func() (int, error) { return 0, unix.Fsync(f.fd) })
	return f.failed("sync", err)
}

// close may be called again.
func (f *newFile) close() error {
	fd := f.fd
	f.fd = -1
	if fd < 0 {
		return nil
	}
	return f.failed("close", unix.Close(fd))
}

func (f *newFile) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: f.path, Err: err}
}

// again makes a call until no signal cuts it short.
func again(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if err != unix.EINTR {
			return n, err
		}
	}
}

package systemd

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// NoWait reads a file that was opened with O_NONBLOCK and never waits: where
// there is nothing to read yet it ends. There are regular files to wait for,
// such as /proc/kmsg, and anybody can put a link to one where units lie.
func NoWait(f *os.File) io.Reader { return noWait{f} }

type noWait struct{ f *os.File }

func (r noWait) Read(p []byte) (n int, err error) {
	conn, err := r.f.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := conn.Read(func(fd uintptr) bool {
		for {
			if n, err = syscall.Read(int(fd), p); err != syscall.EINTR {
				return true
			}
		}
	})
	switch {
	case cerr != nil:
		return 0, cerr
	case errors.Is(err, syscall.EAGAIN) || err == nil && n == 0 && len(p) > 0:
		return 0, io.EOF
	case err != nil:
		return 0, &os.PathError{Op: "read", Path: r.f.Name(), Err: err}
	}
	return n, nil
}

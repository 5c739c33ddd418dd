//go:build linux && amd64

package faultrun

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shape says where a call's arguments are: a number is the argument's place, -1 means none.
type shape struct {
	name          string
	fd            int // a file descriptor that is the file itself
	dir, path     int // a folder descriptor and a name relative to it
	toDir, target int // the same for the new name
	flags         int
}

// points are the calls that change something outside the process.
var points = map[uint64]shape{
	unix.SYS_WRITE:           {"write", 0, -1, -1, -1, -1, -1},
	unix.SYS_PWRITE64:        {"pwrite64", 0, -1, -1, -1, -1, -1},
	unix.SYS_WRITEV:          {"writev", 0, -1, -1, -1, -1, -1},
	unix.SYS_SENDTO:          {"sendto", 0, -1, -1, -1, -1, -1},
	unix.SYS_SENDMSG:         {"sendmsg", 0, -1, -1, -1, -1, -1},
	unix.SYS_FSYNC:           {"fsync", 0, -1, -1, -1, -1, -1},
	unix.SYS_FDATASYNC:       {"fdatasync", 0, -1, -1, -1, -1, -1},
	unix.SYS_SYNCFS:          {"syncfs", 0, -1, -1, -1, -1, -1},
	unix.SYS_FTRUNCATE:       {"ftruncate", 0, -1, -1, -1, -1, -1},
	unix.SYS_FALLOCATE:       {"fallocate", 0, -1, -1, -1, -1, -1},
	unix.SYS_FCHMOD:          {"fchmod", 0, -1, -1, -1, -1, -1},
	unix.SYS_FCHOWN:          {"fchown", 0, -1, -1, -1, -1, -1},
	unix.SYS_COPY_FILE_RANGE: {"copy_file_range", 2, -1, -1, -1, -1, -1},
	unix.SYS_SENDFILE:        {"sendfile", 0, -1, -1, -1, -1, -1},
	unix.SYS_OPENAT:          {"openat", -1, 0, 1, -1, -1, 2},
	unix.SYS_MKDIRAT:         {"mkdirat", -1, 0, 1, -1, -1, -1},
	unix.SYS_UNLINKAT:        {"unlinkat", -1, 0, 1, -1, -1, 2},
	unix.SYS_FCHMODAT:        {"fchmodat", -1, 0, 1, -1, -1, -1},
	unix.SYS_FCHMODAT2:       {"fchmodat2", -1, 0, 1, -1, -1, 3},
	unix.SYS_FCHOWNAT:        {"fchownat", -1, 0, 1, -1, -1, 4},
	unix.SYS_UTIMENSAT:       {"utimensat", -1, 0, 1, -1, -1, 3},
	unix.SYS_RENAMEAT:        {"renameat", -1, 0, 1, 2, 3, -1},
	unix.SYS_RENAMEAT2:       {"renameat2", -1, 0, 1, 2, 3, 4},
	unix.SYS_LINKAT:          {"linkat", -1, 0, 1, 2, 3, 4},
	unix.SYS_SYMLINKAT:       {"symlinkat", -1, 1, 2, -1, -1, -1},
}

// decode reads a thread's call at its entry; ok is false when it is no point.
func decode(tid int, regs *unix.PtraceRegsAmd64) (call Call, ok bool) {
	s, ok := points[regs.Orig_rax]
	if !ok {
		return Call{}, false
	}
	args := [6]uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8, regs.R9}
	call.Name = s.name
	if s.flags >= 0 {
		call.Flags = args[s.flags]
	}
	if s.fd >= 0 {
		if fd := int32(args[s.fd]); fd >= 0 && fd <= 2 {
			return Call{}, false // what it prints
		}
		call.Path = fdPath(tid, int32(args[s.fd]))
		call.Socket = strings.HasPrefix(call.Path, "socket:")
		if !call.Socket && !strings.HasPrefix(call.Path, "/") || strings.HasPrefix(call.Path, "/dev/") {
			return Call{}, false // a pipe, an eventfd, a terminal
		}
		return call, true
	}
	if s.name == "openat" && call.Flags&(unix.O_CREAT|unix.O_TRUNC) == 0 {
		return Call{}, false
	}
	call.Path = at(tid, args[s.dir], args[s.path])
	if _, err := os.Lstat(call.Path); err != nil && s.name == "openat" {
		call.New = true
	}
	if s.target >= 0 {
		call.Target = at(tid, args[s.toDir], args[s.target])
	}
	return call, !strings.HasPrefix(call.Path, "/dev/") && !strings.HasPrefix(call.Path, "/proc/")
}

// at resolves a name relative to a folder descriptor, without following links.
func at(tid int, dir, name uint64) string {
	path := readString(tid, uintptr(name))
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	base := ""
	if int32(dir) == unix.AT_FDCWD {
		base, _ = os.Readlink("/proc/" + strconv.Itoa(tid) + "/cwd")
	} else {
		base = fdPath(tid, int32(dir))
	}
	return filepath.Join(base, path)
}

// localAddress reads the address of a connect; ok is false for one that is not of a local socket.
func localAddress(tid int, addr uintptr, length int) (path string, ok bool) {
	raw := make([]byte, min(length, unix.SizeofSockaddrUnix))
	if n, err := unix.PtracePeekData(tid, addr, raw); err != nil || n < 3 || binary.NativeEndian.Uint16(raw) != unix.AF_UNIX {
		return "", false
	}
	path = string(raw[2:])
	if path[0] == 0 {
		return "@" + strings.TrimRight(path[1:], "\x00"), true
	}
	path, _, _ = strings.Cut(path, "\x00")
	return path, true
}

func fdPath(tid int, fd int32) string {
	path, err := os.Readlink("/proc/" + strconv.Itoa(tid) + "/fd/" + strconv.Itoa(int(fd)))
	if err != nil {
		return ""
	}
	return path
}

func readString(tid int, addr uintptr) string {
	var out []byte
	buf := make([]byte, 64)
	for len(out) < unix.PathMax {
		n, err := unix.PtracePeekData(tid, addr+uintptr(len(out)), buf)
		if i := bytes.IndexByte(buf[:n], 0); i >= 0 {
			return string(append(out, buf[:i]...))
		}
		if err != nil || n == 0 {
			break
		}
		out = append(out, buf[:n]...)
	}
	return string(out)
}

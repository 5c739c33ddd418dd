//go:build linux && amd64

package faultrun

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// StageName is the name, as argument 0, under which an executable calls [Stage] and nothing else.
const StageName = "faultrun-stage"

// stage lets a command begin as this executable under StageName.
func stage(cmd *exec.Cmd, fault Fault) {
	reads := "-"
	if fault.Hangup {
		reads = "reads"
	}
	cmd.Args = append([]string{StageName, reads, cmd.Path}, cmd.Args...)
	cmd.Path = "/proc/self/exe"
}

// Stage asks the kernel to stop this process at the calls that matter, and becomes the program: args are "reads" or
// "-", the program's path and its arguments from 0. It returns only with an error.
func Stage(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("run a program: %d arguments", len(args))
	}
	runtime.LockOSThread() // the filter is the thread's, and so is what it becomes
	if err := install(args[0] == "reads"); err != nil {
		return fmt.Errorf("install a filter of system calls: %w", err)
	}
	if err := unix.Exec(args[1], args[2:], os.Environ()); err != nil {
		return fmt.Errorf("execute %s: %w", args[1], err)
	}
	return nil
}

// install makes the filter: points and what [tracer.overSocket] wants to see are traced, all else passes.
func install(reads bool) error {
	calls := append(slices.Collect(maps.Keys(points)), unix.SYS_CONNECT)
	if reads {
		calls = append(calls, unix.SYS_READ, unix.SYS_RECVFROM, unix.SYS_RECVMSG)
	}
	const number = 0 // where struct seccomp_data has the number of the call
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number}}
	for i, call := range calls {
		filter = append(filter, unix.SockFilter{
			Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(call), Jt: uint8(len(calls) - i),
		})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}

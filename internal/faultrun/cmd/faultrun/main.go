//go:build linux && amd64

// Faultrun runs a program and disturbs it at one system call, for tests:
//
//	faultrun [-at N | -key KEY] [-kill | -errno ENOSPC|EIO [-sticky] | -hangup [-sent] | -meanwhile COMMAND]
//	         -out FILE -- PROGRAM ARGS…
//
// It writes the calls it saw as JSON to FILE and ends with the program's exit status.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"syscall"

	"github.com/1bit-systems/pkg/internal/faultrun"
)

func main() {
	if os.Args[0] == faultrun.StageName {
		os.Exit(fail(faultrun.Stage(os.Args[1:])))
	}
	os.Exit(run())
}

func run() int {
	var fault faultrun.Fault
	flag.IntVar(&fault.At, "at", 0, "number of the point to disturb, from 1")
	flag.BoolVar(&fault.Kill, "kill", false, "kill the program before the call")
	flag.StringVar(&fault.Key, "key", "", "name of the point to disturb, instead of its number")
	flag.Func("match", "name the point instead by a regular expression of the call, such as 'syncfs .*/data/'", func(text string) (err error) {
		fault.Match, err = regexp.Compile(text)
		return err
	})
	flag.BoolVar(&fault.Hangup, "hangup", false, "break all connections to local sockets at a message of one")
	flag.BoolVar(&fault.Sent, "sent", false, "let that message out first")
	flag.StringVar(&fault.Meanwhile, "meanwhile", "", "run a shell command before the call")
	errno := flag.String("errno", "", "let the call fail: ENOSPC or EIO")
	flag.BoolVar(&fault.Sticky, "sticky", false, "let every later call that needs space fail too")
	out := flag.String("out", "", "file for the calls, as JSON")
	flag.Parse()
	switch *errno {
	case "":
	case "ENOSPC":
		fault.Errno = syscall.ENOSPC
	case "EIO":
		fault.Errno = syscall.EIO
	default:
		return fail(fmt.Errorf("unknown errno %q", *errno))
	}
	if flag.NArg() == 0 || *out == "" {
		flag.Usage()
		return 125
	}
	path, err := exec.LookPath(flag.Arg(0))
	if err != nil {
		return fail(err)
	}
	result, err := faultrun.Run(&exec.Cmd{
		Path: path, Args: flag.Args(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}, fault)
	if err != nil {
		return fail(err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		return fail(err)
	}
	if err := os.WriteFile(*out, text, 0o644); err != nil {
		return fail(err)
	}
	return result.Exit
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "faultrun:", err)
	return 125
}

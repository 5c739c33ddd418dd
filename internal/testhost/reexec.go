package testhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The names (argv[0]) under which a program that imports this package is one of its helpers instead.
const (
	keeperName  = "onebit-testhost-keeper"
	bootName    = "onebit-testhost-boot"
	enterName   = "onebit-testhost-enter"
	commandName = "onebit-testhost-command"

	machineName     = "onebit-testhost-machine"
	machineBootName = "onebit-testhost-machine-boot"
	machineWorkName = "onebit-testhost-machine-work"
)

// self is this very program, also in another mount namespace.
const self = "/proc/self/exe"

// init is the entry of the helpers. It runs on the main thread, which they need: namespaces, the working folder and
// the parent-death signal belong to a thread.
func init() {
	if len(os.Args) == 0 {
		return
	}
	roles := map[string]func() error{
		keeperName: keeperMain, bootName: bootMain, enterName: enterMain, commandName: commandMain,
		machineName: machineMain, machineBootName: machineBootMain, machineWorkName: machineWorkMain,
	}
	role, found := roles[filepath.Base(os.Args[0])] // a machine's kernel and systemd give a path
	if !found {
		return
	}
	runtime.LockOSThread()
	err := role()
	var exit *exitStatus
	switch {
	case err == nil:
		os.Exit(0)
	case errors.As(err, &exit):
		os.Exit(exit.code)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
	os.Exit(125)
}

// exitStatus is an error that only sets the exit status.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// helper is a command that runs this program in a role; its parameters are the one argument.
func helper(role string, parameters any) (*exec.Cmd, error) {
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	return &exec.Cmd{Path: self, Args: []string{role, string(text)}}, nil
}

// parameters decodes the argument of a helper.
func parameters(into any) error {
	if len(os.Args) != 2 {
		return fmt.Errorf("want one argument, have %d", len(os.Args)-1)
	}
	return json.Unmarshal([]byte(os.Args[1]), into)
}

package claim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// order is what a guard is told.
type order struct {
	Mark     engine.Mark `json:"mark"`
	Scope    string      `json:"scope"`
	Path     string      `json:"path"` // of the lock, which is open as file 3
	Writable bool        `json:"writable"`
	Wrote    written     `json:"wrote"`
	History  string      `json:"history"`
	Record   Record      `json:"record"`
}

// lockFile is the number of the open lock in a guard.
const lockFile = 3

// Guard waits until the process that made a claim is gone, however it went, ends what is left of the command and lets
// the lock go. Until then it has that process go on when it is stopped. args are the order and the number of the process group, as Run gives them; scope finds the scope in
// which the command and the guard run. A guard whose claim ends well is killed before it acts.
func Guard(stdin io.Reader, args []string, scope func(name string) (engine.Cage, bool), now func() time.Time) error {
	// What ends the claim's own process must not end us.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	var o order
	if len(args) != 2 || json.Unmarshal([]byte(args[0]), &o) != nil {
		return errors.New("guard a claim: only claim run starts a guard")
	}
	group, err := strconv.Atoi(args[1])
	if err != nil || group <= 1 {
		return fmt.Errorf("guard a claim: %q is no process group", args[1])
	}
	over := make(chan struct{})
	go func() { defer close(over); _, _ = io.Copy(io.Discard, stdin) }()
	keepAwake(o.Mark.Proc, os.Getppid(), over)
	h := &hold{lock: Lock{Path: o.Path}, file: os.NewFile(lockFile, o.Path), writable: o.Writable, wrote: o.Wrote}
	h.clear()
	r := o.Record
	r.PID = os.Getpid()
	_ = h.write(r) // who holds the lock from now on
	syscall.Kill(-group, syscall.SIGKILL)
	bearers := func() []int { return marked(o.Mark) }
	grouped := func() []int { return engine.GroupMembers(o.Mark.Proc, group) }
	caged := func() []int {
		cage, ok := scope(o.Scope)
		if !ok {
			return nil
		}
		pids, _ := cage.Members()
		return pids
	}
	_ = killAll(context.Background(), caged, grouped, bearers) // however long it takes
	end := now()
	o.Record.Ended, o.Record.How = &end, "1bit claim run was killed"
	err = remember(o.History, o.Record)
	h.release()
	return err
}

// keepAwake has the process that made the claim go on when it is stopped, until it is gone: nobody else minds the time
// and the memory of the command.
func keepAwake(proc string, claim int, gone <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-gone:
			return
		case <-tick.C:
			if claim == os.Getppid() && engine.IsStopped(proc, claim) {
				_ = syscall.Kill(claim, syscall.SIGCONT) // our parent, so its number is its own
			}
		}
	}
}

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
// the lock go. args are the order and the number of the process group, as Run gives them; scope finds the scope in
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
	_, _ = io.Copy(io.Discard, stdin)
	h := &hold{lock: Lock{Path: o.Path}, file: os.NewFile(lockFile, o.Path), writable: o.Writable, wrote: o.Wrote}
	h.clear()
	r := o.Record
	r.PID = os.Getpid()
	_ = h.write(r) // who holds the lock from now on
	syscall.Kill(-group, syscall.SIGKILL)
	members := func() []int {
		pids, _ := o.Mark.Members()
		pids = append(pids, engine.GroupMembers(o.Mark.Proc, group)...)
		if cage, ok := scope(o.Scope); ok {
			caged, _ := cage.Members()
			pids = append(pids, caged...)
		}
		return pids
	}
	_ = killAll(context.Background(), members) // however long it takes
	end := now()
	o.Record.Ended, o.Record.How = &end, "1bit claim run was killed"
	err = remember(o.History, o.Record)
	h.release()
	return err
}

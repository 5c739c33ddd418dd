package neighbour

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// trial is a neighbour that runs for a while.
type trial struct {
	*Neighbour
	from time.Time
	dir  string
	mu   sync.Mutex
	runs []Run
	pids []int
}

func newTrial(t *testing.T, o Options) (*trial, error) {
	tr := &trial{from: time.Now(), dir: t.TempDir()}
	o.Dir = tr.dir
	o.Now = tr.us
	o.Record = func(r Run) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.runs = append(tr.runs, r)
	}
	o.Start = func(ctx context.Context, p engine.ProcessOptions) (*engine.Process, error) {
		process, err := engine.StartProcess(ctx, p)
		if err == nil {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.pids = append(tr.pids, process.PID())
		}
		return process, err
	}
	var err error
	tr.Neighbour, err = New(o)
	return tr, err
}

func (tr *trial) us() int64 { return time.Since(tr.from).Microseconds() }

// until runs the neighbour until enough says so, it is given up, or 60 s are over, and sees that nothing stays behind.
func (tr *trial) until(t *testing.T, enough func() bool) Summary {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- tr.Loop(ctx) }()
	for over := false; !over && ctx.Err() == nil && !enough(); {
		select {
		case <-tr.Died():
			over = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	if ctx.Err() != nil {
		t.Error("it took more than a minute")
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, pid := range tr.started() {
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid))); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("process %d is still there", pid)
		}
	}
	return tr.Summary(0, tr.us())
}

// started lists the processes, the newest last.
func (tr *trial) started() []int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.pids)
}

func (tr *trial) hasWorked() bool {
	select {
	case <-tr.Worked():
		return true
	default:
		return false
	}
}

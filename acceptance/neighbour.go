package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// benchLoop runs llama-bench over and over beside the server. It is an
// exposure, not a subject: its failures are counted apart, and it is given up
// after maxFailures in a row.
type benchLoop struct {
	options engine.ProcessOptions
	record  func(neighbourRecord)
	now     func() int64 // µs since the load's clock began

	worked chan struct{} // closed at the first result
	died   chan struct{} // closed when given up

	mu    sync.Mutex
	first sync.Once
	why   string
	alive []interval
}

type interval struct{ from, to int64 }

const (
	maxFailures  = 3
	failurePause = time.Second
)

func newNeighbour(n *Neighbour, r *resolvedNeighbour, dir string, now func() int64, record func(neighbourRecord)) *benchLoop {
	return &benchLoop{
		options: engine.ProcessOptions{
			Program: r.programs["llama-bench"], Args: append([]string{"-m", r.Model.Name, "-o", "jsonl"}, n.Args...), Env: r.Env,
			LogPath: filepath.Join(dir, NeighbourLog), StdoutPath: filepath.Join(dir, NeighbourRows),
		},
		record: record, now: now, worked: make(chan struct{}), died: make(chan struct{}),
	}
}

// loop runs until the context ends, or until the neighbour is given up. It
// returns an error only if a process could not be ended.
func (n *benchLoop) loop(ctx context.Context) error {
	failures := 0
	for i := 1; ctx.Err() == nil; i++ {
		rec, err := n.once(ctx, i)
		if err != nil {
			return err
		}
		n.record(rec)
		if rec.Exit == exitOK && rec.Tokens > 0 || rec.Exit == exitStopped {
			failures = 0
			continue
		}
		if failures++; failures == maxFailures {
			n.mu.Lock()
			n.why = fmt.Sprintf("the neighbour failed %d times in a row, at last with %s and %d tokens", failures, rec.Exit, rec.Tokens)
			n.mu.Unlock()
			close(n.died)
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(failurePause):
		}
	}
	return nil
}

// once runs the program once and reads what it printed.
func (n *benchLoop) once(ctx context.Context, i int) (neighbourRecord, error) {
	rec := neighbourRecord{Run: i, StartUS: n.now()}
	from := fileSize(n.options.StdoutPath)
	p, err := engine.StartProcess(ctx, n.options)
	if err != nil {
		rec.EndUS, rec.Exit = n.now(), err.Error()
		if ctx.Err() != nil {
			rec.Exit = exitStopped
		}
		return rec, nil
	}
	n.watch(ctx, p, from)
	stopped := ctx.Err() != nil
	err = p.Stop(context.WithoutCancel(ctx), 0) // what it may have left behind
	rec.EndUS = n.now()
	n.mu.Lock()
	n.alive = append(n.alive, interval{rec.StartUS, rec.EndUS})
	n.mu.Unlock()
	status, _ := p.Wait(context.WithoutCancel(ctx))
	switch {
	case stopped:
		rec.Exit = exitStopped
	case status == engine.ExitStatus{}:
		rec.Exit = exitOK
	default:
		rec.Exit = status.String()
	}
	rec.Results, rec.Tokens = n.results(from)
	if rec.Tokens > 0 {
		n.first.Do(func() { close(n.worked) })
	}
	return rec, err
}

// watch waits for the program's end or for the context's, and looks for its
// first result meanwhile.
func (n *benchLoop) watch(ctx context.Context, p *engine.Process, from int64) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Exited():
			return
		case <-tick.C:
			select {
			case <-n.worked:
				continue
			default:
			}
			if results, _ := n.results(from); results > 0 {
				n.first.Do(func() { close(n.worked) })
			}
		}
	}
}

// summary says for how much of a load the neighbour was alive.
func (n *benchLoop) summary(from, to int64) *neighbourSummary {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &neighbourSummary{Died: n.why}
	for _, i := range n.alive {
		s.AliveUS += max(0, min(i.to, to)-max(i.from, from))
	}
	return s
}

func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (n *benchLoop) results(from int64) (int, int64) {
	b, err := readFrom(n.options.StdoutPath, from)
	if err != nil {
		return 0, 0
	}
	return benchTokens(b)
}

package acceptance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// logWatch follows the server log while it grows. Every event goes to the
// account of the slots and to line.
type logWatch struct {
	path string
	line func(engine.LogEvent)
	now  func() int64 // the life's clock, µs

	mu     sync.Mutex
	start  int64 // when the server was started, by the life's clock
	reader engine.LogReader
	slots  *slotLog
	joiner engine.Joiner
	tasks  []engine.Task // the last ones
	places engine.Placement
	lines  map[engine.LogKind]int
	tell   string // the last line that tells of trouble
	fresh  []engine.LogEvent
	sum    hash.Hash
	size   int64
}

// followEvery is how often the log is read. Its lines carry their own times.
const followEvery = 20 * time.Millisecond

// readAtOnce bounds what is taken of the log in one go.
const readAtOnce = 1 << 20

func newLogWatch(path string, parallel int, now func() int64, line func(engine.LogEvent)) *logWatch {
	w := &logWatch{
		path: path, line: line, now: now, start: now(), slots: newSlotLog(parallel),
		lines: map[engine.LogKind]int{}, sum: sha256.New(),
	}
	w.joiner.Done = func(t engine.Task) {
		w.slots.task(t)
		w.tasks = append(last(w.tasks), t)
	}
	return w
}

// started tells that a server begins to write: its times count from here.
func (w *logWatch) started(at int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start = at
}

// follow reads until the context ends.
func (w *logWatch) follow(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err := w.drain(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// drain reads what has been written since the last time.
func (w *logWatch) drain() error {
	w.mu.Lock()
	err := w.read()
	fresh := w.fresh
	w.fresh = nil
	w.mu.Unlock()
	for _, ev := range fresh {
		w.line(ev)
	}
	return err
}

// read takes in what is new.
func (w *logWatch) read() error {
	f, err := os.Open(w.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("follow the server log: %w", err)
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := f.ReadAt(buf, w.size)
		w.size += int64(n)
		w.sum.Write(buf[:n])
		w.reader.Feed(buf[:n], time.Duration(w.now()-w.start)*time.Microsecond, w.take)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("follow the server log: %w", err)
		}
	}
}

// take sorts one event in.
func (w *logWatch) take(ev engine.LogEvent) {
	w.slots.add(ev, ev.At())
	w.joiner.Add(ev)
	w.places.Add(ev)
	w.lines[ev.Kind]++
	switch ev.Kind {
	case engine.LogNaN, engine.LogAbort, engine.LogDevice, engine.LogContext, engine.LogAlloc, engine.LogBind:
		w.tell = ev.Detail
		if w.lines[ev.Kind] == 1 || ev.NaNAbort {
			w.fresh = append(w.fresh, ev)
		}
	}
}

// beginLoad opens the account of the slots, endLoad closes it: what comes
// before and after is not part of the load.
func (w *logWatch) beginLoad() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slots.open()
}

func (w *logWatch) endLoad() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slots.freeze()
}

// exempt takes a request on a slot, in the life's clock, out of those that may
// not be put there by the beginning of their prompt.
func (w *logWatch) exempt(s span) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.from, s.to = s.from-w.start, s.to-w.start
	w.slots.exempt(s)
}

// shape gives the account of the slots.
func (w *logWatch) shape() shape {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joiner.Flush()
	s := w.slots.shape
	s.Launches = maps.Clone(w.slots.shape.Launches)
	s.LCP -= w.slots.exempted()
	return s
}

// lastTasks gives the last tasks, those that are not over included.
func (w *logWatch) lastTasks() []engine.Task {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joiner.Flush()
	return slices.Clone(w.tasks)
}

// busyShare is that of the account so far.
func (w *logWatch) busyShare() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots.shape.busyShare()
}

func (w *logWatch) launched() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots.shape.launched()
}

// count tells how many lines of a kind there were.
func (w *logWatch) count(kind engine.LogKind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines[kind]
}

// placement tells where the model lies.
func (w *logWatch) placement() engine.Placement {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places
}

// telling is the last line that tells of trouble.
func (w *logWatch) telling() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tell
}

// totals gives the number of lines by kind and the digest of the whole log.
func (w *logWatch) totals() (map[engine.LogKind]int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.lines), hex.EncodeToString(w.sum.Sum(nil))
}

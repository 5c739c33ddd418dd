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
	line func(ev engine.LogEvent, ending bool) // ending: the server had been told to end when it wrote that
	now  func() int64                          // the life's clock, µs

	turn sync.Mutex // held over a drain, with what it tells
	buf  []byte

	mu     sync.Mutex
	start  int64         // when the server was started, by the life's clock
	late   time.Duration // of the log's clock against that, by the line before the load that was read soonest; -1: not known
	reader engine.LogReader
	slots  *slotLog
	joiner engine.Joiner
	tasks  []engine.Task // the last ones
	places engine.Placement
	lines  map[engine.LogKind]int
	tell   string            // the last line that tells of trouble
	fresh  []engine.LogEvent // not told yet; of who has the turn
	sum    hash.Hash
	size   int64 // read so far
	given  bool  // up: lines are not read any more
	end    int64 // how long the log was when the server was told to end; -1: it was not
}

// followEvery is how often the log is read. Its lines carry their own times.
const followEvery = 50 * time.Millisecond

// readAtOnce bounds what is taken of the log in one go, while others wait to ask
// about it.
const readAtOnce = 256 << 10

func newLogWatch(path string, parallel int, now func() int64, line func(engine.LogEvent, bool)) *logWatch {
	w := &logWatch{
		path: path, line: line, now: now, start: now(), late: -1, slots: newSlotLog(parallel), end: -1,
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
	w.start, w.late = at, -1
}

// ending tells that the server is told to end now.
func (w *logWatch) ending() error {
	size, err := w.written()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = size
	return err
}

// giveUp ends the reading of lines: from here on the log's bytes are summed up
// alone, which does not take long however many there are.
func (w *logWatch) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.given = true
}

// follow reads until the context ends.
func (w *logWatch) follow(ctx context.Context) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if err := w.drain(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// drain reads what has been written up to now, and has told of it when it
// returns. It takes no more than that, for a server may write faster than we
// read.
func (w *logWatch) drain(ctx context.Context) error {
	w.turn.Lock()
	defer w.turn.Unlock()
	size, err := w.written()
	if err != nil || size == w.size { // which only who has the turn changes
		return err
	}
	f, err := os.Open(w.path)
	if err != nil {
		return fmt.Errorf("follow the server log: %w", err)
	}
	defer f.Close()
	for ctx.Err() == nil {
		n, ending, err := w.read(f, size)
		for _, ev := range w.fresh {
			w.line(ev, ending)
		}
		w.fresh = w.fresh[:0]
		if err != nil {
			return fmt.Errorf("follow the server log: %w", err)
		}
		if n == 0 {
			return nil
		}
	}
	return nil
}

// written tells how long the log is.
func (w *logWatch) written() (int64, error) {
	info, err := os.Stat(w.path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("follow the server log: %w", err)
	}
	return info.Size(), nil
}

// read takes in a piece of what is new, up to the given size of the log: of
// before the server was told to end, or of after.
func (w *logWatch) read(f *os.File, size int64) (n int, ending bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buf == nil {
		w.buf = make([]byte, readAtOnce)
	}
	buf := w.buf
	if ending = w.end >= 0 && w.size >= w.end; w.end >= 0 && !ending {
		size = min(size, w.end)
	}
	if size <= w.size {
		return 0, ending, nil
	}
	buf = buf[:min(int64(len(buf)), size-w.size)]
	if n, err = f.ReadAt(buf, w.size); errors.Is(err, io.EOF) {
		err = nil
	}
	w.size += int64(n)
	w.sum.Write(buf[:n])
	if w.given {
		return n, ending, err
	}
	w.reader.Feed(buf[:n], time.Duration(w.now()-w.start)*time.Microsecond, w.take)
	return n, ending, err
}

// unread tells how long the log is and how much of that has not been read yet.
func (w *logWatch) unread() (size, unread int64, err error) {
	size, err = w.written()
	w.mu.Lock()
	defer w.mu.Unlock()
	return size, size - w.size, err
}

// take sorts one event in.
func (w *logWatch) take(ev engine.LogEvent) {
	if late := ev.Read - ev.Time; ev.Timed && !w.slots.loading && (w.late < 0 || late < w.late) {
		w.late = max(0, late)
	}
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
	began := w.start + max(0, w.late).Microseconds()
	s.from, s.to = s.from-began, s.to-began
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

// quiet tells whether so many tasks have been launched since the server began,
// and none goes on.
func (w *logWatch) quiet(tasks int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots.launches >= tasks && len(w.slots.busy) == 0
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

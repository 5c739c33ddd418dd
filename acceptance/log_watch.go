package acceptance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// logWatch follows the server log while it grows. Every event goes to the slot
// account; the first line of each telling kind goes to found.
type logWatch struct {
	path  string
	found func(engine.LogEvent)

	mu    sync.Mutex
	start time.Time // when the server was started
	now   func() time.Time
	slots *slotLog
	lines map[engine.LogKind]int
	rest  []byte // of a line that is not complete yet
	sum   hash.Hash
	size  int64
}

// maxLogLine bounds a line in bytes; what is longer is no line of a server.
const maxLogLine = 1 << 20

func newLogWatch(path string, parallel int, now func() time.Time, found func(engine.LogEvent)) *logWatch {
	return &logWatch{
		path: path, found: found, start: now(), now: now, slots: newSlotLog(parallel),
		lines: map[engine.LogKind]int{}, sum: sha256.New(),
	}
}

// follow reads until the context ends.
func (w *logWatch) follow(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
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
	fresh, err := w.read()
	w.mu.Unlock()
	for _, ev := range fresh {
		w.found(ev)
	}
	return err
}

// read returns the first events of their kinds.
func (w *logWatch) read() ([]engine.LogEvent, error) {
	f, err := os.Open(w.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("follow the server log: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, w.size, 1<<40))
	if err != nil {
		return nil, fmt.Errorf("follow the server log: %w", err)
	}
	w.size += int64(len(b))
	w.sum.Write(b)
	at := w.now().Sub(w.start)
	b = append(w.rest, b...)
	var fresh []engine.LogEvent
	for {
		text, rest, whole := bytes.Cut(b, []byte{'\n'})
		if !whole {
			break
		}
		b = rest
		ev, ok := engine.ParseLogLine(string(text))
		if !ok {
			continue
		}
		w.slots.add(ev, at)
		if w.lines[ev.Kind]++; w.lines[ev.Kind] == 1 || ev.NaNAbort {
			fresh = append(fresh, ev)
		}
	}
	if len(b) > maxLogLine {
		b = nil
	}
	w.rest = bytes.Clone(b)
	return fresh, nil
}

// shape gives the slot account so far.
func (w *logWatch) shape() shape {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.slots.shape
	s.Launches = map[int]int{}
	for slot, n := range w.slots.shape.Launches {
		s.Launches[slot] = n
	}
	return s
}

// freeze ends the slot account: see slotLog.
func (w *logWatch) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slots.freeze()
}

// count tells how many lines of a kind there were.
func (w *logWatch) count(kind engine.LogKind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines[kind]
}

// totals gives the number of lines by kind and the digest of the whole log.
func (w *logWatch) totals() (map[engine.LogKind]int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := map[engine.LogKind]int{}
	for kind, n := range w.lines {
		lines[kind] = n
	}
	return lines, hex.EncodeToString(w.sum.Sum(nil))
}

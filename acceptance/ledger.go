package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// LedgerName is the ledger's file name in an evidence folder.
const LedgerName = "ledger.jsonl"

// A ledger is the append-only record of a run, one JSON object a line:
//
//	{"seq":1,"at":"…","kind":"request","data":{…},"sum":"<sha-256>"}
//
// The sum is of the sum before (none before the first line) and of the line up
// to the comma before "sum". So a changed byte shows in its own line; a line
// taken out, put in or moved shows in the next; and lines cut off the end show
// by the missing closing record, which holds the number of lines before it and
// the last sum. It guards against damage and against edits in passing, not
// against somebody who computes the whole chain anew.
//
// Times never run back within a ledger, whatever the host's clock does.
type ledger struct {
	mu     sync.Mutex
	f      *os.File
	now    func() time.Time
	chain  *chain
	seq    int
	head   string
	last   time.Time
	buf    []byte
	dirty  bool
	closed bool
	err    error // the first failure; the ledger takes nothing after it
}

// closing is the data of the last record.
type closing struct {
	Count int    `json:"count"` // records before this one
	Head  string `json:"head"`
}

// ErrEvidence says that an evidence folder already holds a run or something
// else: what a run adds to must be its own.
var ErrEvidence = errors.New("evidence folder is not empty")

// createLedger makes a new ledger in dir; ErrEvidence unless dir is empty.
func createLedger(dir string, now func() time.Time) (*ledger, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("create ledger: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("%w: %s has %s", ErrEvidence, dir, entries[0].Name())
	}
	f, err := os.OpenFile(filepath.Join(dir, LedgerName), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %s", ErrEvidence, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create ledger: %w", err)
	}
	if err := atomicfile.SyncDir(dir); err != nil {
		f.Close()
		return nil, fmt.Errorf("create ledger: %w", err)
	}
	return &ledger{f: f, now: now, chain: newChain()}, nil
}

// ErrLedger says that nothing can be added to a ledger: it is closed, or its
// chain does not hold.
var ErrLedger = errors.New("the run cannot go on")

// reopenLedger goes on with the ledger of a run that has not ended. take gets
// every record that it holds; they are only valid during the call. What a crash
// left of a last line is cut off; the summary's notes say so. The error wraps
// ErrLedger if the ledger is closed or damaged. Only one process may hold a
// ledger open for writing: the caller sees to that.
func reopenLedger(dir string, now func() time.Time, take func(*record) error) (*ledger, *ledgerSummary, error) {
	f, err := os.OpenFile(filepath.Join(dir, LedgerName), os.O_RDWR|os.O_APPEND|unix.O_NONBLOCK, 0)
	if err == nil {
		err = regular(f)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reopen ledger: %w", err)
	}
	l := &ledger{f: f, now: now, chain: newChain()}
	s, err := scanLedger(f, func(r *record) error {
		l.last = r.At
		return take(r)
	})
	switch {
	case err != nil:
	case s.Records == 0 && s.Damage == "":
		err = fmt.Errorf("%w: its ledger has no record, so nothing had begun: begin a new run", ErrLedger)
	case s.Damage != "":
		err = fmt.Errorf("%w: its ledger is damaged: %s", ErrLedger, s.Damage)
	case s.Closed:
		err = fmt.Errorf("%w: it has ended", ErrLedger)
	case s.Torn > 0:
		if err = f.Truncate(s.Size); err == nil {
			err = f.Sync()
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("reopen ledger: %w", err)
	}
	l.seq, l.head = s.Records, s.Head
	return l, s, nil
}

// append writes one record. It reaches the kernel at once, so that it outlives
// us, and the disk with the next sync.
func (l *ledger) append(kind string, data any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errors.New("append to ledger: it is closed")
	}
	return l.write(kind, data)
}

func (l *ledger) write(kind string, data any) error {
	if l.err != nil {
		return l.err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode %s record: %w", kind, err)
	}
	at := l.now().Truncate(time.Microsecond)
	if at.Before(l.last) {
		at = l.last
	}
	b := l.chain.appendLine(l.buf[:0], line{Seq: l.seq + 1, At: at, Kind: kind, Data: raw}, []byte(l.head))
	l.buf = b
	if _, err := l.f.Write(b); err != nil {
		l.err = fmt.Errorf("append to ledger: %w", err)
		return l.err
	}
	l.seq, l.head, l.last, l.dirty = l.seq+1, string(lineSum(b[:len(b)-1])), at, true
	return nil
}

// sync brings everything so far to the disk.
func (l *ledger) sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flush()
}

func (l *ledger) flush() error {
	if !l.dirty || l.err != nil {
		return l.err
	}
	if err := l.f.Sync(); err != nil {
		l.err = fmt.Errorf("sync ledger: %w", err)
		return l.err
	}
	l.dirty = false
	return nil
}

// close writes the closing record, syncs and closes the file.
func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.err != nil {
		_ = l.f.Close() // what it says was said
		return l.err
	}
	err := l.write(recordClose, closing{Count: l.seq, Head: l.head})
	return errors.Join(err, l.flush(), l.f.Close())
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

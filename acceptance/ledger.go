package acceptance

import (
	"bytes"
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

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// LedgerName is the ledger's file name in an evidence folder.
const LedgerName = "ledger.jsonl"

// A ledger is the append-only record of a run, one JSON object a line:
//
//	{"seq":1,"prev":"<sum of the line before>","at":"…","kind":"request","data":{…},"sum":"<sha-256>"}
//
// sum covers the line up to the comma before "sum". So a changed byte shows in
// its own line, a line taken out, put in or moved shows in the next, and lines
// cut off the end show by the missing closing record, which holds the number
// of lines before it and the last sum. It guards against damage and against
// edits in passing, not against somebody who computes the whole chain anew.
type ledger struct {
	mu     sync.Mutex
	f      *os.File
	now    func() time.Time
	seq    int
	head   string
	dirty  bool
	closed bool
	err    error // the first failure; the ledger takes nothing after it
}

// line is one line of the ledger. The order of the fields is the file's.
type line struct {
	Seq  int             `json:"seq"`
	Prev string          `json:"prev"`
	At   time.Time       `json:"at"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
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
	return &ledger{f: f, now: now}, nil
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
	b, err := json.Marshal(line{Seq: l.seq + 1, Prev: l.head, At: l.now(), Kind: kind, Data: raw})
	if err != nil {
		return fmt.Errorf("encode %s record: %w", kind, err)
	}
	b = b[:len(b)-1] // without the brace
	sum := sumOf(b)
	b = fmt.Appendf(b, ",%q:%q}\n", "sum", sum)
	if _, err := l.f.Write(b); err != nil {
		l.err = fmt.Errorf("append to ledger: %w", err)
		return l.err
	}
	l.seq, l.head, l.dirty = l.seq+1, sum, true
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

// ledgerContent is what readLedger found: the records up to the first damage.
type ledgerContent struct {
	Lines  []line // without the closing record
	Closed bool
	Notes  []string
	Damage string // "" if the chain holds
	Head   string
}

// readLedger reads a ledger and checks its chain. A last line that was torn by
// a crash is dropped with a note; any other fault of the file is Damage.
func readLedger(raw []byte) *ledgerContent {
	c := &ledgerContent{}
	for n := 1; len(raw) > 0; n++ {
		text, rest, whole := bytes.Cut(raw, []byte{'\n'})
		if !whole {
			c.Notes = append(c.Notes, fmt.Sprintf("dropped the torn last line of the ledger (line %d, %d bytes)", n, len(text)))
			return c
		}
		raw = rest
		l, sum, err := parseLine(text)
		switch {
		case c.Closed:
			c.Damage = fmt.Sprintf("line %d: a line after the closing record", n)
		case err != nil:
			c.Damage = fmt.Sprintf("line %d: %v", n, err)
		case l.Seq != n || l.Prev != c.Head:
			c.Damage = fmt.Sprintf("line %d: does not follow the line before it", n)
		}
		if c.Damage != "" {
			c.Closed = false
			return c
		}
		if l.Kind == recordClose {
			var end closing
			if err := json.Unmarshal(l.Data, &end); err != nil || end.Count != n-1 || end.Head != c.Head {
				c.Damage = fmt.Sprintf("line %d: the closing record does not match", n)
				return c
			}
			c.Closed, c.Head = true, sum
			continue
		}
		c.Lines = append(c.Lines, l)
		c.Head = sum
	}
	return c
}

var sumKey = []byte(`,"sum":"`)

func parseLine(text []byte) (line, string, error) {
	var l line
	at := bytes.LastIndex(text, sumKey)
	if at < 0 {
		return l, "", errors.New("no sum")
	}
	sum := sumOf(text[:at])
	if want := fmt.Sprintf(`,"sum":"%s"}`, sum); string(text[at:]) != want {
		return l, "", errors.New("the sum does not match")
	}
	body := append(bytes.Clone(text[:at]), '}')
	if err := json.Unmarshal(body, &l); err != nil {
		return l, "", fmt.Errorf("read record: %w", err)
	}
	return l, sum, nil
}

package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// maxLedgerLine bounds a line in bytes; the longest are answers of sentinels.
const maxLedgerLine = 16 << 20

// ledgerSummary is what is known of a ledger when it has been read up to its
// end or its first damage.
type ledgerSummary struct {
	Records     int    // without the closing one
	Head        string // sum of the last of them
	First, Last time.Time
	Closed      bool
	Notes       []string
	Damage      string // "" if the chain holds
	Size        int64  // of the whole lines, in bytes
	Torn        int    // bytes after them

	head []byte
}

// record is a line with what it holds, as far as that is known without knowing
// what the run does.
type record struct {
	line
	sum     []byte
	size    int64          // of the line, in bytes
	request *requestRecord // of a request
}

// scanLedger reads a ledger and hands its records to take in order, up to the
// first damage, the first error of take, or the end. A record is only valid
// during the call. A last line that was torn by a crash is dropped with a note;
// any other fault of the file is Damage. The error is one of reading, or of
// take.
//
// Checking the sums is the work, so it is done by blocks on all processors;
// only a few blocks are held at a time, whatever the size of the ledger.
func scanLedger(r io.Reader, take func(*record) error) (*ledgerSummary, error) {
	s := &ledgerSummary{}
	workers := max(1, runtime.GOMAXPROCS(0))
	jobs, inOrder, stop := make(chan *block, workers), make(chan *block, 2*workers), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() { readBlocks(r, jobs, inOrder, stop) })
	for range workers {
		group.Go(func() {
			c := newChain()
			for b := range jobs {
				b.check(c)
				close(b.checked)
			}
		})
	}
	var err error
	for b := range inOrder {
		<-b.checked
		if err = s.add(b, take); err != nil || s.Damage != "" {
			break
		}
	}
	close(stop)
	for b := range inOrder { // what was read ahead; the reader sees that it is over
		<-b.checked
	}
	group.Wait()
	s.Head = string(s.head)
	return s, err
}

// errStop ends a scan early, without being an error.
var errStop = errors.New("stop")

// add hands on the records of a block.
func (s *ledgerSummary) add(b *block, take func(*record) error) error {
	for i := range b.records {
		r := &b.records[i]
		n := s.Records + 1
		switch {
		case s.Closed:
			s.Damage = fmt.Sprintf("line %d: a line after the closing record", n+1)
		case r.Seq != n:
			s.Damage = fmt.Sprintf("line %d: it says that it is line %d", n, r.Seq)
		case r.Kind == recordClose:
			var end closing
			if err := json.Unmarshal(r.Data, &end); err != nil || end.Count != s.Records || end.Head != string(s.head) {
				s.Damage = fmt.Sprintf("line %d: the closing record does not match", n)
				break
			}
			s.Closed = true
			s.Last = r.At
			s.Size += r.size
			continue
		}
		if s.Damage != "" {
			s.Closed = false
			return nil
		}
		if err := take(r); err != nil {
			return err
		}
		if n == 1 {
			s.First = r.At
		}
		s.Records, s.Last, s.head = n, r.At, r.sum
		s.Size += r.size
	}
	if b.damage != "" {
		s.Damage, s.Closed = fmt.Sprintf("line %d: %s", s.Records+1, b.damage), false
	}
	if b.torn > 0 && b.damage == "" {
		s.Torn = b.torn
		s.Notes = append(s.Notes, fmt.Sprintf("dropped the torn last line of the ledger (line %d, %d bytes)", s.Records+1, b.torn))
		if s.Closed {
			s.Closed = false
			s.Damage = fmt.Sprintf("line %d: a line after the closing record", s.Records+2)
		}
	}
	return b.err
}

// block is a part of the ledger that ends with a line.
type block struct {
	previous []byte // sum of the line before
	text     []byte
	torn     int   // bytes of a line without its end, after text; of the last block
	err      error // of reading; then text is what came before
	checked  chan struct{}

	records []record
	damage  string // of the line after the last record
}

// blockSize is how much is read at a time, and firstBlock how much at first:
// most ledgers are small.
const (
	blockSize  = 512 << 10
	firstBlock = 16 << 10
)

// readBlocks cuts what it reads into blocks. Each goes to both channels.
func readBlocks(r io.Reader, jobs, inOrder chan<- *block, stop <-chan struct{}) {
	defer close(inOrder)
	defer close(jobs)
	var previous, rest []byte
	size := firstBlock
	for last := false; !last; size = min(2*size, blockSize) {
		text := make([]byte, max(size, 2*len(rest)))
		n := copy(text, rest)
		m, err := io.ReadFull(r, text[n:])
		text = text[:n+m]
		b := &block{previous: previous, checked: make(chan struct{})}
		if last = err != nil; last && err != io.EOF && err != io.ErrUnexpectedEOF {
			b.err = fmt.Errorf("read ledger: %w", err)
		}
		end := bytes.LastIndexByte(text, '\n') + 1
		b.text, rest = text[:end], text[end:]
		switch {
		case last:
			b.torn = len(rest)
		case len(rest) > maxLedgerLine:
			b.damage, last = "longer than any line of a ledger", true
		case end == 0:
			continue
		}
		if end > 0 {
			begin := bytes.LastIndexByte(text[:end-1], '\n') + 1
			previous = lineSum(text[begin : end-1])
		}
		select {
		case <-stop:
			return
		case inOrder <- b:
			jobs <- b
		}
	}
}

// check verifies and reads the lines of the block, up to the first that is bad.
func (b *block) check(c *chain) {
	lines := bytes.Count(b.text, []byte{'\n'})
	b.records = make([]record, 0, lines)
	requests := make([]requestRecord, lines)
	previous := b.previous
	for text := range bytes.Lines(b.text) {
		whole := bytes.TrimSuffix(text, []byte{'\n'})
		l, err := c.parse(whole, previous)
		r := record{line: l, sum: lineSum(whole), size: int64(len(text))}
		if err == nil && l.Kind == recordRequest {
			r.request = &requests[len(b.records)]
			err = decodeRequest(l.Data, r.request)
		}
		if err != nil {
			b.damage, b.torn = err.Error(), 0
			return
		}
		b.records = append(b.records, r)
		previous = r.sum
	}
}

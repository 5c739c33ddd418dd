package systemd

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Bounds on what is held of one row, in bytes of JSON. A line of a service's output is 48 KiB at most, of which each
// byte may be four; what is written through the socket of journald may be hundreds of megabytes.
const (
	maxJournalValue = 1 << 20
	maxJournalRow   = 4 << 20
)

// errLongRow is a row that is too long even without its long values. The reading can go on.
var errLongRow = errors.New("a row of the journal is too long")

// rowReader reads the rows that journalctl writes.
type rowReader struct{ in *bufio.Reader }

func newRowReader(in io.Reader) rowReader { return rowReader{bufio.NewReaderSize(in, 64<<10)} }

// next reads a row. Values that are too long are null in it, as journalctl itself puts it. The last row may lack its
// end, where the writer was cut off; then it comes with io.ErrUnexpectedEOF.
func (r rowReader) next() ([]byte, error) {
	part, err := r.in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.Clone(part), cutOff(part, err)
	}
	var s shortener
	for {
		s.take(part)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = r.in.ReadSlice('\n')
	}
	if s.over {
		return nil, errors.Join(errLongRow, cutOff(nil, err))
	}
	return s.out, cutOff(s.out, err)
}

func cutOff(row []byte, err error) error {
	if errors.Is(err, io.EOF) && len(bytes.TrimSpace(row)) > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

// shortener copies an object of JSON and puts null for every value of it that is too long.
type shortener struct {
	out             []byte
	start           int // where the value begins in out; 0: in none
	depth           int
	quoted, escaped bool
	skipping, over  bool
}

func (s *shortener) take(part []byte) {
	for _, c := range part {
		if s.over {
			return
		}
		s.add(c)
	}
}

func (s *shortener) add(c byte) {
	begins := false
	switch {
	case s.quoted:
		s.quoted = s.escaped || c != '"'
		s.escaped = !s.escaped && c == '\\'
	case c == '"':
		s.quoted = true
	case c == '{' || c == '[':
		s.depth++
	case c == ',' && s.depth == 1, c == '}' && s.depth == 1:
		s.start, s.skipping = 0, false
	case c == ':' && s.depth == 1 && s.start == 0:
		begins = true
	}
	if !s.quoted && (c == '}' || c == ']') {
		s.depth--
	}
	if s.skipping {
		return
	}
	s.out = append(s.out, c)
	switch {
	case begins:
		s.start = len(s.out)
	case s.start > 0 && len(s.out)-s.start > maxJournalValue:
		s.out, s.skipping = append(s.out[:s.start], "null"...), true
	case len(s.out) > maxJournalRow:
		s.out, s.over = nil, true
	}
}

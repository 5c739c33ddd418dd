package acceptance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"time"
)

// line is one line of the ledger, without its sum.
type line struct {
	Seq  int
	At   time.Time
	Kind string
	Data json.RawMessage
}

// sumSize is the size of a sum in a line, in bytes: hex.
const sumSize = 2 * sha256.Size

// tail is what every line ends with: the sum and what is around it.
const (
	tailBegin = `,"sum":"`
	tailEnd   = `"}`
	tailSize  = len(tailBegin) + sumSize + len(tailEnd)
)

// A chain computes the sums of lines. It is not for several goroutines at once.
type chain struct {
	h    hash.Hash
	raw  [sha256.Size]byte
	text [sumSize]byte
}

func newChain() *chain { return &chain{h: sha256.New()} }

// sum joins the body of a line to the sum of the line before it, which is empty
// before the first. The result is valid until the next call.
func (c *chain) sum(previous, body []byte) []byte {
	c.h.Reset()
	c.h.Write(previous)
	c.h.Write(body)
	hex.Encode(c.text[:], c.h.Sum(c.raw[:0]))
	return c.text[:]
}

// appendLine appends a line as it stands in the file, with its newline.
func (c *chain) appendLine(b []byte, l line, previous []byte) []byte {
	from := len(b)
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, int64(l.Seq), 10)
	b = append(b, `,"at":"`...)
	b = l.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","kind":"`...)
	b = append(b, l.Kind...)
	b = append(b, `","data":`...)
	b = append(b, l.Data...)
	sum := c.sum(previous, b[from:])
	b = append(b, tailBegin...)
	b = append(b, sum...)
	b = append(b, tailEnd...)
	return append(b, '\n')
}

// lineSum is the sum that a line without its newline claims; empty if the line
// is too short for one.
func lineSum(text []byte) []byte {
	if len(text) < tailSize {
		return nil
	}
	return text[len(text)-len(tailEnd)-sumSize : len(text)-len(tailEnd)]
}

// parse reads a line, without its newline, and checks its sum. The data is a
// part of text, and is not looked at.
func (c *chain) parse(text, previous []byte) (line, error) {
	if len(text) < tailSize {
		return line{}, errors.New("no sum")
	}
	body, end := text[:len(text)-tailSize], text[len(text)-tailSize:]
	if !bytes.HasPrefix(end, []byte(tailBegin)) || !bytes.HasSuffix(end, []byte(tailEnd)) {
		return line{}, errors.New("no sum")
	}
	if !bytes.Equal(c.sum(previous, body), lineSum(text)) {
		return line{}, errors.New("the sum does not match, or the line does not follow the one before it")
	}
	return parseBody(body)
}

// readLine reads a line without checking its sum, which takes the line before.
func readLine(text []byte) (line, error) {
	if len(text) < tailSize {
		return line{}, errors.New("no sum")
	}
	return parseBody(text[:len(text)-tailSize])
}

// parseBody reads what the sum covers. There is one way to write a line, and
// any other is refused: every byte then means something.
func parseBody(body []byte) (line, error) {
	var l line
	rest, ok := bytes.CutPrefix(body, []byte(`{"seq":`))
	digits, rest, more := bytes.Cut(rest, []byte(`,"at":"`))
	if !ok || !more {
		return l, errors.New("no line of a ledger")
	}
	at, rest, more := bytes.Cut(rest, []byte(`","kind":"`))
	if !more {
		return l, errors.New("no line of a ledger")
	}
	kind, data, more := bytes.Cut(rest, []byte(`","data":`))
	if !more {
		return l, errors.New("no line of a ledger")
	}
	var err error
	if l.Seq, err = strconv.Atoi(string(digits)); err != nil || strconv.Itoa(l.Seq) != string(digits) {
		return l, fmt.Errorf("%q is no number of a line", digits)
	}
	if l.At, err = time.Parse(time.RFC3339Nano, string(at)); err != nil {
		return l, fmt.Errorf("%q is no time", at)
	}
	l.Kind, l.Data = kindOf(kind), data
	return l, nil
}

// kindOf gives the name of a kind without a copy for the commonest.
func kindOf(b []byte) string {
	if string(b) == recordRequest {
		return recordRequest
	}
	return string(b)
}

// decode reads the data of a record.
func decode[T any](l line) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(l.Data, v); err != nil {
		return nil, fmt.Errorf("record %d, %s: %w", l.Seq, l.Kind, err)
	}
	return v, nil
}

package engine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"strconv"
)

const (
	// maxBody bounds what is read of one reply. A reply with 100 tokens and one
	// log-probability each is 16 kB.
	maxBody = 64 << 20

	// maxHeader bounds the header of a reply, maxLine a line of it.
	maxHeader = 1 << 20
	maxLine   = 16 << 10
)

// A replyHead is what matters of a reply's header.
type replyHead struct {
	status  int
	length  int64 // of the body; -1: until the connection ends
	chunked bool
	close   bool // the connection ends with the reply
}

var (
	errLongHeader = fmt.Errorf("the header of the answer has more than %d bytes, or a line of it more than %d", maxHeader, maxLine)
	errLongBody   = fmt.Errorf("the answer has more than %d bytes", maxBody)
)

// readReplyHead reads the header of the reply, after any that only say that one
// will come.
func readReplyHead(r *bufio.Reader) (h replyHead, err error) {
	for left := maxHeader; ; {
		if h, err = readOneHead(r, &left); err != nil || h.status >= 200 {
			return h, err
		}
		if h.status == 101 {
			return h, errors.New("the server changes to another protocol")
		}
	}
}

func readOneHead(r *bufio.Reader, left *int) (replyHead, error) {
	h := replyHead{length: -1}
	line, err := readHeadLine(r, left)
	if err != nil {
		return h, err
	}
	version, status, _ := bytes.Cut(line, []byte(" "))
	number, _, _ := bytes.Cut(status, []byte(" "))
	if h.status, err = strconv.Atoi(string(number)); err != nil || len(number) != 3 || h.status < 100 ||
		len(version) != len("HTTP/1.x") || !bytes.HasPrefix(version, []byte("HTTP/1.")) {
		return h, fmt.Errorf("no HTTP/1 answer: %s", excerpt(line))
	}
	h.close = version[len(version)-1] == '0'
	for {
		if line, err = readHeadLine(r, left); err != nil || len(line) == 0 {
			break
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return h, fmt.Errorf("a line of the header is malformed: %s", excerpt(line))
		}
		if err := h.field(name, bytes.Trim(value, " \t")); err != nil {
			return h, err
		}
	}
	switch {
	case h.status < 200 || h.status == 204 || h.status == 304:
		h.length, h.chunked = 0, false
	case h.chunked:
		h.length = -1
	case h.length < 0:
		h.close = true
	}
	return h, err
}

// field takes one field of the header.
func (h *replyHead) field(name, value []byte) error {
	switch {
	case bytes.EqualFold(name, []byte("Content-Length")):
		n, err := strconv.ParseUint(string(value), 10, 62)
		if err != nil || h.length >= 0 && h.length != int64(n) {
			return fmt.Errorf("the answer's Content-Length makes no sense: %s", excerpt(value))
		}
		h.length = int64(n)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		if !bytes.EqualFold(value, []byte("chunked")) {
			return fmt.Errorf("the answer's Transfer-Encoding is not known: %s", excerpt(value))
		}
		h.chunked = true
	case bytes.EqualFold(name, []byte("Connection")):
		for option := range bytes.SplitSeq(value, []byte(",")) {
			switch option = bytes.Trim(option, " \t"); {
			case bytes.EqualFold(option, []byte("close")):
				h.close = true
			case bytes.EqualFold(option, []byte("keep-alive")):
				h.close = false
			}
		}
	}
	return nil
}

// readHeadLine reads a line without its end. It holds until the next reading.
func readHeadLine(r *bufio.Reader, left *int) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	*left -= len(line)
	switch {
	case err == bufio.ErrBufferFull || *left < 0:
		return nil, errLongHeader
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// readBody reads all of a reply's body, as first watches.
func readBody(r *bufio.Reader, h replyHead, first *firstToken) ([]byte, error) {
	if h.length > maxBody {
		return nil, errLongBody
	}
	if h.chunked {
		raw, err := readAll(httputil.NewChunkedReader(r), 16<<10, first)
		if err != nil {
			return raw, err
		}
		for left := maxHeader; ; { // the trailer
			if line, err := readHeadLine(r, &left); err != nil || len(line) == 0 {
				return raw, err
			}
		}
	}
	if h.length < 0 {
		return readAll(r, 16<<10, first)
	}
	raw, err := readAll(io.LimitReader(r, h.length), min(h.length, 1<<20), first)
	if err == nil && int64(len(raw)) < h.length {
		err = io.ErrUnexpectedEOF
	}
	return raw, err
}

// readAll reads to the end, of which size is a guess.
func readAll(r io.Reader, size int64, first *firstToken) ([]byte, error) {
	raw := make([]byte, 0, size+1) // one more, so that the end is seen without growing
	for {
		if len(raw) == cap(raw) {
			raw = append(raw, 0)[:len(raw)]
		}
		n, err := r.Read(raw[len(raw):cap(raw)])
		raw = raw[:len(raw)+n]
		if n > 0 {
			first.look(raw)
		}
		switch {
		case err == io.EOF:
			return raw, nil
		case err != nil:
			return raw, err
		case len(raw) > maxBody:
			return raw, errLongBody
		}
	}
}

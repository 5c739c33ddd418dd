package packager

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

const (
	tarBlock = 512
	// maxRecords bounds an extended header and a long name, in bytes.
	maxRecords = 64 << 10
)

// tarBlocks passes a tar stream on and reads its raw blocks first. Go's reader
// takes much that other readers take differently, so that what it shows is not
// what they would unpack; here only headers with one meaning get through:
//
//   - a checksum that is the unsigned sum, and numbers that are octal digits
//     to their end or a base-256 number that is not negative. Go also takes
//     the signed sum, blanks in front, bytes after the first NUL, and
//     negative sizes of folders and links.
//   - the magic of POSIX or GNU with its version. Go also reads headers of
//     1979 and of star, and takes a GNU header with odd times for a POSIX
//     one, whose names are longer.
//   - nothing in a name, a padding or an unused field after its end. Go
//     passes over it.
//   - files, folders, symbolic links, and what describes them. Go turns the
//     old NUL type into a file or a folder by the name's last character, and
//     hands out every unknown type with its content.
//   - no size where there is no content. Go ignores it, others skip as much.
//   - one extended header or one long name and link an entry, nothing between
//     them and the entry. Go takes the last of several, and drops them at a
//     global header.
//   - records whose lengths are spelled as they are, each key once, without
//     sparse files; paths and sizes only where the header has no room for
//     them. Go takes the last of several keys and every size. A global header
//     holds a comment, or nothing.
//   - two blocks of zeros at the end, and only zeros after them. Go takes a
//     cut for the end.
type tarBlocks struct {
	r     io.Reader
	state blockState
	block [tarBlock]byte
	have  int   // bytes of block
	skip  int64 // of content, unread
	pad   int64 // of zeros after it

	flag    byte   // of the header that records belong to
	records []byte // as far as they are read
	want    int64  // how many there are
	pending pendingEntry
	entries int
}

type blockState int

const (
	atHeader blockState = iota
	atContent
	atRecords
	atPadding
	atSecondZero
	atEnd
)

// pendingEntry is what was said of the entry to come.
type pendingEntry struct {
	extended, longName, longLink bool
	path, linkpath, size         *string
}

func (p *pendingEntry) any() bool { return p.extended || p.longName || p.longLink }

// ended is true once both blocks of zeros were read.
func (t *tarBlocks) ended() bool { return t.state == atEnd }

func (t *tarBlocks) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if ferr := t.follow(p[:n]); ferr != nil {
		return 0, ferr
	}
	return n, err
}

func (t *tarBlocks) follow(b []byte) error {
	for len(b) > 0 {
		switch t.state {
		case atContent:
			n := min(t.skip, int64(len(b)))
			b, t.skip = b[n:], t.skip-n
			if t.skip == 0 {
				t.state = atPadding
			}
		case atRecords:
			n := min(t.want-int64(len(t.records)), int64(len(b)))
			t.records, b = append(t.records, b[:n]...), b[n:]
			if int64(len(t.records)) == t.want {
				if err := t.readRecords(); err != nil {
					return err
				}
				t.state = atPadding
			}
		case atPadding:
			n := min(t.pad, int64(len(b)))
			if !zeros(b[:n]) {
				return errors.New("archive has bytes hidden in a padding")
			}
			b, t.pad = b[n:], t.pad-n
			if t.pad == 0 {
				t.state = atHeader
			}
			continue
		case atEnd:
			if !zeros(b) {
				return errors.New("archive has bytes after its end")
			}
			return nil
		default:
			n := copy(t.block[t.have:], b)
			b, t.have = b[n:], t.have+n
			if t.have == tarBlock {
				t.have = 0
				if err := t.step(); err != nil {
					return err
				}
			}
		}
		if t.state == atPadding && t.pad == 0 {
			t.state = atHeader
		}
	}
	return nil
}

// step takes a whole block that is a header or zeros.
func (t *tarBlocks) step() error {
	zero := zeros(t.block[:])
	switch {
	case t.state == atSecondZero && zero:
		t.state = atEnd
		return nil
	case t.state == atSecondZero:
		return errors.New("archive goes on after a block of zeros")
	case zero && t.pending.any():
		return errors.New("archive ends after a header that describes another")
	case zero:
		t.state = atSecondZero
		return nil
	}
	return t.header()
}

func (t *tarBlocks) header() error {
	h := rawHeader(t.block[:])
	if err := h.check(); err != nil {
		return fmt.Errorf("tar header of %s: %w", h.shown(), err)
	}
	size, _ := number(h.field(124, 12))
	flag := h[156]
	switch flag {
	case 'x', 'g', 'L', 'K':
		if err := t.describe(flag, size); err != nil {
			return fmt.Errorf("tar header of %s: %w", h.shown(), err)
		}
		t.flag, t.want, t.records = flag, size, t.records[:0]
		t.begin(atRecords, size)
		return nil
	case '0', '2', '5':
	default:
		return fmt.Errorf("tar header of %s has the type %q: a package has files, folders and symbolic links", h.shown(), flag)
	}
	size, err := t.pending.merge(h, size)
	if err != nil {
		return fmt.Errorf("tar header of %s: %w", h.shown(), err)
	}
	if flag != '0' && size != 0 {
		return fmt.Errorf("tar header of %s has a size of %d, and is no file", h.shown(), size)
	}
	t.pending = pendingEntry{}
	t.entries++
	t.begin(atContent, size)
	return nil
}

func (t *tarBlocks) begin(state blockState, size int64) {
	t.state, t.skip, t.pad = state, size, -size&(tarBlock-1)
	if size == 0 {
		t.state = atHeader
	}
}

// describe takes a header that belongs to the entry after it, or to all.
func (t *tarBlocks) describe(flag byte, size int64) error {
	p := &t.pending
	var again *bool
	switch flag {
	case 'g':
		if p.any() {
			return errors.New("a global header stands between an entry and what describes it")
		}
	case 'x':
		again = &p.extended
	case 'L':
		again = &p.longName
	case 'K':
		again = &p.longLink
	}
	if again != nil {
		if *again {
			return fmt.Errorf("two headers of the type %q describe one entry", flag)
		}
		*again = true
	}
	if p.extended && (p.longName || p.longLink) {
		return errors.New("both an extended header and a long name describe one entry")
	}
	if size > maxRecords {
		return fmt.Errorf("it holds %d bytes, limit %d", size, int64(maxRecords))
	}
	if size == 0 && flag != 'g' {
		return errors.New("it is empty")
	}
	return nil
}

func (t *tarBlocks) readRecords() error {
	if t.flag == 'L' || t.flag == 'K' {
		name := strings.TrimSuffix(string(t.records), "\x00")
		if name == "" || strings.Contains(name, "\x00") {
			return fmt.Errorf("archive has the long name %.80q, with bytes after its end", name)
		}
		if t.flag == 'L' {
			t.pending.path = &name
		} else {
			t.pending.linkpath = &name
		}
		return nil
	}
	records, err := parseRecords(string(t.records))
	if err != nil {
		return fmt.Errorf("extended tar header: %w", err)
	}
	for key, value := range records {
		if t.flag == 'g' {
			if key != "comment" {
				return fmt.Errorf("archive has a global header that sets %q", key)
			}
			continue
		}
		switch key {
		case "path":
			t.pending.path = &value
		case "linkpath":
			t.pending.linkpath = &value
		case "size":
			t.pending.size = &value
		}
	}
	return nil
}

// merge compares what was said of an entry with its own header, and returns
// the size that holds.
func (p *pendingEntry) merge(h rawHeader, size int64) (int64, error) {
	for _, f := range []struct {
		name, own string
		long      *string
	}{{"path", h.name(), p.path}, {"linkpath", text(h.field(157, 100)), p.linkpath}} {
		if f.long != nil && len(*f.long) <= 100 && ascii(*f.long) && *f.long != f.own {
			return 0, fmt.Errorf("a record says that its %s is %q, which would fit into the header", f.name, *f.long)
		}
	}
	if p.size == nil {
		return size, nil
	}
	const most = 1<<33 - 1 // eleven octal digits
	long, err := decimal(*p.size)
	if err != nil {
		return 0, fmt.Errorf("a record says that its size is %q", *p.size)
	}
	if long != size && (long <= most || size != 0 && size != most) {
		return 0, fmt.Errorf("a record says that its size is %d, the header %d", long, size)
	}
	return long, nil
}

func zeros(b []byte) bool {
	var zero [tarBlock]byte
	for len(b) > tarBlock {
		if !bytes.Equal(b[:tarBlock], zero[:]) {
			return false
		}
		b = b[tarBlock:]
	}
	return bytes.Equal(b, zero[:len(b)])
}

func decimal(s string) (int64, error) {
	var n int64
	if s == "" || len(s) > 18 || s[0] == '0' && s != "0" {
		return 0, errors.New("not a decimal number")
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' || n > math.MaxInt64/10-1 {
			return 0, errors.New("not a decimal number")
		}
		n = n*10 + int64(c-'0')
	}
	return n, nil
}

package packager

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// rawHeader is a tar header as it stands in the archive (POSIX pax, and the
// GNU tar manual's "Standard").
type rawHeader []byte

func (h rawHeader) field(at, size int) []byte { return h[at : at+size] }

func (h rawHeader) gnu() bool { return string(h.field(257, 8)) == "ustar  \x00" }

// name is the name in the header itself, which may be cut.
func (h rawHeader) name() string {
	name := text(h.field(0, 100))
	if prefix := text(h.field(345, 155)); prefix != "" && !h.gnu() {
		return prefix + "/" + name
	}
	return name
}

func (h rawHeader) shown() string { return fmt.Sprintf("%.120q", h.name()) }

// check refuses what readers may understand in several ways.
func (h rawHeader) check() error {
	if err := h.checkSum(); err != nil {
		return err
	}
	if magic := string(h.field(257, 8)); magic != "ustar\x0000" && !h.gnu() {
		return fmt.Errorf("it is neither of POSIX nor of GNU tar (%q)", magic)
	}
	for _, f := range []struct {
		name     string
		at, size int
	}{{"name", 0, 100}, {"link name", 157, 100}, {"user name", 265, 32}, {"group name", 297, 32}} {
		if err := checkField(f.name, h.field(f.at, f.size)); err != nil {
			return err
		}
	}
	numbers := []struct {
		name     string
		at, size int
		must     bool
	}{
		{"mode", 100, 8, true}, {"size", 124, 12, true}, {"time", 136, 12, false},
		{"user id", 108, 8, false}, {"group id", 116, 8, false},
		{"device number", 329, 8, false}, {"device number", 337, 8, false},
		{"access time", 345, 12, false}, {"change time", 357, 12, false},
	}
	if !h.gnu() {
		numbers = numbers[:7]
	}
	for _, f := range numbers {
		b := h.field(f.at, f.size)
		if !f.must && zeros(b) {
			continue
		}
		if _, err := number(b); err != nil {
			return fmt.Errorf("%s %q: %w", f.name, b, err)
		}
	}
	if h.gnu() {
		// Where parts of files, sparse maps and real sizes would be.
		if !zeros(h[369:]) {
			return errors.New("it has bytes where GNU tar keeps maps of sparse files")
		}
		return nil
	}
	if err := checkField("prefix", h.field(345, 155)); err != nil {
		return err
	}
	if !zeros(h[500:]) {
		return errors.New("it has bytes after its last field")
	}
	return nil
}

// checkSum adds up the bytes, the sum's own field as blanks.
func (h rawHeader) checkSum() error {
	want, err := number(h.field(148, 8))
	if err != nil {
		return fmt.Errorf("checksum %q: %w", h.field(148, 8), err)
	}
	var sum int64
	for i, c := range h {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int64(c)
	}
	if sum != want {
		return fmt.Errorf("its checksum is %d, its bytes add up to %d", want, sum)
	}
	return nil
}

// number reads octal digits, ended by blanks or NULs or by the field itself,
// or a base-256 number.
func number(b []byte) (int64, error) {
	if b[0] == 0x80 {
		var n uint64
		for _, c := range b[1:] {
			if n >= 1<<55 {
				return 0, errors.New("too large")
			}
			n = n<<8 | uint64(c)
		}
		return int64(n), nil
	}
	digits := bytes.TrimRight(b, " \x00")
	if len(digits) == 0 {
		return 0, errors.New("not a number")
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '7' {
			return 0, errors.New("not an octal number, or a negative one")
		}
		n = n<<3 | int64(c-'0')
	}
	return n, nil
}

// checkField refuses bytes that stand after the end of a text.
func checkField(name string, b []byte) error {
	if i := bytes.IndexByte(b, 0); i >= 0 && !zeros(b[i:]) {
		return fmt.Errorf("its %s has bytes after its end", name)
	}
	return nil
}

func text(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return string(b)
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// opaque are the beginnings of keys whose values are bytes. Nothing is ever
// done with them.
var opaque = []string{"SCHILY.", "LIBARCHIVE.", "RHT.", "MSWINDOWS.", "VENDOR."}

// parseRecords reads the records of an extended header: "LENGTH KEY=VALUE\n".
func parseRecords(s string) (map[string]string, error) {
	records := map[string]string{}
	for s != "" {
		digits, _, ok := strings.Cut(s[:min(len(s), 10)], " ")
		n, err := decimal(digits)
		if !ok || err != nil || n > int64(len(s)) || int(n) <= len(digits)+1 || s[n-1] != '\n' {
			return nil, fmt.Errorf("record %.40q has no length, or a wrong one", s)
		}
		key, value, ok := strings.Cut(s[len(digits)+1:n-1], "=")
		s = s[n:]
		switch {
		case !ok || key == "" || hasControl(key):
			return nil, fmt.Errorf("record %.40q has no key", key)
		case strings.HasPrefix(key, "GNU.sparse"):
			return nil, errors.New("it describes a sparse file")
		case !isOpaque(key) && hasControl(value):
			return nil, fmt.Errorf("record %q has control characters", key)
		}
		if _, twice := records[key]; twice {
			return nil, fmt.Errorf("record %q is there twice", key)
		}
		if value == "" && (key == "path" || key == "linkpath" || key == "size") {
			return nil, fmt.Errorf("record %q is empty", key)
		}
		records[key] = value
	}
	return records, nil
}

func isOpaque(key string) bool {
	for _, prefix := range opaque {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

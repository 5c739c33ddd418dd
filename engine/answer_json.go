package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// A jsonReader walks one JSON text, once and without building a tree: a reply
// has 16 kB for 96 tokens, and reading it may not slow the load that it is part
// of. It accepts what encoding/json does, invalid UTF-8 in strings too, but for
// nesting deeper than maxNesting. The first error ends the walk.
type jsonReader struct {
	b     []byte
	i     int
	depth int
	err   error // the text is no JSON
	kind  error // a value is of another kind than the field's
}

const maxNesting = 512

var errCutJSON = errors.New("the JSON ends too early")

// readJSON walks a whole text: f reads its one value.
func readJSON(b []byte, f func(r *jsonReader)) error {
	r := &jsonReader{b: b}
	f(r)
	if r.space(); r.err == nil && r.i < len(b) {
		r.fail()
	}
	if r.err == nil {
		return r.kind
	}
	return r.err
}

func (r *jsonReader) fail() {
	if r.err != nil {
		return
	}
	if r.i >= len(r.b) {
		r.err = errCutJSON
		return
	}
	r.err = fmt.Errorf("no JSON at byte %d: unexpected %q", r.i, r.b[r.i])
}

// wrong says that a value is of another kind than its field.
func (r *jsonReader) wrong(want string) {
	if r.kind == nil && r.err == nil {
		r.kind = fmt.Errorf("%s wanted at byte %d", want, r.i)
	}
	r.skip()
}

// space skips white space.
func (r *jsonReader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

// peek gives the next byte that is no white space, 0 at the end or after an
// error.
func (r *jsonReader) peek() byte {
	if r.i >= len(r.b) || r.b[r.i] <= ' ' {
		r.space()
	}
	if r.err != nil || r.i >= len(r.b) {
		return 0
	}
	return r.b[r.i]
}

// open enters an object or a list. A null in its place is an empty one.
func (r *jsonReader) open(bracket byte, want string) bool {
	switch r.peek() {
	case bracket:
	case 'n':
		r.word("null")
		return false
	default:
		r.wrong(want)
		return false
	}
	if r.depth == maxNesting {
		r.err = fmt.Errorf("no JSON at byte %d: nested deeper than %d", r.i, maxNesting)
		return false
	}
	r.i++
	r.depth++
	return true
}

// more tells whether another member follows, and goes to it.
func (r *jsonReader) more(first bool, bracket byte) bool {
	switch c := r.peek(); {
	case r.err != nil:
		return false
	case c == bracket:
		r.i++
		r.depth--
		return false
	case first:
		return true
	case c == ',':
		r.i++
		return true
	}
	r.fail()
	return false
}

// object calls f for every key; f has to read or skip the value.
func (r *jsonReader) object(f func(key []byte)) {
	if !r.open('{', "an object") {
		return
	}
	for first := true; r.more(first, '}'); first = false {
		if r.peek() != '"' {
			r.fail()
			return
		}
		from, to := r.quoted()
		if r.peek() != ':' {
			r.fail()
			return
		}
		r.i++
		key := r.b[from:to]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(r.text(from, to))
		}
		f(key)
	}
}

// list calls f for every element; f has to read or skip it.
func (r *jsonReader) list(f func()) {
	if !r.open('[', "a list") {
		return
	}
	for first := true; r.more(first, ']'); first = false {
		f()
	}
}

// string reads a string and where its bytes stand, still escaped. Null is "".
func (r *jsonReader) string() (s string, from, to int) {
	switch r.peek() {
	case '"':
		from, to = r.quoted()
		return r.text(from, to), from, to
	case 'n':
		r.word("null")
	default:
		r.wrong("a string")
	}
	return "", 0, 0
}

// quoted goes behind a string and tells where its bytes stand.
func (r *jsonReader) quoted() (from, to int) {
	r.i++
	from = r.i
	for r.i < len(r.b) {
		switch c := r.b[r.i]; {
		case c == '"':
			r.i++
			return from, r.i - 1
		case c < ' ':
			r.fail()
			return 0, 0
		case c == '\\':
			if r.escape(); r.err != nil {
				return 0, 0
			}
		default:
			r.i++
		}
	}
	r.fail()
	return 0, 0
}

func (r *jsonReader) escape() {
	r.i++
	if r.i >= len(r.b) {
		r.fail()
		return
	}
	switch r.b[r.i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		r.i++
	case 'u':
		r.i++
		for range 4 {
			if r.i >= len(r.b) || !isHex(r.b[r.i]) {
				r.fail()
				return
			}
			r.i++
		}
	default:
		r.fail()
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// text decodes the bytes of a string. Invalid UTF-8 becomes U+FFFD, as
// encoding/json has it.
func (r *jsonReader) text(from, to int) string {
	raw := r.b[from:to]
	for _, c := range raw {
		if c == '\\' || c >= utf8.RuneSelf {
			return r.hardText(from, to)
		}
	}
	return string(raw)
}

func (r *jsonReader) hardText(from, to int) string {
	if r.err != nil || from == 0 {
		return ""
	}
	var s string
	_ = json.Unmarshal(r.b[from-1:to+1], &s) // the scan was as strict
	return s
}

// numeral goes behind a number and gives its text. Null is false.
func (r *jsonReader) numeral() (text []byte, ok bool) {
	switch c := r.peek(); {
	case c == '-' || '0' <= c && c <= '9':
		from := r.i
		r.digits()
		return r.b[from:r.i], r.err == nil
	case c == 'n':
		r.word("null")
	default:
		r.wrong("a number")
	}
	return nil, false
}

// number reads a number; null is false. One that float64 cannot hold gives
// false too.
func (r *jsonReader) number() (v float64, ok bool) {
	text, ok := r.numeral()
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil
}

// int reads a whole number; null is false.
func (r *jsonReader) int() (n int, ok bool) {
	text, ok := r.numeral()
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(string(text))
	if err != nil && r.kind == nil {
		r.kind = fmt.Errorf("a whole number wanted before byte %d", r.i)
	}
	return n, err == nil
}

// digits goes behind a number.
func (r *jsonReader) digits() {
	if r.b[r.i] == '-' {
		r.i++
	}
	if r.i < len(r.b) && r.b[r.i] == '0' {
		r.i++
	} else {
		r.some()
	}
	if r.i < len(r.b) && r.b[r.i] == '.' {
		r.i++
		r.some()
	}
	if r.i < len(r.b) && r.b[r.i]|0x20 == 'e' {
		r.i++
		if r.i < len(r.b) && (r.b[r.i] == '+' || r.b[r.i] == '-') {
			r.i++
		}
		r.some()
	}
}

// some goes behind one digit or more.
func (r *jsonReader) some() {
	from := r.i
	for r.i < len(r.b) && '0' <= r.b[r.i] && r.b[r.i] <= '9' {
		r.i++
	}
	if r.i == from {
		r.fail()
	}
}

// bool reads true or false; null is false.
func (r *jsonReader) bool() bool {
	switch r.peek() {
	case 't':
		r.word("true")
		return r.err == nil
	case 'f':
		r.word("false")
	case 'n':
		r.word("null")
	default:
		r.wrong("true or false")
	}
	return false
}

func (r *jsonReader) word(w string) {
	for i := range len(w) {
		if r.i >= len(r.b) || r.b[r.i] != w[i] {
			r.fail()
			return
		}
		r.i++
	}
}

// skip goes behind any value.
func (r *jsonReader) skip() {
	switch c := r.peek(); {
	case r.err != nil:
	case c == '{':
		r.object(func([]byte) { r.skip() })
	case c == '[':
		r.list(r.skip)
	case c == '"':
		r.quoted()
	case c == 't':
		r.word("true")
	case c == 'f':
		r.word("false")
	case c == 'n':
		r.word("null")
	case c == '-' || '0' <= c && c <= '9':
		r.digits()
	default:
		r.fail()
	}
}

package systemd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrEnvironmentFile is wrapped when systemd refuses an environment file as a whole: the unit
// does not start, or with a leading "-" starts without it.
var ErrEnvironmentFile = errors.New("not an environment file")

// ErrDisputedFile is wrapped when one version of systemd refuses an environment file as a whole and another does not.
var ErrDisputedFile = errors.New("not an environment file for every version of systemd")

// Pair is one KEY=value of an environment file.
type Pair struct {
	Key, Value string
	Line       int    // on which the key begins; 1 is the first
	Unsure     string // why it is not certain that systemd takes it; "" when it is
}

// ParseEnvironmentFile reads an environment file as systemd's parse_env_file does, which is
// neither a shell nor the grammar of unit files: a value may be quoted in whole or in its first
// parts, a backslash escapes a character or the end of a line, a "#" counts as a comment only
// where a key could begin, nothing is expanded. Pairs with names that no variable can have are
// left out. The error wraps ErrEnvironmentFile for a NUL byte or what is not UTF-8.
//
// Versions differ on where a comment ends, and so on what is a pair: those that not all of them take are unsure. Where
// some refuse the file, all pairs are, and come with an error that wraps ErrDisputedFile.
func ParseEnvironmentFile(path string, data []byte) ([]Pair, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("read %s: %w", path, ErrTooBig)
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, fmt.Errorf("%w: %s: it has a NUL byte", ErrEnvironmentFile, path)
	}
	pairs, differs := parsePairs(data, false)
	bad := badPair(pairs)
	if differs {
		old, _ := parsePairs(data, true)
		oldBad := badPair(old)
		switch {
		case bad == 0 && oldBad == 0:
			pairs = mergePairs(pairs, old)
		case bad == 0:
			return unsurePairs(pairs), fmt.Errorf("%w: %s:%d: systemd before 254 finds that it is not UTF-8", ErrDisputedFile, path, oldBad)
		case oldBad == 0:
			return unsurePairs(old), fmt.Errorf("%w: %s:%d: only systemd before 254 does not find that it is not UTF-8", ErrDisputedFile, path, bad)
		}
	}
	if bad > 0 {
		return nil, fmt.Errorf("%w: %s:%d: it is not UTF-8", ErrEnvironmentFile, path, bad)
	}
	return goodPairs(pairs), nil
}

// badPair is the line of the first pair for which systemd refuses the file, 0 when there is none.
func badPair(pairs []Pair) int {
	for _, pair := range pairs {
		if !validUTF8(pair.Key) || !validUTF8(pair.Value) {
			return pair.Line
		}
	}
	return 0
}

// goodPairs leaves out those that systemd passes over.
func goodPairs(pairs []Pair) []Pair {
	var good []Pair
	for _, pair := range pairs {
		if validName(pair.Key) && validValue(pair.Value) {
			good = append(good, pair)
		}
	}
	return good
}

// unsurePairs are the pairs of a file that may count for nothing.
func unsurePairs(pairs []Pair) []Pair {
	pairs = goodPairs(pairs)
	for i := range pairs {
		pairs[i].Unsure = "a comment in its file ends in a backslash, and so not every version of systemd takes the file"
	}
	return pairs
}

// parsePairs reads with the rule for comments of systemd before 254 (old) or after it, and says
// whether that makes a difference to where comments end.
func parsePairs(data []byte, old bool) (pairs []Pair, differs bool) {
	p := envParser{line: 1, old: old}
	for _, c := range data {
		p.step(c)
	}
	p.end()
	return p.pairs, p.differs
}

// disputed is why a pair is unsure.
const disputed = "a comment before it ends in a backslash, which only systemd before 254 takes for a continuation"

// mergePairs joins the two readings of a file in the order of its lines; what is not in both is
// unsure.
func mergePairs(now, old []Pair) []Pair {
	var all []Pair
	for _, pair := range now {
		if !slices.Contains(old, pair) {
			pair.Unsure = disputed
		}
		all = append(all, pair)
	}
	for _, pair := range old {
		if !slices.Contains(now, pair) {
			pair.Unsure = disputed
			all = append(all, pair)
		}
	}
	slices.SortStableFunc(all, func(a, b Pair) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

// envState is where in the grammar the parser is:
//
//	        ┌─#;──▶ comment ─\─▶ commentEscape
//	preKey ─┴─────▶ key ─=─▶ preValue ─┬─'─▶ single ─'─▶ preValue
//	  ▲                                ├─"─▶ double ─"─▶ preValue
//	  └────────── end of line ─────────┴────▶ value ─\─▶ valueEscape
type envState int

const (
	preKey envState = iota
	inKey
	preValue
	inValue
	valueEscape
	single
	double
	doubleEscape
	comment
	commentEscape
)

type envParser struct {
	state      envState
	key, value []byte
	keySpace   int // where the white space at the end of the key begins, -1: none
	valueSpace int // the same for the value
	line       int // of the byte that is read
	start      int // of the key
	last       byte
	old        bool // a backslash at the end of a comment continues it
	differs    bool // there was one
	pairs      []Pair
}

const (
	newline      = "\n\r"
	shellEscapes = "\"\\`$"
)

func in(set string, c byte) bool { return strings.IndexByte(set, c) >= 0 }

// step takes one byte.
func (p *envParser) step(c byte) {
	switch p.state {
	case preKey:
		if in(commentStarts, c) {
			p.state = comment
		} else if !in(whitespace, c) {
			p.state, p.start, p.keySpace = inKey, p.line, -1
			p.key = append(p.key, c)
		}
	case inKey:
		if in(newline, c) {
			p.reset()
		} else if c == '=' {
			p.state, p.valueSpace = preValue, -1
		} else {
			p.keySpace = space(p.keySpace, len(p.key), c)
			p.key = append(p.key, c)
		}
	case preValue:
		switch {
		case in(newline, c):
			p.push(false)
		case c == '\'':
			p.state = single
		case c == '"':
			p.state = double
		case c == '\\':
			p.state = valueEscape
		case !in(whitespace, c):
			p.state = inValue
			p.value = append(p.value, c)
		}
	case inValue:
		if in(newline, c) {
			p.push(true)
		} else if c == '\\' {
			p.state, p.valueSpace = valueEscape, -1
		} else {
			p.valueSpace = space(p.valueSpace, len(p.value), c)
			p.value = append(p.value, c)
		}
	default:
		p.stepInside(c)
	}
	if c == '\n' && p.last != '\r' || c == '\r' {
		p.line++
	}
	p.last = c
}

// stepInside takes one byte inside quotes, escapes and comments.
func (p *envParser) stepInside(c byte) {
	switch p.state {
	case valueEscape:
		p.state = inValue
		if !in(newline, c) {
			p.value = append(p.value, c)
		}
	case single:
		if c == '\'' {
			p.state = preValue
		} else {
			p.value = append(p.value, c)
		}
	case double:
		switch c {
		case '"':
			p.state = preValue
		case '\\':
			p.state = doubleEscape
		default:
			p.value = append(p.value, c)
		}
	case doubleEscape:
		p.state = double
		if in(shellEscapes, c) {
			p.value = append(p.value, c)
		} else if c != '\n' {
			p.value = append(p.value, '\\', c)
		}
	case comment:
		if c == '\\' {
			p.state = commentEscape
		} else if in(newline, c) {
			p.reset()
		}
	case commentEscape:
		p.state = comment
		if in(newline, c) {
			p.differs = true
			if !p.old {
				p.reset()
			}
		}
	}
}

// space notes where the white space at the end of a key or value begins.
func space(since, length int, c byte) int {
	if !in(whitespace, c) {
		return -1
	} else if since < 0 {
		return length
	}
	return since
}

func (p *envParser) reset() { p.state, p.key, p.value = preKey, nil, nil }

// push ends a pair; trim takes the white space off the end of its value.
func (p *envParser) push(trim bool) {
	key, value := p.key, p.value
	if p.keySpace >= 0 {
		key = key[:p.keySpace]
	}
	if trim && p.valueSpace >= 0 {
		value = value[:p.valueSpace]
	}
	p.pairs = append(p.pairs, Pair{Key: string(key), Value: string(value), Line: p.start})
	p.reset()
}

// end takes the end of the file, which also ends what is open.
func (p *envParser) end() {
	switch p.state {
	case preValue, inValue, valueEscape, single, double, doubleEscape:
		p.push(p.state == inValue)
	}
}

package systemd

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// errUnbalanced ends the splitting of a line: what comes after it is lost.
var errUnbalanced = errors.New("a quote that is not closed, or an escape that is none")

// wordRule says how words are read; systemd has its own for nearly every key.
type wordRule struct {
	unescape bool // the escapes of C count; else a backslash only takes the meaning off the byte after it
	unknown  bool // with unescape: an escape that is none stays as it is written
	open     bool // the end of the line closes a quote
}

// The rules of Environment=, of PassEnvironment=, and of a variable that stands alone in a command.
var (
	assignmentRule = wordRule{unescape: true}
	nameRule       = wordRule{}
	variableRule   = wordRule{open: true}
)

// nextWord takes the first word off a line as systemd's extract_first_word does with
// EXTRACT_UNQUOTE: quotes may begin and end anywhere in a word and are taken off, and escapes
// count inside and outside of them. There is no word when more is false.
func nextWord(line string, rule wordRule) (word, rest string, more bool, err error) {
	line = strings.TrimLeft(line, whitespace)
	if line == "" {
		return "", "", false, nil
	}
	var out []byte
	var quote byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\\' && i+1 == len(line):
			switch {
			case rule.open: // it means nothing
			case rule.unknown && quote == 0:
				out = append(out, c)
			default:
				return "", "", false, errUnbalanced
			}
		case c == '\\' && rule.unescape:
			decoded, n, ok := unescapeOne(line[i+1:])
			if !ok && !rule.unknown {
				return "", "", false, errUnbalanced
			} else if !ok {
				decoded, n = []byte{c, line[i+1]}, 1
			}
			out = append(out, decoded...)
			i += n
		case c == '\\':
			i++
			out = append(out, line[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			out = append(out, c)
		case c == '\'' || c == '"':
			quote = c
		case strings.IndexByte(whitespace, c) >= 0:
			return string(out), line[i:], true, nil
		default:
			out = append(out, c)
		}
	}
	if quote != 0 && !rule.open {
		return "", "", false, errUnbalanced
	}
	return string(out), "", true, nil
}

// nextCommandWord takes the first word off a command line: an escape that is none makes systemd
// read the word once more, with every such escape as it is written.
func nextCommandWord(line string) (word, rest string, more bool, err error) {
	word, rest, more, err = nextWord(line, assignmentRule)
	if err != nil {
		word, rest, more, err = nextWord(line, wordRule{unescape: true, unknown: true})
	}
	return word, rest, more, err
}

// unescapeOne reads what comes after a backslash, as systemd's cunescape_one does, and says how
// many bytes it took. NUL is not allowed in any spelling.
func unescapeOne(text string) (decoded []byte, n int, ok bool) {
	const plain, means = `abfnrtv\"'s`, "\a\b\f\n\r\t\v\\\"' "
	if i := strings.IndexByte(plain, text[0]); i >= 0 {
		return []byte{means[i]}, 1, true
	}
	switch c := text[0]; {
	case c == 'x':
		value, ok := digits(text[1:], 2, 16)
		return []byte{byte(value)}, 3, ok && value != 0
	case c == 'u':
		value, ok := digits(text[1:], 4, 16)
		return appendCodePoint(nil, value), 5, ok && value != 0
	case c == 'U':
		value, ok := digits(text[1:], 8, 16)
		return appendCodePoint(nil, value), 9, ok && value != 0 && value <= utf8.MaxRune && validUTF8(string(appendCodePoint(nil, value)))
	case c >= '0' && c <= '7':
		value, ok := digits(text, 3, 8)
		return []byte{byte(value)}, 3, ok && value != 0 && value <= 255
	}
	return nil, 0, false
}

// appendCodePoint encodes also the halves of a surrogate pair, as systemd does (which then finds
// the value not to be UTF-8).
func appendCodePoint(out []byte, value uint32) []byte {
	if value >= 0xd800 && value <= 0xdfff {
		return append(out, byte(0xe0|value>>12), byte(0x80|value>>6&0x3f), byte(0x80|value&0x3f))
	}
	return utf8.AppendRune(out, rune(value))
}

// digits reads exactly n digits of a base.
func digits(text string, n int, base uint32) (uint32, bool) {
	if len(text) < n {
		return 0, false
	}
	var value uint32
	for i := range n {
		const all = "0123456789abcdef"
		digit := strings.IndexByte(all[:base], text[i]|0x20)
		if text[i] < '0' || digit < 0 {
			return 0, false
		}
		value = value*base + uint32(digit)
	}
	return value, true
}

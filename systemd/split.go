package systemd

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// RawWord is one word of a value: as it is written, and as systemd reads it.
type RawWord struct {
	Raw  string // with its quotes and escapes
	Text string // without them; specifiers and variables stand as they are
}

// SplitCommands splits the value of an ExecStart= or its like into commands and those into words, so that a line can
// be written anew with some of its words changed and all others byte for byte as they were. A lone ";" ends a command,
// `\;` is the word ";". The prefixes of a command ("-", "@", …) belong to its first word; an escape that is none stays
// as it is written. The error is about a quote that is not closed.
func SplitCommands(value string) ([][]RawWord, error) {
	commands, _, err := splitCommands(value)
	if err != nil {
		return nil, err
	}
	return commands, nil
}

// splitCommands also returns what stands before an error; open says that the error is in the last command.
func splitCommands(value string) (commands [][]RawWord, open bool, err error) {
	var words []RawWord
	end := func() {
		if len(words) > 0 {
			commands, words = append(commands, words), nil
		}
	}
	for {
		value = strings.TrimLeft(value, whitespace)
		if len(words) > 0 {
			if rest, ok := cutToken(value, ";"); ok {
				end()
				value = rest
				continue
			}
			if rest, ok := cutToken(value, `\;`); ok {
				words, value = append(words, RawWord{`\;`, ";"}), rest
				continue
			}
		}
		text, rest, more, err := nextCommandWord(value)
		if err != nil || !more {
			open := err != nil && len(words) > 0
			end()
			return commands, open, err
		}
		if len(words) > 0 || text != ";" { // else one more separator
			words = append(words, RawWord{value[:len(value)-len(rest)], text})
		}
		value = rest
	}
}

// cutToken takes a token off that stands alone.
func cutToken(text, token string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(text, token)
	if !ok || rest != "" && strings.IndexByte(whitespace, rest[0]) < 0 {
		return text, false
	}
	return rest, true
}

// QuoteWord writes a word of a command line so that systemd reads exactly that text: in quotes, backslash and quote
// escaped, per cent doubled. A dollar sign keeps its meaning: "$$" is one, "${NAME}" a variable. A control character,
// and a byte that is no part of UTF-8, is written as its escape; NUL cannot be written and is left out.
func QuoteWord(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for len(text) > 0 {
		_, size := utf8.DecodeRuneInString(text)
		char := text[:size]
		text = text[size:]
		switch {
		case char == `"` || char == `\`:
			b.WriteString(`\` + char)
		case char == "%":
			b.WriteString("%%")
		case char == "\x00":
		case char < " " || char == "\x7f" || !validUTF8(char):
			for i := range len(char) {
				fmt.Fprintf(&b, `\x%02x`, char[i])
			}
		default:
			b.WriteString(char)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Expand replaces the specifiers of a text as they stand for a unit. unsure names the first one whose meaning is not
// known; when ok is false systemd refuses the text.
func (s Specifiers) Expand(u *Unit, text string) (value, unsure string, ok bool) {
	return s.forUnit(u.ID, u.FragmentPath).expand(text)
}

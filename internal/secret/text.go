package secret

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a text, of one line or many, with the secrets in it masked. A line that ends with a backslash goes on in the
// next one, as in a unit file. No line's end is masked.
func Text(s string) string { return hide(s, secrets) }

// secrets finds what is a secret by its name, its place and its shape.
func secrets(s string) []span { return append(named(s), shaped(s)...) }

// hide masks what is found in a text. What is not seen when the text is shown, such as colours, is not looked at.
func hide(s string, find func(string) []span) string {
	seen, at := visible(s)
	found := find(seen)
	if len(found) == 0 {
		return s
	}
	slices.SortFunc(found, func(a, b span) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	var b strings.Builder
	done := 0
	for i := 0; i < len(found); {
		whole := found[i]
		for i++; i < len(found) && found[i].from < whole.to; i++ {
			whole.to = max(whole.to, found[i].to)
		}
		if whole.from >= whole.to {
			continue
		}
		if at != nil {
			whole.from, whole.to = at[whole.from], at[whole.to-1]+1
		}
		b.WriteString(s[done:whole.from])
		b.WriteString(lines(s[whole.from:whole.to]))
		done = whole.to
	}
	return b.String() + s[done:]
}

// lines is Mask, with the ends of the lines that it stands for, so that what follows keeps its place.
func lines(s string) string {
	if !strings.Contains(s, "\n") {
		return Mask
	}
	var b strings.Builder
	masked := false
	for line := range strings.Lines(s) {
		text := strings.TrimRight(line, "\r\n")
		end := line[len(text):]
		if end != "" && strings.HasSuffix(text, `\`) {
			text, end = text[:len(text)-1], `\`+end
			if kept := strings.TrimRight(text, " \t"); kept != text {
				text, end = kept, " "+end
			}
		}
		inner := strings.TrimLeft(text, " \t")
		b.WriteString(text[:len(text)-len(inner)])
		if inner != "" && !masked {
			b.WriteString(Mask)
			masked = true
		}
		b.WriteString(end)
	}
	return b.String()
}

// visible is a text without what is not seen of it when it is shown, and for each byte of it its place in the text; nil
// where the text is all seen.
func visible(s string) (string, []int) {
	if strings.IndexFunc(s, unseen) < 0 {
		return s, nil
	}
	b, at := make([]byte, 0, len(s)), make([]int, 0, len(s))
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == 0x1b:
			i += escape(s[i:])
			continue
		case c == 0: // between the words of a command line
			b, at = append(b, ' '), append(at, i)
		case !unseen(c):
			for k := range n {
				b, at = append(b, s[i+k]), append(at, i+k)
			}
		}
		i += n
	}
	return string(b), at
}

// holds tells whether a word, in small letters, is in a text, in letters of any size.
func holds(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// unseen tells characters that take no room.
func unseen(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f || c != utf8.RuneError && unicode.Is(unicode.Cf, c)
}

// escape is the length of a terminal's sequence, such as of a colour.
func escape(s string) int {
	if len(s) < 2 || s[1] != '[' {
		return 1
	}
	for i := 2; i < len(s); i++ {
		if s[i] >= 0x40 && s[i] <= 0x7e {
			return i + 1
		}
		if s[i] < 0x20 || s[i] > 0x7e {
			return i
		}
	}
	return len(s)
}

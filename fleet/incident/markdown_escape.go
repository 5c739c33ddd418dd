package incident

import (
	"strings"

	"github.com/1bit-systems/pkg/internal/ui"
)

// escape makes text from elsewhere into one line of plain text.
func escape(s string) string {
	s = strings.TrimSpace(ui.Clean(cut(s, maxText)))
	number := len(s) - len(strings.TrimLeft(s, "0123456789")) // with a dot behind it a list would begin
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; c {
		case '\\', '`', '*', '_', '{', '}', '[', ']', '<', '>', '|', '~', '$', '!':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '-', '+', '=', '.', ')':
			if i == 0 && c != '.' && c != ')' || i == number && i > 0 && (c == '.' || c == ')') {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case '#': // an issue's number is no link of this repository's
			if i == 0 || s[i-1] == ' ' {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		case '&':
			b.WriteString("&amp;")
		case '@': // nobody is called
			b.WriteString("&#64;")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// code makes text from elsewhere into a piece of code, also within a table.
func code(s string) string {
	s = ui.Clean(cut(s, maxText))
	if strings.TrimSpace(s) == "" {
		return "–"
	}
	if strings.Contains(s, "|") { // a table would be cut there, in code too
		return "<code>" + escape(s) + "</code>"
	}
	fence := strings.Repeat("`", backticks(s)+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || strings.HasPrefix(s, " ") || strings.HasSuffix(s, " ") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// backticks is the longest run of them.
func backticks(s string) int {
	longest, n := 0, 0
	for i := range len(s) {
		if s[i] == '`' {
			n++
			longest = max(longest, n)
		} else {
			n = 0
		}
	}
	return longest
}

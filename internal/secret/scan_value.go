package secret

import (
	"slices"
	"strings"
	"unicode"
)

// value is one that follows a name.
type value struct {
	*scanner
	name     string
	from     int
	sign     string // between name and value
	quoted   bool   // the name is in quotes of its own
	alone    bool   // a quote opens right before the name, and has name and value
	query    bool   // of a URL
	code     bool   // Markdown's quotes are around
	doubtful bool   // it is a secret only if it looks like one
}

// operator reads the sign between a name and its value, "" if there is none, and where the value begins.
func (v *value) operator(at, from int) string {
	if at < len(v.s) && v.s[at] == '>' && from > 0 && v.s[from-1] == '<' {
		v.from, v.sign = at+1, ">"
		return v.sign
	}
	at = v.blanks(at, false)
	for _, sign := range []string{"==", "=>", ":=", "=", ":", ","} {
		if strings.HasPrefix(v.s[at:], sign) {
			v.from, v.sign = v.blanks(at+len(sign), false), sign
			if sign == "==" && v.from > at+len(sign) || sign == "," && !v.listed(from) || sign != "=" && from > 0 && v.s[from-1] == '/' {
				return "" // a comparison, a list, a path
			}
			return sign
		}
	}
	return ""
}

// listed tells whether a name in quotes stands in a list, and its value behind it, as in ["X-Api-Key", "x"].
func (v *value) listed(from int) bool {
	before := strings.TrimRight(strings.TrimRight(v.s[:from], `\"'`), " \t")
	in := before == "" || strings.IndexByte("[({,", before[len(before)-1]) >= 0
	return v.quoted && in && (v.name[0] == '-' || v.name[0]|0x20 == 'x' || isHeader(v.name)) && strings.IndexByte(`\"'`, v.s[min(v.from, len(v.s)-1)]) >= 0
}

// isHeader tells whether a name is of a header whose value has several words.
func isHeader(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, "authorization") || strings.HasSuffix(name, "cookie")
}

// read masks the value, and tells where to go on.
func (v *value) read() (next int) {
	if v.from >= len(v.s) {
		return len(v.s)
	}
	if c := v.s[v.from]; c == '[' || c == '{' {
		if !v.doubtful {
			return v.within()
		}
		if v.from >= v.looked {
			v.looked = v.within()
		}
		return v.from // the names in it may be of secrets
	}
	n := forward(v.s[v.from:])
	if q := v.from + n; q < len(v.s) && (v.s[q] == '"' || v.s[q] == '\'') && v.closing(v.s[q], n) < 0 {
		end, after := v.closed(q+1, quote{v.s[q], n, q})
		if v.sign != ":" && !v.quoted && v.joined(after) { // systemd and shells join such words
			end = v.word(after)
			return v.take(v.from, end, end)
		}
		return v.take(q+1, end, after)
	}
	if v.alone {
		open := v.open
		end, after := v.closed(v.from, open[len(open)-1])
		if v.open = open[:len(open)-1]; v.sign == "=" && after > end && v.joined(after) {
			end = v.word(after)
		} else {
			v.open = open
		}
		return v.take(v.from, end, end)
	}
	end := v.word(v.from)
	return v.take(v.from, end, end)
}

// joined tells whether a word goes on behind a quote that ended.
func (v *value) joined(i int) bool {
	n := forward(v.s[i:])
	if i += n; i == len(v.s) || v.s[i] == '\n' || v.s[i] == '\r' {
		return false
	}
	if c := v.s[i]; c == '"' || c == '\'' {
		return v.closing(c, n) < 0
	}
	return n > 0 || nameByte(v.s[i]) || v.s[i] == '/' || v.s[i] == '+'
}

// take masks a value unless it is none.
func (v *value) take(from, to, next int) int {
	text := v.s[from:to]
	if strings.HasPrefix(v.s[from:], Mask) && !strings.ContainsFunc(v.s[from+len(Mask):max(to, from+len(Mask))], func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }) {
		return max(next, to, from+len(Mask))
	}
	if v.name == userOption {
		if a, b := userPassword(text); b > a && !reNoSecret().MatchString(text) {
			v.found = append(v.found, span{from + a, from + b})
			return max(next, from)
		}
		return v.from
	}
	if text == "" || v.sign == "," && strings.HasPrefix(text, "--") || v.doubtful && !random(strings.TrimRight(text, ".,;)]}")) || harmless(v.name, text) || harmless(v.name, strings.TrimRight(text, ".,;:)]}")) {
		return v.from // what it holds may have names of its own
	}
	v.found = append(v.found, span{from, to})
	return max(next, from)
}

// closed finds the end of a quoted text, and where it goes on behind the quote. A line's end closes all.
func (v *value) closed(i int, q quote) (end, after int) {
	for ; i < len(v.s); i++ {
		switch c := v.s[i]; {
		case c == '\n' && lineEnd(v.s[max(0, i-1):]) == 0 && lineEnd(v.s[max(0, i-2):]) == 0:
			return i, i
		case c == q.sign:
			if n := min(v.slashes(i), i-q.at-1); q.closes(c, n) {
				return i - min(n, q.slashes), i + 1
			}
		}
	}
	return len(v.s), len(v.s)
}

// word finds the end of a value that is in no quotes, or in some within it.
func (v *value) wordEnd(i int) int {
	header := isHeader(v.name)
	start := i
	for i < len(v.s) {
		switch c := v.s[i]; {
		case c == '\n':
			return i
		case c == '\\':
			n := forward(v.s[i:])
			at := i + n
			switch {
			case at == len(v.s):
				return at
			case v.s[at] == '"' || v.s[at] == '\'':
				if v.closing(v.s[at], n) >= 0 {
					return i
				}
				i = at + 1
			case n%2 == 1 && lineEnd(v.s[at-1:]) > 0:
				i = v.blanks(at-1, true)
			case n%2 == 1:
				i = at + 1
			default:
				i = at
			}
		case c == '"' || c == '\'':
			if v.closing(c, 0) >= 0 {
				return i
			}
			if end, after := v.closed(i+1, quote{c, 0, i}); after > end {
				i = after
			} else {
				i++
			}
		case v.sign == ">":
			if c == '<' {
				return i
			}
			i++
		case v.quoted && v.sign == ":" && strings.IndexByte(",]}", c) >= 0: // JSON has numbers like this
			return i
		case v.code && c == '`':
			return i
		case v.query && strings.IndexByte("&;#", c) >= 0:
			return i
		case blank(c) || c == '\r':
			if header && (v.sign == ":" || c != '\r' && wordsMore(v.s[start:i])) {
				start = i + 1
				i++
				continue
			}
			return i
		default:
			i++
		}
	}
	return i
}

// wordsMore tells of a header's value so far that it goes on: the scheme of an authorization, a cookie of several.
func wordsMore(text string) bool {
	return strings.HasSuffix(text, ";") || text == "" ||
		slices.Contains([]string{"bearer", "basic", "token", "digest", "negotiate", "apikey", "key"}, strings.ToLower(text))
}

func (v *value) word(i int) int {
	end := v.wordEnd(i)
	if isHeader(v.name) && v.sign == ":" {
		return end
	}
	for end > i && strings.IndexByte(",;)]}", v.s[end-1]) >= 0 && !reVariable().MatchString(v.s[i:end]) {
		end--
	}
	return end
}

// within masks what a list or an object holds: all texts and words but the names in it, numbers and words for yes and
// no. What it is made of stays.
func (v *value) within() int {
	depth, i := 0, v.from
	for i < len(v.s) && v.s[i] != '\n' {
		c := v.s[i]
		n := 0
		if c == '\\' {
			n = forward(v.s[i:])
			if i+n >= len(v.s) {
				return len(v.s)
			}
			c = v.s[i+n]
		}
		switch {
		case c == '"' || c == '\'':
			if v.closing(c, n) >= 0 {
				return i
			}
			end, after := v.closed(i+n+1, quote{c, n, i + n})
			if !strings.HasPrefix(strings.TrimLeft(v.s[after:], " \t"), ":") {
				v.take(i+n+1, end, after)
			}
			i = after
		case n > 0:
			i += n
		case c == '[' || c == '{':
			depth++
			i++
		case c == ']' || c == '}':
			depth--
			i++
			if depth <= 0 {
				return i
			}
		case strings.IndexByte(" \t,:\r", c) >= 0:
			i++
		default:
			end := i
			for end < len(v.s) && strings.IndexByte(" \t\r\n,[]{}\"'\\", v.s[end]) < 0 {
				end++
			}
			if reCount().MatchString(v.s[i:end]) || reAmount().MatchString(v.s[i:end]) || strings.HasSuffix(v.s[i:end], ":") {
				i = end
				continue
			}
			v.take(i, end, end)
			i = end
		}
	}
	return i
}

// credential is SetCredential=name:value, which goes on to the end of the line, comments and further lines included.
func (v *value) credential() int {
	end := v.from
	for end < len(v.s) {
		switch n := lineEnd(v.s[end:]); {
		case n > 0:
			end = v.comments(end + n)
		case v.s[end] == '\n' || v.s[end] == '\r':
			return v.credentialTo(end)
		default:
			end++
		}
	}
	return v.credentialTo(end)
}

func (v *value) credentialTo(end int) int {
	if i := strings.IndexByte(v.s[v.from:end], ':'); i >= 0 {
		v.from += i + 1
	}
	return v.take(v.from, end, end)
}

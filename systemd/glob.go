package systemd

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// globPart is what stands between two slashes of a glob(3) pattern.
type globPart []globToken

// globToken matches one character, or with any zero or more.
type globToken struct {
	kind globKind
	char byte      // of a globChar
	set  [128]bool // of a globSet: the ASCII characters in it, with what a "!" makes of them
	not  bool
}

type globKind int

const (
	globChar globKind = iota // one byte
	globOne                  // "?"
	globSet                  // "[…]"
	globAny                  // "*"
)

var (
	errGlob   = errors.New("what glob(3) makes of this pattern is not certain")
	errLocale = errors.New("whether the pattern matches depends on the locale of the manager")
)

// parseGlob reads one part of a pattern. The error is errGlob for what is not well-formed and errLocale
// for a set that locales do not agree on.
func parseGlob(text string) (globPart, error) {
	var part globPart
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*':
			part = append(part, globToken{kind: globAny})
		case '?':
			part = append(part, globToken{kind: globOne})
		case '[':
			token, length, err := parseGlobSet(text[i:])
			if err != nil {
				return nil, err
			}
			part = append(part, token)
			i += length - 1
		case '\\':
			if i++; i == len(text) {
				return nil, errGlob
			}
			part = append(part, globToken{char: text[i]})
		default:
			part = append(part, globToken{char: c})
		}
	}
	return part, nil
}

// parseGlobSet reads a set with its brackets, as fnmatch(3) of glibc does. A "]" at its beginning
// and a "-" at either end stand for themselves.
func parseGlobSet(text string) (token globToken, length int, err error) {
	token.kind = globSet
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		token.not = true
		i++
	}
	for first := i; ; {
		if i >= len(text) {
			return token, 0, errGlob
		}
		if text[i] == ']' && i > first {
			break
		}
		if rest := text[i:]; strings.HasPrefix(rest, "[:") {
			end := strings.Index(rest, ":]")
			class := globClasses[rest[2:max(2, end)]]
			if class == nil || strings.HasPrefix(rest[end+2:], "-") && !strings.HasPrefix(rest[end+2:], "-]") {
				return token, 0, errGlob
			}
			for c := range len(token.set) {
				token.set[c] = token.set[c] || class(byte(c))
			}
			i += end + 2
			continue
		}
		low, n, err := globMember(text[i:])
		if err != nil {
			return token, 0, err
		}
		high := low
		if i += n; i+1 < len(text) && text[i] == '-' && text[i+1] != ']' {
			if high, n, err = globMember(text[i+1:]); err != nil {
				return token, 0, err
			}
			i += 1 + n
			alike := isDigit(low) && isDigit(high) || isLetter(low) && isLetter(high) && low&0x20 == high&0x20
			if !alike {
				return token, 0, errLocale
			}
		}
		for c := int(low); c <= int(high); c++ {
			token.set[c] = true
		}
	}
	for c := range token.set {
		token.set[c] = token.set[c] != token.not
	}
	return token, i + 1, nil
}

// globMember reads one character of a set: itself, escaped, or as [.c.].
func globMember(text string) (c byte, length int, err error) {
	switch {
	case strings.HasPrefix(text, "[."):
		if len(text) < 5 || text[3:5] != ".]" {
			return 0, 0, errGlob
		}
		c, length = text[2], 5
	case strings.HasPrefix(text, "[:"), strings.HasPrefix(text, "[="):
		return 0, 0, errGlob
	case text[0] == '\\':
		if len(text) < 2 {
			return 0, 0, errGlob
		}
		c, length = text[1], 2
	default:
		c, length = text[0], 1
	}
	if c >= utf8.RuneSelf {
		return 0, 0, errLocale
	}
	return c, length, nil
}

// globClasses are what the names of classes stand for among the ASCII characters, in any locale.
var globClasses = map[string]func(c byte) bool{
	"alnum":  func(c byte) bool { return isDigit(c) || isLetter(c) },
	"alpha":  isLetter,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > ' ' && c < 0x7f },
	"lower":  func(c byte) bool { return c >= 'a' && c <= 'z' },
	"print":  func(c byte) bool { return c >= ' ' && c < 0x7f },
	"punct":  func(c byte) bool { return c > ' ' && c < 0x7f && !isDigit(c) && !isLetter(c) },
	"space":  func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' },
	"upper":  func(c byte) bool { return c >= 'A' && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' },
}

// literal is the only name that a part matches, if it has no wildcard.
func (p globPart) literal() (name string, ok bool) {
	var out strings.Builder
	for _, token := range p {
		if token.kind != globChar {
			return "", false
		}
		out.WriteByte(token.char)
	}
	return out.String(), true
}

// matches says whether a name matches. A dot at its beginning must be spelled out. The error is
// errLocale where a locale of bytes and one of characters do not agree.
func (p globPart) matches(name string) (bool, error) {
	inBytes := p.match(name, false, func(token globToken) bool { return token.not })
	if strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return inBytes, nil
	}
	never := p.match(name, true, func(globToken) bool { return false })
	always := p.match(name, true, func(globToken) bool { return true })
	if !utf8.ValidString(name) || inBytes != never || inBytes != always {
		return false, errLocale
	}
	return inBytes, nil
}

// match matches by bytes or by characters; other says whether a set has what is not ASCII.
func (p globPart) match(name string, characters bool, other func(globToken) bool) bool {
	if len(p) > 0 && strings.HasPrefix(name, ".") && (p[0].kind != globChar) {
		return false
	}
	width := func(at int) int {
		if !characters {
			return 1
		}
		_, size := utf8.DecodeRuneInString(name[at:])
		return size
	}
	i, at := 0, 0       // the token and the byte that are next
	star, from := -1, 0 // the last "*", and where the rest after it was tried
	for i < len(p) || at < len(name) {
		if i < len(p) && p[i].kind == globAny {
			star, from = i, at
			i++
			continue
		}
		if i < len(p) && at < len(name) {
			token, c := p[i], name[at]
			switch {
			case token.kind == globChar && token.char == c:
				i, at = i+1, at+1
				continue
			case token.kind == globOne,
				token.kind == globSet && (c < utf8.RuneSelf && token.set[c] || c >= utf8.RuneSelf && other(token)):
				i, at = i+1, at+width(at)
				continue
			}
		}
		if star < 0 || from >= len(name) {
			return false
		}
		from += width(from)
		i, at = star+1, from
	}
	return true
}

package secret

import (
	"slices"
	"strings"
)

// A span is a part of a text, in bytes.
type span struct{ from, to int }

// A quote is one that is open: its sign, and how many backslashes stand before it, which are more the deeper JSON is
// packed into JSON.
type quote struct {
	sign    byte
	slashes int
	at      int // of the sign
}

// scanner reads a text once and finds the values that follow names.
type scanner struct {
	s       string
	open    []quote // the innermost last
	before  span    // the name before this one, if only blanks are between
	program string  // of the command line that the line may have
	pair    bool    // a name stood for itself, as in {"name":"API_KEY","value":"x"}, and its value comes
	looked  int     // up to here lists of what may be secrets were read
	found   []span
}

// named finds the values of the names in a text that say secret. A line that ends with a backslash goes on in the next
// one, as in a unit file.
func named(s string) []span {
	sc := scanner{s: s}
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '\n':
			if !strings.HasSuffix(strings.TrimSuffix(s[:i], "\r"), `\`) {
				sc.open, sc.program, sc.pair = sc.open[:0], "", false
			}
			i++
		case c == '"' || c == '\'':
			sc.quote(i)
			i++
		case nameByte(c):
			end := i + 1
			for end < len(s) && nameByte(s[end]) {
				end++
			}
			next := sc.name(i, end)
			sc.before = span{i, end}
			i = max(next, end)
		default:
			i++
		}
	}
	return sc.found
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// slashes counts the backslashes before i.
func (sc *scanner) slashes(i int) int {
	n := 0
	for n < i && sc.s[i-1-n] == '\\' {
		n++
	}
	return n
}

// closes tells whether a quote with so many backslashes before it is the end of one that was opened. In JSON packed into
// JSON a quote has one backslash, two deep it has three; a backslash of the text itself has twice as many.
func (q quote) closes(sign byte, slashes int) bool {
	return sign == q.sign && (slashes < q.slashes || slashes%(2*q.slashes+2) == q.slashes)
}

// quote takes note of a quote that opens or closes.
func (sc *scanner) quote(i int) {
	n := sc.slashes(i)
	if k := sc.closing(sc.s[i], n); k >= 0 {
		sc.open = sc.open[:k]
		return
	}
	if at := i - n; at == 0 || !nameByte(sc.s[at-1]) { // not as in don't
		sc.open = append(sc.open, quote{sc.s[i], n, i})
	}
}

// closing is the place in open of the quote that is closed, -1 if none is.
func (sc *scanner) closing(sign byte, slashes int) int {
	for k := range slices.Backward(sc.open) {
		if sc.open[k].closes(sign, slashes) {
			return k
		}
	}
	return -1
}

// name looks at a name and at what follows, and tells where to go on.
func (sc *scanner) name(from, to int) (next int) {
	name := sc.s[from:to]
	sc.program = programOf(sc.program, name)
	pair := pairOption(sc.program, name)
	secret := pair != "" || Named(name) || sc.query(from, name) || sc.pair && name == "value"
	namesOther := name == "name" || name == "key" || name == "header"
	if !secret && !namesOther {
		return to
	}
	alone := len(sc.open) > 0 && sc.open[len(sc.open)-1].at == from-1 // but for a shell's words
	alone = alone && !strings.HasSuffix(strings.TrimRight(sc.s[:from-1], " \t\\"), "-c")
	at := to
	quoted := false
	if q := at + forward(sc.s[at:]); q < len(sc.s) && (sc.s[q] == '"' || sc.s[q] == '\'') {
		if k := sc.closing(sc.s[q], q-at); k >= 0 {
			sc.open = sc.open[:k]
			quoted, at = true, q+1
		} else if len(sc.s) > q+1 && strings.IndexByte(":=", sc.s[q+1]) >= 0 {
			quoted, at = true, q+1 // its beginning is not here
		}
	}
	v := value{scanner: sc, name: name, quoted: quoted, alone: alone && !quoted, query: from > 0 && (sc.s[from-1] == '?' || sc.s[from-1] == '&')}
	if namesOther && quoted {
		if next := sc.namesItself(at, to); sc.pair || !secret {
			return next
		}
	} else if !secret {
		return at
	}
	v.code = from > 0 && sc.s[from-1] == '`'
	if pair != "" {
		v.name = pair
	}
	operator := v.operator(at, from)
	switch {
	case strings.HasPrefix(name, "LoadCredential"), name == "ImportCredential":
		return at // a name and a path
	case strings.HasPrefix(name, "SetCredential") && operator == "=":
		return v.credential()
	case operator != "" && (operator != "=" || v.from > at+1) && sc.bare(from, name):
		v.doubtful = true
	case operator == "":
		if name[0] == '-' && sc.blanks(at, true) > at {
			v.from = sc.blanks(at, true)
			break
		}
		if v.from = sc.prose(from, at, name); v.from < 0 {
			return at
		}
		v.doubtful = true
	}
	if sc.pair && name == "value" {
		sc.pair, v.name = false, "password"
	}
	return v.read()
}

// query tells whether a name is one of a signature or a session in the query of a URL.
func (sc *scanner) query(from int, name string) bool {
	inQuery := from > 0 && (sc.s[from-1] == '?' || sc.s[from-1] == '&')
	if !inQuery && name[0]|0x20 != 'x' {
		return false
	}
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, "x-amz-s") || strings.HasPrefix(lower, "x-goog-s") {
		return strings.HasSuffix(lower, "signature") || strings.HasSuffix(lower, "token")
	}
	return inQuery && slices.Contains([]string{"sig", "signature", "session", "sessionid", "session_id", "sid", "code"}, lower)
}

// namesItself is for {"name":"API_KEY","value":"x"}: what stands there is the name of the value that comes.
func (sc *scanner) namesItself(at, to int) int {
	rest := strings.TrimLeft(sc.s[at:min(len(sc.s), at+80)], `:= "'\`+"\t")
	end := 0
	for end < len(rest) && nameByte(rest[end]) {
		end++
	}
	if sc.pair = at > to && Named(rest[:end]) && !only(rest[:end], "key", "token"); sc.pair {
		return len(sc.s[:at]) + strings.Index(sc.s[at:], rest[:end]) + end
	}
	return at
}

// bare tells whether a name is key or tokens and nothing more: such are in many texts, and few of them are secrets.
func (sc *scanner) bare(from int, name string) bool {
	if name == "PASS" || only(name, "pass") && slices.Contains([]string{"can", "cannot", "not", "to", "will", "must", "did", "may"}, sc.wordBefore(from)) {
		return true // as of a test
	}
	if !only(name, "key", "keys", "tokens") || from > 0 && (sc.s[from-1] == '?' || sc.s[from-1] == '&') {
		return false
	}
	return !beyondDoubt[sc.wordBefore(from)]
}

// wordBefore is the word before a name, in small letters.
func (sc *scanner) wordBefore(from int) string {
	if between := sc.s[sc.before.to:from]; sc.before.to == 0 || between == "" || strings.Trim(between, " ") != "" {
		return ""
	}
	return strings.ToLower(sc.s[sc.before.from:sc.before.to])
}

// prose is where a value may stand in a sentence about a secret, such as "API key x is not known" or "password is x", -1
// if it is none.
func (sc *scanner) prose(from, at int, name string) int {
	v := sc.blanks(at, false)
	if v < len(sc.s) && sc.s[v] == ',' && strings.ContainsAny(name, "-_") {
		return sc.blanks(v+1, false)
	}
	if v == at {
		return -1
	}
	for _, word := range []string{"is ", "was ", "-> "} {
		if strings.HasPrefix(sc.s[v:], word) {
			return sc.blanks(v+len(word), false)
		}
	}
	if only(name, "key", "keys", "token", "tokens") && !beyondDoubt[sc.wordBefore(from)] {
		return -1
	}
	return v
}

// blanks passes over blanks and, where lines go on, over their ends and comments that systemd passes over.
func (sc *scanner) blanks(i int, lines bool) int {
	for i < len(sc.s) {
		switch {
		case blank(sc.s[i]):
			i++
		case lines && lineEnd(sc.s[i:]) > 0:
			i = sc.comments(i + lineEnd(sc.s[i:]))
		default:
			return i
		}
	}
	return i
}

// comments passes over the comments at the beginning of lines.
func (sc *scanner) comments(i int) int {
	for {
		at := i
		for at < len(sc.s) && blank(sc.s[at]) {
			at++
		}
		if at == len(sc.s) || sc.s[at] != '#' && sc.s[at] != ';' {
			return i
		}
		n := strings.IndexByte(sc.s[at:], '\n')
		if n < 0 {
			return len(sc.s)
		}
		i = at + n + 1
	}
}

// lineEnd is the length of a backslash and the end of the line that it takes away, 0 for anything else.
func lineEnd(s string) int {
	switch {
	case strings.HasPrefix(s, "\\\n"):
		return 2
	case strings.HasPrefix(s, "\\\r\n"):
		return 3
	}
	return 0
}

// forward counts the backslashes that a text begins with.
func forward(s string) int { return len(s) - len(strings.TrimLeft(s, `\`)) }

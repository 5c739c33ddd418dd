package engine

import (
	"math"
	"strconv"
	"strings"
)

// digits counts the decimal digits that s begins with.
func digits(s string) int {
	for i := range len(s) {
		if c := s[i] - '0'; c > 9 {
			return i
		}
	}
	return len(s)
}

// number reads a string of digits; what does not fit is 0.
func number(s string) int {
	if len(s) > 18 {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0
		}
		return n
	}
	n := 0
	for i := range len(s) {
		n = 10*n + int(s[i]-'0')
	}
	return n
}

// cutNumber takes digits off the beginning.
func cutNumber(s string) (n int, rest string, ok bool) {
	k := digits(s)
	return number(s[:k]), s[k:], k > 0
}

// cutSigned is cutNumber with a minus or without.
func cutSigned(s string) (n int, rest string, ok bool) {
	if positive, minus := strings.CutPrefix(s, "-"); minus {
		n, rest, ok = cutNumber(positive)
		return -n, rest, ok
	}
	return cutNumber(s)
}

// cutFloat takes a decimal number off the beginning. The log prints a few
// places, so that most come out of two integers.
func cutFloat(s string) (v float64, rest string, ok bool) {
	k := digits(s)
	end := k
	if k < len(s) && s[k] == '.' {
		end += 1 + digits(s[k+1:])
	}
	if k == 0 {
		return 0, s, false
	}
	if end > k && end-1 <= 15 { // both integers are exact in a float64, so the quotient is rounded once
		whole, tens := number(s[:k]), 1
		for i := k + 1; i < end; i++ {
			whole, tens = 10*whole+int(s[i]-'0'), 10*tens
		}
		return float64(whole) / float64(tens), s[end:], true
	}
	v, err := strconv.ParseFloat(s[:end], 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, s[end:], err == nil
	}
	return v, s[end:], true
}

// cutYesNo reads a key and its yes or no.
func cutYesNo(s, key string) (yes bool, rest string, ok bool) {
	s, ok = strings.CutPrefix(s, key)
	if !ok {
		return false, s, false
	}
	if rest, yes = strings.CutPrefix(s, "yes"); yes {
		return true, rest, true
	}
	rest, ok = strings.CutPrefix(s, "no")
	return false, rest, ok
}

// trimSpaces takes spaces and tabs off the beginning.
func trimSpaces(s string) string {
	n := 0
	for n < len(s) && (s[n] == ' ' || s[n] == '\t') {
		n++
	}
	return s[n:]
}

// isWord tells whether s could be the name of a C function.
func isWord(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// withoutColour takes out what terminals read as colours: ESC [ … letter.
func withoutColour(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for {
		at := strings.Index(s, "\x1b[")
		if at < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at])
		n := at + 2
		for n < len(s) && (s[n] == ';' || '0' <= s[n] && s[n] <= '9') {
			n++
		}
		if n < len(s) && (s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z') {
			s = s[n+1:]
			continue
		}
		b.WriteString(s[at:n]) // no colour, so it stays
		s = s[n:]
	}
}

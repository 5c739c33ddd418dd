package detect

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/1bit-systems/pkg/engine"
)

// Names of shapes.
const (
	shapeRun         = "run"         // one character over and over
	shapeRepeat      = "repeat"      // a few characters over and over
	shapeQuestion    = "question"    // mostly question marks
	shapeReplacement = "replacement" // U+FFFD
	shapeEmpty       = "empty"       // tokens and no text
	shapeTokenZero   = "token-zero"  // nothing but token id 0, the usual choice among logits that are NaN
	shapeTruncated   = "truncated"
)

// A shape is something about a text that broken answers have.
type shape struct{ name, detail string }

// Limits of the shapes.
const (
	leastRun       = 16 // in ten thousand answers of a healthy model, none
	leastQuestions = 8
	leastZeros     = 8
	mostUnit       = 32 // characters that repeat
	leastRepeats   = 8
	leastRepeated  = 64 // characters in all
)

// shapes lists the shapes of an answer.
func shapes(a *engine.Answer) []shape {
	var list []shape
	add := func(name, format string, args ...any) {
		list = append(list, shape{name, fmt.Sprintf(format, args...)})
	}
	text := []rune(a.Content)
	if r, n := longestRun(text); n >= leastRun {
		add(shapeRun, "%q %d times", r, n)
	} else if unit, n := repetition(text); n > 0 {
		add(shapeRepeat, "%q %d times", unit, n)
	}
	marks, all := questions(text)
	if marks >= leastQuestions && 2*marks > all {
		add(shapeQuestion, "%d of %d characters are question marks", marks, all)
	}
	// Where the bytes are no UTF-8 it is our own reading that put it there.
	if n := strings.Count(a.Content, "\uFFFD"); n > 0 && utf8.Valid(a.Raw) {
		add(shapeReplacement, "%d replacement characters", n)
	}
	if a.TokensPredicted > 1 && strings.TrimSpace(a.Content) == "" {
		add(shapeEmpty, "%d tokens predicted and no text", a.TokensPredicted)
	}
	if n := zeros(a); n >= leastZeros {
		add(shapeTokenZero, "%d tokens, all of id 0", n)
	}
	if a.Truncated {
		add(shapeTruncated, "the context was truncated")
	}
	return list
}

// longestRun finds the character that stands most often in a row. Rules of tables, spaces and digits do that in good
// text, too.
func longestRun(text []rune) (rune, int) {
	var best rune
	most, n := 0, 0
	for i, r := range text {
		if n++; i > 0 && r != text[i-1] {
			n = 1
		}
		if n > most && !drawn(r) {
			best, most = r, n
		}
	}
	return best, most
}

// drawn tells whether healthy text has a character in rows.
func drawn(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsDigit(r) || strings.ContainsRune("-=_*#.~+|:", r) || unicode.In(r, unicode.So)
}

// repetition finds a few characters that the text ends with over and over.
func repetition(text []rune) (unit string, times int) {
	for n := 2; n <= mostUnit && n*leastRepeats <= len(text); n++ {
		same := n
		for at := len(text) - n - 1; at >= 0 && text[at] == text[at+n]; at-- {
			same++
		}
		if u := text[len(text)-n:]; same >= max(leastRepeated, n*leastRepeats) && !allDrawn(u) {
			return string(u), same / n
		}
	}
	return "", 0
}

func allDrawn(text []rune) bool {
	for _, r := range text {
		if !drawn(r) {
			return false
		}
	}
	return true
}

// questions counts the question marks of a text and its characters other than spaces.
func questions(text []rune) (marks, all int) {
	for _, r := range text {
		if !unicode.IsSpace(r) {
			all++
		}
		if r == '?' {
			marks++
		}
	}
	return marks, all
}

// zeros counts the tokens if all of them have id 0.
func zeros(a *engine.Answer) int {
	for _, id := range a.TokenIDs {
		if id != 0 {
			return 0
		}
	}
	if len(a.TokenIDs) > 0 {
		return len(a.TokenIDs)
	}
	for _, t := range a.Tokens {
		if t.ID != 0 {
			return 0
		}
	}
	return len(a.Tokens)
}

// degenerate names a shape that an answer has and the reference to it has not: no rounding makes that. A cut within a
// character makes U+FFFD, and a healthy small model may begin to repeat itself anywhere.
func degenerate(reference, under *engine.Answer) string {
	had := map[string]bool{shapeReplacement: true, shapeRepeat: true, shapeTruncated: true}
	for _, s := range shapes(reference) {
		had[s.name] = true
	}
	for _, s := range shapes(under) {
		if !had[s.name] {
			return s.detail
		}
	}
	return ""
}

package detect

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// A Finding is one occurrence of a face.
type Finding struct {
	Face    string `json:"face"`
	Grade   Grade  `json:"grade"`
	Detail  string `json:"detail"`            // one sentence for people
	Excerpt string `json:"excerpt,omitempty"` // the raw bytes it was seen in, at most 200, quoted as Go does where they are no clean text
}

// A Grade says what a finding counts as.
type Grade string

// Grades of findings.
const (
	Fault   Grade = "fault"   // decides, unless the plan says that its face only reports
	Warning Grade = "warning" // never decides by itself
	Invalid Grade = "invalid" // a cause outside of the engine: the life is no evidence
)

// maxExcerpt is the most of the raw bytes that a finding keeps.
const maxExcerpt = 200

// one makes the findings of a face that saw one thing. The Set adds the face's name.
func one(grade Grade, excerpt, format string, args ...any) []Finding {
	return []Finding{{Grade: grade, Detail: fmt.Sprintf(format, args...), Excerpt: excerpt}}
}

// quote keeps the first bytes of b: as they are if they are clean text, else as a Go string without its quotes.
func quote(b []byte) string {
	b = bytes.TrimSpace(b)
	if len(b) > maxExcerpt {
		end := maxExcerpt
		for end > maxExcerpt-utf8.UTFMax && !utf8.RuneStart(b[end]) {
			end-- // not within a character
		}
		b = b[:end]
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			s := strconv.Quote(string(b))
			return s[1 : len(s)-1]
		}
		i += n
	}
	return string(b)
}

// around quotes the bytes on both sides of a place.
func around(b []byte, at int) string {
	from := max(0, at-maxExcerpt/2)
	for from < at && !utf8.RuneStart(b[from]) {
		from++
	}
	return quote(b[from:min(len(b), from+maxExcerpt)])
}

package engine

import (
	"bytes"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// An Answer is one reply to a completion. Raw is what came after the header,
// with the chunks of the transfer put together; the other fields are read from
// it as far as it could be read.
type Answer struct {
	Status          int
	Raw             []byte
	Content         string  // of chats, what the model thought comes first
	Tokens          []Token // one an entry of the log-probabilities; empty if none came
	TokenIDs        []int   // with CompletionRequest.ReturnTokens
	SlotID          int     // -1 if the reply names none
	TokensPredicted int     // those that came, where the reply does not count them
	TokensEvaluated int
	Truncated       bool
	StoppedAtLimit  bool // ended because n_predict was reached
	ProbsAsked      bool // the request asked for log-probabilities

	Streamed   bool          // Raw is server-sent events
	Events     int           // of a stream, comments and the end mark not counted
	FirstToken time.Duration // from the end of sending to the first event that has a token; 0: not a stream, or none came
	Cut        bool          // the stream ended in the middle of an event or without its end mark
	InBand     string        // the error inside a reply that says 200

	known     bool      // there was a field of an answer
	ended     bool      // the end mark came
	decodeErr error     // the first text that is no JSON, or not that of an answer
	decodeRaw []byte    // that text
	contentAt int       // where the bytes of the last content stand in Raw, still escaped
	contentTo int       //
	text      []byte    // Content as it grows
	values    []float64 // what Logprob points into
}

// errNotAnAnswer is the fault of a JSON reply that holds no field of an answer.
var errNotAnAnswer = errors.New("the reply has no field of an answer")

// A Token is one generated token with its log-probability.
type Token struct {
	ID      int // -1 where the API tells none
	Text    string
	Bytes   []byte
	Logprob *float64 // nil: JSON null or out of range, so not finite
	// NullAlternatives counts the other candidates whose log-probability came
	// back as null.
	NullAlternatives int
	// TopGap is the distance between the two largest log-probabilities among
	// the candidates; nil if the reply names fewer than two that are finite.
	TopGap *float64
}

// ParseAnswer reads a reply: that of /completion or of an OpenAI-compatible
// path, whole or as server-sent events, which it tells apart by the first
// bytes. It never fails: what cannot be read is a fault of the Answer.
func ParseAnswer(status int, raw []byte, probsAsked bool) *Answer {
	a := newAnswer(status, probsAsked)
	a.parse(raw)
	return a
}

func newAnswer(status int, probsAsked bool) *Answer {
	return &Answer{Status: status, SlotID: -1, ProbsAsked: probsAsked}
}

func (a *Answer) parse(raw []byte) {
	if isEventStream(raw) {
		s := stream{answer: a}
		s.feed(raw, true)
		return
	}
	a.Raw = raw
	a.document(raw, 0)
	a.finish()
}

// document reads one JSON text, which stands in Raw at an offset; -1: it does
// not stand there in one piece.
func (a *Answer) document(text []byte, at int) {
	d := document{a: a, at: at}
	err := readJSON(text, d.read)
	if err != nil && a.decodeErr == nil {
		a.decodeErr, a.decodeRaw = err, bytes.Clone(text)
	}
	if d.failure != "" && a.Status == http.StatusOK && a.InBand == "" {
		a.InBand = d.failure
	}
}

// finish judges what only the end of a reply tells.
func (a *Answer) finish() {
	a.Content = string(a.text)
	// Other servers do not count the tokens of a stream.
	a.TokensPredicted = max(a.TokensPredicted, len(a.Tokens), len(a.TokenIDs))
	if a.Status == http.StatusOK && a.InBand == "" && !a.known && !a.Cut && a.decodeErr == nil {
		a.decodeErr, a.decodeRaw = errNotAnAnswer, a.Raw
	}
}

var bareNumber = lazyregexp.New(`(?i)[:,\[]\s*[-+]?(?:nan|inf|infinity)\s*[,}\]]`)

// stringEnd finds the unescaped quote that ends a JSON string, or -1.
func stringEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// withoutStrings blanks every JSON string, so that what is left is structure,
// numbers and bare words.
func withoutStrings(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			out = append(out, raw[i])
			continue
		}
		end := stringEnd(raw[i+1:])
		if end < 0 {
			break
		}
		out = append(out, '"', '"')
		i += end + 1
	}
	return out
}

// cutRune tells how many bytes at the end of b begin a UTF-8 sequence that is
// not finished: legal where generation stopped at its limit.
func cutRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		c := b[len(b)-n]
		if !utf8.RuneStart(c) {
			continue
		}
		if c >= 0xC2 && c <= 0xF4 && !utf8.FullRune(b[len(b)-n:]) {
			return n
		}
		return 0
	}
	return 0
}

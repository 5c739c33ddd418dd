package engine

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Faces of one answer. Those of FaceContext and FaceLoading say that the
// request or the moment was wrong and not the engine; all others are faults.
const (
	FaceNaN         = "nan"          // a log-probability that is not finite
	FaceNotObserved = "not-observed" // tokens came, log-probabilities were asked for and did not
	FaceUTF8        = "utf8"         // invalid UTF-8 in the raw bytes
	FaceJSON        = "json"         // the body is not JSON
	FaceFormat      = "format"       // 500: the server could not parse its own output
	FaceStatus      = "status"       // any other status than 200, or an error inside a 200
	FaceContext     = "context"      // the slots' shared context was too small for what was asked
	FaceLoading     = "loading"      // 503 while the model loads
)

// An AnswerFault is one thing wrong with one answer.
type AnswerFault struct {
	Face   string `json:"face"`
	Detail string `json:"detail"`
}

// Faults lists every face of fault in the answer, the most telling first. An
// empty list means that the answer is sound as far as it can be seen.
func (a *Answer) Faults() []AnswerFault {
	var faults []AnswerFault
	add := func(face, format string, args ...any) {
		faults = append(faults, AnswerFault{face, fmt.Sprintf(format, args...)})
	}
	a.nanFaults(add)
	if at := a.invalidUTF8(); at >= 0 {
		add(FaceUTF8, "invalid UTF-8 at byte %d of %d: % x", at, len(a.Raw), window(a.Raw, at))
	}
	if a.Status == http.StatusOK && a.decodeErr != nil {
		add(FaceJSON, "%v: %s", a.decodeErr, excerpt(a.decodeRaw))
	}
	if a.InBand != "" {
		add(statusFace(http.StatusInternalServerError, []byte(a.InBand)), "status 200 with an error inside: %s", excerpt([]byte(a.InBand)))
	}
	if a.Status != http.StatusOK {
		add(statusFace(a.Status, a.Raw), "status %d: %s", a.Status, excerpt(a.Raw))
	}
	if a.Status == http.StatusOK && a.decodeErr == nil && a.ProbsAsked &&
		(a.TokensPredicted > 0 || a.Content != "") && len(a.Tokens) == 0 {
		add(FaceNotObserved, "%d tokens predicted and no log-probability among them", a.TokensPredicted)
	}
	if a.Cut && a.InBand == "" {
		add(FaceTransport, "the stream ended too early, after %d events: …%q", a.Events, a.Raw[max(0, len(a.Raw)-80):])
	}
	return faults
}

func (a *Answer) nanFaults(add func(face, format string, args ...any)) {
	null, first, alternatives := 0, -1, 0
	for i, t := range a.Tokens {
		if t.Logprob == nil {
			null++
			if first < 0 {
				first = i
			}
		}
		alternatives += t.NullAlternatives
	}
	switch {
	case null > 0:
		add(FaceNaN, "null log-probability: %d of %d tokens, the first is token %d", null, len(a.Tokens), first)
	case alternatives > 0:
		add(FaceNaN, "null log-probability: %d alternatives of %d tokens", alternatives, len(a.Tokens))
	}
	if a.decodeErr != nil {
		if m := bareNumber().Find(withoutStrings(a.decodeRaw)); m != nil {
			add(FaceNaN, "a number that is not finite in the JSON: %q", m)
		}
	}
}

// invalidUTF8 finds the first invalid byte, or -1. A character that the limit
// of n_predict cut at the very end of the content is none.
func (a *Answer) invalidUTF8() int {
	if utf8.Valid(a.Raw) {
		return -1
	}
	raw := a.Raw
	if n := cutRune(raw[a.contentAt:a.contentTo]); n > 0 && a.StoppedAtLimit {
		raw = bytes.Clone(raw)
		copy(raw[a.contentTo-n:a.contentTo], "???")
	}
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

func statusFace(status int, body []byte) string {
	text := strings.ToLower(string(body))
	switch {
	case strings.Contains(text, "context size has been exceeded"),
		strings.Contains(text, "exceed_context_size_error"):
		return FaceContext
	case status == http.StatusServiceUnavailable && strings.Contains(text, "loading model"):
		return FaceLoading
	case status == http.StatusInternalServerError && strings.Contains(text, "does not match the expected"):
		return FaceFormat
	}
	return FaceStatus
}

// ids gives the ids of the generated tokens, from whichever field has them.
func (a *Answer) ids() []int {
	if len(a.TokenIDs) > 0 {
		return a.TokenIDs
	}
	ids := make([]int, len(a.Tokens))
	for i, t := range a.Tokens {
		ids[i] = t.ID
	}
	return ids
}

func window(b []byte, at int) []byte {
	from, to := max(0, at-4), min(len(b), at+8)
	return b[from:to]
}

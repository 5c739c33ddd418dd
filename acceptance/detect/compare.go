package detect

import (
	"fmt"
	"math"
	"net/http"

	"github.com/1bit-systems/pkg/engine"
)

// A difference is how two answers to the same greedy request part. Log-probabilities are never compared bit for bit:
// those of healthy servers differ in their last digits from one time to the next.
type difference struct {
	where string  // for people; "" if the answers are the same
	gap   float64 // of the reference's two likeliest tokens at the first that differs; NaN: unknown
	drift float64 // greatest distance of two log-probabilities before it, or of all; NaN: one is unknown
}

// compare finds where two answers part. ok is false where one of them is no answer that could be compared: other faces
// tell of that.
func compare(reference, under *engine.Answer) (d difference, ok bool) {
	if !comparable200(reference) || !comparable200(under) {
		return d, false
	}
	r, u := tokens(reference), tokens(under)
	d.gap = math.NaN()
	if len(r) == 0 || len(u) == 0 {
		d.drift = math.NaN()
		if at := firstByte(reference.Content, under.Content); at >= 0 {
			d.where = fmt.Sprintf("from byte %d on: %q, the reference %q", at, quote([]byte(under.Content[at:])), quote([]byte(reference.Content[at:])))
		}
		return d, true
	}
	at := 0
	for at < len(r) && at < len(u) && r[at].same(u[at]) {
		d.drift = worst(d.drift, math.Abs(r[at].logprob-u[at].logprob))
		at++
	}
	switch {
	case at < len(r) || at < len(u):
		d.where = fmt.Sprintf("from token %d on: %s, the reference %s", at, name(u, at), name(r, at))
		if at < len(r) {
			d.gap = r[at].gap
		}
	case reference.Content != under.Content:
		d.where = fmt.Sprintf("the same tokens and another text: %q, the reference %q", quote([]byte(under.Content)), quote([]byte(reference.Content)))
		d.drift = math.NaN() // no rounding does that
	}
	return d, true
}

// rounding tells whether rounding explains the difference: the likeliest two tokens were nearly even where it begins,
// and everything before it agrees. What is unknown explains nothing.
func (d difference) rounding(tau float64) bool { return d.gap <= tau && d.drift <= tau }

// weight says what a difference was weighed by.
func (d difference) weight(tau float64) string {
	return fmt.Sprintf("its two likeliest tokens were %s apart, log-probabilities before differ by at most %s, %g is taken for rounding",
		known(d.gap), known(d.drift), tau)
}

func known(v float64) string {
	if math.IsNaN(v) {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.3g", v)
}

func worst(a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return max(a, b)
}

func comparable200(a *engine.Answer) bool {
	return a != nil && a.Status == http.StatusOK && (a.Content != "" || len(a.Tokens) > 0 || len(a.TokenIDs) > 0)
}

// token is a token of an answer with what is known of it.
type token struct {
	id      int // -1: not told
	text    string
	logprob float64 // NaN: not finite or not told
	gap     float64
}

// tokens gives the tokens of an answer in order. The server leaves those out of its log-probabilities whose bytes make
// no character by themselves: they are known by their ids alone then. Where the API tells no ids, its tokens are known
// by their bytes.
func tokens(a *engine.Answer) []token {
	var list []token
	next := 0
	ids := a.TokenIDs
	if len(ids) == 0 {
		for _, t := range a.Tokens {
			ids = append(ids, t.ID)
		}
	}
	nameless := len(ids) == len(a.Tokens) // one of each: they belong together though the second have no ids
	for _, id := range ids {
		t := token{id: id, logprob: math.NaN(), gap: math.NaN()}
		if next < len(a.Tokens) && (a.Tokens[next].ID == id || nameless && a.Tokens[next].ID < 0) {
			of := &a.Tokens[next]
			t.text, t.logprob, t.gap = of.Text, number(of.Logprob), number(of.TopGap)
			if len(of.Bytes) > 0 {
				t.text = string(of.Bytes) // a part of a character has no text of its own
			}
			next++
		}
		list = append(list, t)
	}
	return list
}

func number(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// same tells whether two tokens are one. Where one of the answers tells no ids their bytes decide.
func (t token) same(u token) bool {
	if t.id < 0 || u.id < 0 {
		return t.text == u.text
	}
	return t.id == u.id
}

func name(list []token, at int) string {
	switch {
	case at >= len(list):
		return "ends"
	case list[at].id < 0:
		return fmt.Sprintf("has %q", list[at].text)
	case list[at].text != "":
		return fmt.Sprintf("has %d %q", list[at].id, list[at].text)
	}
	return fmt.Sprintf("has %d", list[at].id)
}

// firstByte finds where two texts part, or -1.
func firstByte(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if n == len(a) && n == len(b) {
		return -1
	}
	return n
}

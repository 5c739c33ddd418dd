package fakeengine

import (
	"crypto/sha256"
	"fmt"
)

// even is the token at which the two likeliest are nearly as likely.
const even = 3

// A token is one generated token. Its id is its byte.
type token struct {
	id      int
	text    string
	logprob float64
	null    bool    // not a number
	second  int     // the id of the second-likeliest
	gap     float64 // to it
}

// answer is what is generated for one request.
type answer struct {
	in     request
	slot   int
	number int
	probs  bool // log-probabilities are given
	tokens []token
	tail   string // of a stream: what its last event has
}

// invalid stands in a text where a byte goes that is no UTF-8.
const invalid = "@@CUT@@"

// generate derives an answer from the prompt and the seed, and from the
// fault.
func (e *Engine) generate(in request, j job, bad string) *answer {
	a := &answer{in: in, slot: j.slot.id, number: j.number, probs: in.NProbs > 0}
	model := int(e.o.Seed)
	a.tokens = a.draw(model, 0, in.NPredict)
	switch bad {
	case "differ":
		a.tokens = a.draw(model, j.number, in.NPredict)
	case "numeric", "corrupt-shape":
		a.part(model, even)
	case "corrupt-load":
		a.part(model, 1)
	case "corrupt-text":
		a.tokens[0].text = "#"
	case "drift":
		for i := range a.tokens {
			a.tokens[i].logprob -= 0.5
		}
	case "leak":
		a.say("so "+beginning(j.previous)+" ", 0)
	case "replacement":
		a.tokens[len(a.tokens)-1].text += "\uFFFD"
	case "utf8":
		a.tokens[0].text += invalid
	case "utf8-cut":
		if a.tail = invalid; !in.Stream {
			a.tokens[len(a.tokens)-1].text += invalid
		}
	case "question":
		a.fill(0, '?', "?")
	case "token-zero":
		a.fill(0, 0, "!")
	case "empty-text":
		a.fill(0, 1, "")
	case "no-deltas":
		a.tokens = nil
	case "null", "guard-null":
		a.tokens[0].null = true
	case "no-probs":
		a.probs = false
	}
	if bad == "corrupt-shape" {
		a.fill(even, 'G', "G")
	}
	return a
}

// draw makes n tokens. Those of a healthy engine depend on model and prompt
// alone; the last digits of log-probabilities never repeat.
func (a *answer) draw(model, salt, n int) []token {
	out := make([]token, n)
	var sum [sha256.Size]byte
	for i := range out {
		if i%(sha256.Size/2) == 0 {
			sum = sha256.Sum256(fmt.Appendf(nil, "%d %d %d %s", model, salt, i, a.in.Prompt))
		}
		b, c := sum[i%(sha256.Size/2)*2], sum[i%(sha256.Size/2)*2+1]
		const letters = "abcdefghijklmnop qrstuvwxyz .,"
		t := token{
			id: int(letters[int(b)%len(letters)]), second: int(letters[(int(b)+1+int(c)%9)%len(letters)]),
			logprob: -0.1 - float64(c)/300 + float64(a.number%7)*1e-5, gap: 1 + float64(b)/128,
		}
		if i == even {
			t.gap = 0.01
		}
		t.text = string(rune(t.id))
		out[i] = t
	}
	return out
}

// part takes the second-likeliest token at a place and goes on from there as a
// model would: otherwise.
func (a *answer) part(model, at int) {
	if at >= len(a.tokens) {
		return
	}
	copy(a.tokens[at:], a.draw(model, a.number, len(a.tokens))[at:])
	t := a.draw(model, 0, len(a.tokens))[at]
	t.id, t.second = t.second, t.id
	t.text, t.logprob = string(rune(t.id)), t.logprob-t.gap
	a.tokens[at] = t
}

// say puts a text into the answer, a character a token.
func (a *answer) say(text string, at int) {
	for i := 0; i < len(text); i++ {
		t := token{id: int(text[i]), text: text[i : i+1], logprob: -0.5, second: ' ', gap: 1}
		if at+i < len(a.tokens) {
			a.tokens[at+i] = t
		} else {
			a.tokens = append(a.tokens, t)
		}
	}
}

// fill makes every token from a place on the same.
func (a *answer) fill(from, id int, text string) {
	for i := from; i < len(a.tokens); i++ {
		a.tokens[i].id, a.tokens[i].text = id, text
	}
}

func (a *answer) text() string {
	var s []byte
	for _, t := range a.tokens {
		s = append(s, t.text...)
	}
	return string(s)
}

// beginning is where a prompt has its nonce.
func beginning(prompt string) string { return prompt[:min(16, len(prompt))] }

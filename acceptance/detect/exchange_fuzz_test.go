package detect

import (
	"testing"
	"unicode/utf8"

	"github.com/1bit-systems/pkg/engine"
)

// Whatever a server sends, findings can be written down, name their face, and a status other than 200 is never silent.
func FuzzExchange(f *testing.F) {
	f.Add(200, []byte(`{"content":"a","tokens_predicted":1,"completion_probabilities":[{"id":1,"logprob":null}]}`), true)
	f.Add(200, []byte("data: {\"content\":\"a\xe5\",\"stop\":false}\n\ndata: {\"error\":{\"code\":500}}\n\n"), true)
	f.Add(200, []byte(`{"choices":[{"text":"????????????????","logprobs":null,"finish_reason":"length"}]}`), false)
	f.Add(500, []byte(`{"error":{"code":500,"message":"Context size has been exceeded."}}`), false)
	f.Add(200, []byte("\x00\xff{"), true)
	f.Add(503, []byte(""), false)
	f.Fuzz(func(t *testing.T, status int, raw []byte, asked bool) {
		s, err := New(nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Sent(1, "abcdefghijklmnop")
		a := engine.ParseAnswer(status, raw, asked)
		found := append(s.Exchange(&Exchange{ID: 2, NPredict: 8, ProbsAsked: asked, Answer: a}), s.Sentinel(a, a, 0.2)...)
		faults := 0
		for _, x := range found {
			if x.Face == "" || x.Detail == "" || !utf8.ValidString(x.Excerpt) || len(x.Excerpt) > 10*maxExcerpt {
				t.Fatalf("%+v", x)
			}
			if x.Grade != Warning {
				faults++
			}
			if x.Face == Corruption || x.Face == Numeric {
				t.Fatalf("an answer differs from itself: %+v", x)
			}
		}
		if status != 200 && faults == 0 {
			t.Fatalf("status %d is no fault: %+v", status, found)
		}
	})
}

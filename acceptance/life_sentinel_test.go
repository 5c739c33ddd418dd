package acceptance

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
)

// An answer that went through a ledger compares as it did before: with ids and
// without, with tokens that the log-probabilities leave out, with parts of
// characters, and where a number is none.
func TestSentinelThroughTheLedger(t *testing.T) {
	one, even := -1.0, 0.01
	answer := func(ids bool, text string) *engine.Answer {
		a := &engine.Answer{Status: 200, TokensPredicted: len(text), SlotID: -1}
		for i, c := range []byte(text) {
			token := engine.Token{ID: -1, Text: "\uFFFD", Bytes: []byte{c}, Logprob: &one, TopGap: &one}
			if ids {
				token.ID = int(c)
				a.TokenIDs = append(a.TokenIDs, token.ID)
			}
			if i == 3 {
				token.TopGap = &even
			}
			a.Content += "x" // the text alone tells nothing
			a.Tokens = append(a.Tokens, token)
		}
		return a
	}
	shortened := func(ids bool, text string) *engine.Answer {
		a := answer(ids, text)
		a.Tokens = append(a.Tokens[:1:1], a.Tokens[2:]...)
		return a
	}
	noNumber := func(ids bool, text string) *engine.Answer {
		a := answer(ids, text)
		inf := math.Inf(-1)
		a.Tokens[2].Logprob = &inf
		return a
	}
	for name, of := range map[string]func(bool, string) *engine.Answer{"whole": answer, "shortened": shortened, "no number": noNumber} {
		for _, ids := range []bool{true, false} {
			for _, under := range []string{"abcdef", "abcxyz", "zbcdef", "abc"} {
				s, err := detect.New(nil)
				if err != nil {
					t.Fatal(err)
				}
				reference := of(ids, "abcdef")
				var rec, back sentinelRecord
				rec.read(reference)
				raw, err := json.Marshal(rec)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(raw, &back); err != nil {
					t.Fatal(err)
				}
				tell := func(list []detect.Finding) string {
					text := ""
					for _, f := range list {
						text += f.Face + " " + string(f.Grade) + "; "
					}
					return text
				}
				want := tell(s.Sentinel(reference, of(ids, under), 0.2))
				if got := tell(s.Sentinel(back.answer(), of(ids, under), 0.2)); got != want {
					t.Errorf("%s, ids %v, %q: %q, want %q", name, ids, under, got, want)
				}
				if same := under == "abcdef"; same != (want == "") {
					t.Errorf("%s, ids %v, %q: %q", name, ids, under, want)
				}
			}
		}
	}
}

package detect

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

// spoken makes an answer: a token a letter, all with the log-probability and the gap, which are unknown if they are NaN.
func spoken(text string, logprob, gap float64) *engine.Answer {
	a := &engine.Answer{Status: 200, Content: text, TokensPredicted: len(text), SlotID: -1, Raw: []byte(text)}
	for _, b := range []byte(text) {
		t := engine.Token{ID: int(b), Text: string(b)}
		if !math.IsNaN(logprob) {
			t.Logprob = &logprob
		}
		if !math.IsNaN(gap) {
			t.TopGap = &gap
		}
		a.Tokens, a.TokenIDs = append(a.Tokens, t), append(a.TokenIDs, t.ID)
	}
	return a
}

func idsAlone(text string) *engine.Answer {
	a := spoken(text, 0, 0)
	a.Tokens = nil
	return a
}

func textAlone(text string) *engine.Answer {
	return &engine.Answer{Status: 200, Content: text, SlotID: -1}
}

func nameless(a *engine.Answer) *engine.Answer {
	a.TokenIDs = nil
	for i := range a.Tokens {
		a.Tokens[i].ID = -1
	}
	return a
}

// parts makes tokens of parts of characters: bytes, and a text that is the same for all.
func parts(a *engine.Answer) *engine.Answer {
	for i := range a.Tokens {
		a.Tokens[i].Text, a.Tokens[i].Bytes = "\uFFFD", []byte(a.Tokens[i].Text)
	}
	return a
}

// apart tells the ids, but not with the tokens.
func apart(a *engine.Answer) *engine.Answer {
	for i := range a.Tokens {
		a.Tokens[i].ID = -1
	}
	return a
}

// at changes what is known of one token.
func at(a *engine.Answer, i int, logprob, gap float64) *engine.Answer {
	a.Tokens[i].Logprob, a.Tokens[i].TopGap = &logprob, &gap
	return a
}

func graded(found []Finding) []string {
	list := []string{}
	for _, f := range found {
		list = append(list, f.Face+" "+string(f.Grade))
	}
	return list
}

func TestSentinelUnderLoad(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct {
		reference, under *engine.Answer
		want             []string
		detail           string
	}{
		"the same":                                  {spoken("abcdef", -1, 2), spoken("abcdef", -1, 2), nil, ""},
		"other last digits":                         {spoken("abcdef", -1, 2), spoken("abcdef", -1.1999, 2), nil, ""},
		"nearly even":                               {at(spoken("abcdef", -1, 2), 3, -1, 0.03), spoken("abcxyz", -1.01, 2), []string{"numeric fault"}, "from token 3 on: has 120 \"x\", the reference has 100 \"d\"; its two likeliest tokens were 0.03 apart, log-probabilities before differ by at most 0.01, 0.2 is"},
		"at the limit":                              {at(spoken("abcdef", -1, 2), 3, -1, 0.2), spoken("abcxyz", -1, 2), []string{"numeric fault"}, ""},
		"beyond the limit":                          {at(spoken("abcdef", -1, 2), 3, -1, 0.21), spoken("abcxyz", -1, 2), []string{"corruption fault"}, "0.21 apart"},
		"clear cut":                                 {spoken("abcdef", -1, 2), spoken("abcxyz", -1, 2), []string{"corruption fault"}, ""},
		"even, but other before":                    {at(spoken("abcdef", -1, 2), 3, -1, 0.03), at(spoken("abcxyz", -1, 2), 1, -1.3, 2), []string{"corruption fault"}, "differ by at most 0.3"},
		"even at the first token":                   {at(spoken("abcdef", -1, 2), 0, -1, 0.03), spoken("xyz", -9, 2), []string{"numeric fault"}, "from token 0 on"},
		"other after the first that parts":          {at(spoken("abcdef", -1, 2), 3, -1, 0.03), at(spoken("abcxyz", -1, 2), 4, -7, 2), []string{"numeric fault"}, ""},
		"no gap is known":                           {spoken("abcdef", -1, nan), spoken("abcxyz", -1, nan), []string{"corruption fault"}, "an unknown amount apart"},
		"not finite before":                         {at(spoken("abcdef", -1, 2), 3, -1, 0.03), spoken("abcxyz", nan, 2), []string{"corruption fault"}, ""},
		"ids alone":                                 {idsAlone("abcdef"), idsAlone("abcxyz"), []string{"corruption fault"}, "has 120, the reference has 100"},
		"ids alone, the same":                       {idsAlone("abcdef"), idsAlone("abcdef"), nil, ""},
		"text alone":                                {textAlone("abcdef"), textAlone("abcxyz"), []string{"corruption fault"}, `from byte 3 on: "xyz"`},
		"text alone, the same":                      {textAlone("abcdef"), textAlone("abcdef"), nil, ""},
		"tokens without ids":                        {nameless(at(spoken("abcdef", -1, 2), 3, -1, 0.03)), nameless(spoken("abcxyz", -1, 2)), []string{"numeric fault"}, `has "x", the reference has "d"`},
		"tokens without ids, clear cut":             {nameless(spoken("abcdef", -1, 2)), nameless(spoken("abcxyz", -1, 2)), []string{"corruption fault"}, ""},
		"tokens without ids, the same":              {nameless(spoken("abcdef", -1, 2)), nameless(spoken("abcdef", -1, 2)), nil, ""},
		"tokens without ids, even and of no text":   {nameless(parts(at(spoken("abcdef", -1, 2), 3, -1, 0.03))), nameless(parts(spoken("abcxyz", -1, 2))), []string{"numeric fault"}, "from token 3 on"},
		"tokens without ids, of no text, clear cut": {nameless(parts(spoken("abcdef", -1, 2))), nameless(parts(spoken("abcxyz", -1, 2))), []string{"corruption fault"}, "from token 3 on"},
		"ids apart from tokens without, even":       {apart(at(spoken("abcdef", -1, 2), 3, -1, 0.03)), apart(spoken("abcxyz", -1, 2)), []string{"numeric fault"}, "from token 3 on"},
		"ids apart from tokens without, clear cut":  {apart(spoken("abcdef", -1, 2)), apart(spoken("abcxyz", -1, 2)), []string{"corruption fault"}, ""},
		"only one tells ids, the same":              {spoken("abcdef", -1, 2), nameless(spoken("abcdef", -1, 2)), nil, ""},
		"only one tells ids, another":               {spoken("abcdef", -1, 2), nameless(spoken("abcxyz", -1, 2)), []string{"corruption fault"}, "from token 3 on"},
		"ended early, clear cut":                    {spoken("abcdef", -1, 2), spoken("abc", -1, 2), []string{"corruption fault"}, "from token 3 on: ends, the reference has 100"},
		"ended early, nearly even":                  {at(spoken("abcdef", -1, 2), 3, -1, 0.03), spoken("abc", -1, 2), []string{"numeric fault"}, ""},
		"ended late":                                {spoken("abc", -1, 2), spoken("abcdef", -1, 2), []string{"corruption fault"}, "the reference ends"},
		"same tokens, other text":                   {spoken("abc", -1, 2), func() *engine.Answer { a := spoken("abc", -1, 2); a.Content = "ab?"; return a }(), []string{"corruption fault"}, "the same tokens and another text"},
		"same tokens, drifted":                      {spoken("abc", -1, 2), spoken("abc", -1.5, 2), []string{"numeric warning"}, "differ by up to 0.5"},
		"even, then one character":                  {at(spoken("abcdef", -1, 2), 3, -1, 0.03), spoken("abc"+strings.Repeat("!", 20), -1, 2), []string{"corruption fault"}, "only this answer has '!' 20 times"},
		"one character in both":                     {at(spoken("abc"+strings.Repeat("?", 40), -1, 2), 3, -1, 0.03), spoken("abc"+strings.Repeat("!", 40), -1, 2), []string{"numeric fault"}, ""},
		"even, then U+FFFD":                         {at(spoken("abcdef", -1, 2), 3, -1, 0.03), func() *engine.Answer { a := spoken("abcxyz", -1, 2); a.Content += "\uFFFD"; return a }(), []string{"numeric fault"}, ""},
		"no answer to compare with":                 {nil, spoken("abc", -1, 2), nil, ""},
		"a failed one is another face's":            {spoken("abc", -1, 2), &engine.Answer{Status: 500, Content: "no"}, nil, ""},
		"an empty one is another face's":            {spoken("abc", -1, 2), &engine.Answer{Status: 200}, nil, ""},
	} {
		s, err := New(nil)
		if err != nil {
			t.Fatal(err)
		}
		found := s.Sentinel(tt.reference, tt.under, 0.2)
		if diff := cmp.Diff(append([]string{}, tt.want...), graded(found)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(found) > 0 && !strings.Contains(found[0].Detail, tt.detail) {
			t.Errorf("%s: %s", name, found[0].Detail)
		}
	}
}

// On a quiet server no rounding explains a difference.
func TestIdenticalRequestsOnAQuietServer(t *testing.T) {
	even := func() *engine.Answer { return at(spoken("abcdef", -1, 2), 3, -1, 0) }
	for name, tt := range map[string]struct {
		first, second *engine.Answer
		want          []string
	}{
		"the same":           {even(), even(), nil},
		"other digits":       {even(), spoken("abcdef", -1.001, 2), nil},
		"log-probs far off":  {even(), spoken("abcdef", -9, 2), nil},
		"even, other tokens": {even(), spoken("abcxyz", -1, 2), []string{"corruption fault"}},
		"other text":         {textAlone("abc"), textAlone("abd"), []string{"corruption fault"}},
	} {
		s, err := New(nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append([]string{}, tt.want...), graded(s.Identity(tt.first, tt.second))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The server leaves tokens out of its log-probabilities that make no character by themselves.
func TestTokensWithoutLogprobs(t *testing.T) {
	reference := at(spoken("abcdef", -1, 2), 3, -1, 0.01)
	reference.Tokens = append(reference.Tokens[:1], reference.Tokens[3:]...) // b and c are known by their ids alone
	list := tokens(reference)
	if len(list) != 6 || list[1].text != "" || !math.IsNaN(list[1].logprob) || list[3].text != "d" || list[3].gap != 0.01 {
		t.Errorf("%+v", list)
	}
}

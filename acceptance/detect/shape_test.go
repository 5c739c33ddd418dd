package detect

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

func shapeNames(a *engine.Answer) []string {
	list := []string{}
	for _, s := range shapes(a) {
		list = append(list, s.name)
	}
	return list
}

// Answers that people met: those that only a known answer can tell are left to sentinels, and no good one is warned of.
func TestShapesPeopleMet(t *testing.T) {
	raw, err := os.ReadFile("testdata/outputs.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text   string `json:"text"`
		Want   string `json:"want"`
		Tokens int    `json:"completion_tokens"`
		Why    string `json:"why"`
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	told, bad := 0, 0
	for _, c := range cases {
		got := shapeNames(&engine.Answer{Status: 200, Content: c.Text, TokensPredicted: c.Tokens})
		byReference := strings.Contains(c.Why, "reference") || strings.Contains(c.Why, "warm cache")
		if want := c.Want == "bad" && !byReference; (len(got) > 0) != want {
			t.Errorf("%q: %v, want %v (%s)", c.Text, got, want, c.Why)
		}
		if c.Want == "bad" {
			bad++
		}
		if len(got) > 0 {
			told++
		}
		if byReference {
			s, _ := New(nil)
			if found := s.Sentinel(textAlone("What the old package answered."), textAlone(c.Text), 0.2); len(found) != 1 || found[0].Face != Corruption {
				t.Errorf("%q beside what is known: %v", c.Text, found)
			}
		}
	}
	if bad != 7 || told != 5 {
		t.Errorf("%d bad ones, %d told", bad, told)
	}
}

func TestShapes(t *testing.T) {
	ids := func(n, id int) *engine.Answer {
		a := &engine.Answer{Status: 200, Content: "words", TokensPredicted: n}
		for range n {
			a.TokenIDs = append(a.TokenIDs, id)
		}
		return a
	}
	say := func(text string) *engine.Answer {
		return &engine.Answer{Status: 200, Content: text, TokensPredicted: 20, Raw: []byte(text)}
	}
	for name, tt := range map[string]struct {
		a    *engine.Answer
		want []string
	}{
		"plain":                 {say("A sentence like any other, with 10 words and two numbers."), nil},
		"16 in a row":           {say("so: " + strings.Repeat("?", 16)), []string{shapeRun, shapeQuestion}},
		"15 in a row":           {say("well then: a" + strings.Repeat("b", 15)), nil},
		"a rule":                {say(strings.Repeat("-", 80)), nil},
		"indented code":         {say("if x {\n" + strings.Repeat(" ", 40) + "y\n}"), nil},
		"questions, spaced":     {say("? ? ? ? ? ? ? ? no"), []string{shapeQuestion}},
		"seven questions":       {say("? ? ? ? ? ? ?"), nil},
		"questions among words": {say("Why? Who? When? Where? What? Whose? How? Which? That is what one asks."), nil},
		"a word over and over":  {say("It said " + strings.Repeat("again ", 20)), []string{shapeRepeat}},
		"a word ten times":      {say(strings.Repeat("ha ", 10)), nil},
		"U+FFFD":                {say("a\uFFFDb"), []string{shapeReplacement}},
		"no text":               {say(" \n"), []string{shapeEmpty}},
		"one token, no text":    {&engine.Answer{Status: 200, TokensPredicted: 1}, nil},
		"eight of id 0":         {ids(8, 0), []string{shapeTokenZero}},
		"seven of id 0":         {ids(7, 0), nil},
		"eight of id 1":         {ids(8, 1), nil},
		"truncated":             {&engine.Answer{Status: 200, Content: "x", Truncated: true}, []string{shapeTruncated}},
		"bytes that are none":   {&engine.Answer{Status: 200, Content: "a\uFFFD", Raw: []byte("a\xe5")}, nil},
	} {
		if diff := cmp.Diff(append([]string{}, tt.want...), shapeNames(tt.a)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

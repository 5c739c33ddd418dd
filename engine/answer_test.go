package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func faces(faults []AnswerFault) []string {
	var names []string
	for _, f := range faults {
		names = append(names, f.Face)
	}
	return names
}

func TestAnswerFaults(t *testing.T) {
	const good = `{"content":" a b","id_slot":2,"tokens_predicted":2,"tokens_evaluated":7,"stop_type":"limit",` +
		`"completion_probabilities":[{"id":5,"token":" a","logprob":-0.5,"top_logprobs":[{"id":5,"logprob":-0.5}]},` +
		`{"id":6,"token":" b","logprob":-3.4028234663852886e+38}]}`
	tests := []struct {
		name   string
		status int
		raw    string
		asked  bool
		want   []string
	}{
		{"sound", 200, good, true, nil},
		{"null in the second token", 200, strings.Replace(good, "-3.4028234663852886e+38", "null", 1), true, []string{"nan"}},
		{"beyond float64", 200, strings.Replace(good, "-3.4028234663852886e+38", "-1e999", 1), true, []string{"nan"}},
		{"null alternative alone", 200, strings.Replace(good, `{"id":5,"logprob":-0.5}`, `{"id":5,"logprob":null}`, 1), true, []string{"nan"}},
		{"tokens without log-probabilities", 200, `{"content":"x","tokens_predicted":3}`, true, []string{"not-observed"}},
		{"empty list of log-probabilities", 200, `{"content":"x","tokens_predicted":3,"completion_probabilities":[]}`, true, []string{"not-observed"}},
		{"entries without the field", 200, `{"content":"x","tokens_predicted":1,"completion_probabilities":[{"id":1}]}`, true, []string{"not-observed"}},
		{"log-probabilities not asked", 200, `{"content":"x","tokens_predicted":3}`, false, nil},
		{"invalid UTF-8 in the middle", 200, "{\"content\":\"a\xe5b\",\"stop_type\":\"limit\"}", false, []string{"utf8"}},
		{"character cut by the limit", 200, "{\"content\":\"ab\xe5\x8d\",\"stop_type\":\"limit\"}", false, nil},
		{"character cut and no limit", 200, "{\"content\":\"ab\xe5\x8d\",\"stop_type\":\"eos\"}", false, []string{"utf8"}},
		{"cut at the limit and another in the prompt", 200, "{\"content\":\"ab\xe5\",\"stop_type\":\"limit\",\"prompt\":\"\xff\"}", false, []string{"utf8"}},
		{"continuation byte alone at the end", 200, "{\"content\":\"ab\x8d\",\"stop_type\":\"limit\"}", false, []string{"utf8"}},
		{"replacement character only warns", 200, `{"content":"a�b"}`, false, nil},
		{"not JSON", 200, "Internal error", true, []string{"json"}},
		{"cut JSON", 200, good[:len(good)-4], true, []string{"json"}},
		{"JSON of something else", 200, `{"status":"ok"}`, true, []string{"json"}},
		{"content of a wrong kind", 200, `{"content":7}`, true, []string{"json"}},
		{"bare NaN", 200, `{"content":"x","completion_probabilities":[{"id":0,"logprob":NaN}]}`, true, []string{"nan", "json"}},
		{"the word nan in broken text", 200, `{"content":"a: nan, b`, true, []string{"json"}},
		{"error inside a 200", 200, `{"error":{"code":500,"message":"Compute error."}}`, true, []string{"status"}},
		{"500", 500, `{"error":{"code":500,"message":"Compute error."}}`, true, []string{"status"}},
		{"500 of the format", 500, `{"error":{"code":500,"message":"The model output does not match the expected Content-only (peg-native) format"}}`, true, []string{"format"}},
		{"context", 500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, true, []string{"context"}},
		{"context, 400", 400, `{"error":{"code":400,"type":"exceed_context_size_error"}}`, true, []string{"context"}},
		{"loading", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, true, []string{"loading"}},
		{"another 503", 503, `no slot`, true, []string{"status"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := faces(ParseAnswer(tt.status, []byte(tt.raw), tt.asked).Faults())
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faces (-want +got):\n%s", diff)
			}
		})
	}
	a := ParseAnswer(200, []byte(good), true)
	if a.SlotID != 2 || a.TokensPredicted != 2 || a.TokensEvaluated != 7 || len(a.Tokens) != 2 || a.Content != " a b" || !a.StoppedAtLimit {
		t.Errorf("read %+v", a)
	}
}

// null is the JSON for "not there" as well as for NaN: only a log-probability
// of a token tells NaN.
func TestNullIsNotNaN(t *testing.T) {
	want := map[string]bool{
		"a-null-timing.json": false, "b-null-logprobs.json": false, "c-probs-null.json": true,
		"d-bare-nan.json": true, "e-minus-huge.json": false,
	}
	for name, bad := range want {
		raw, err := os.ReadFile(filepath.Join("testdata/null-or-nan", name))
		if err != nil {
			t.Fatal(err)
		}
		faults := ParseAnswer(200, raw, false).Faults()
		if got := len(faults) > 0 && faults[0].Face == FaceNaN; got != bad || !bad && len(faults) > 0 {
			t.Errorf("%s: faults %v, want NaN %v", name, faults, bad)
		}
	}
}

// Shapes of text are no faults of an answer.
func TestShapesAreNoFaults(t *testing.T) {
	for _, raw := range []string{
		`{"content":"plain text"}`, `{"content":"` + strings.Repeat("G", 32) + `"}`, `{"content":"ha\ufffdha"}`,
		`{"content":"","tokens_predicted":64}`, `{"content":"!!","tokens":[0,0,0,0,0,0,0,0],"truncated":true}`,
		`{"choices":[{"message":{"content":"","reasoning_content":"I think"}}],"usage":{"completion_tokens":64}}`,
	} {
		if f := ParseAnswer(200, []byte(raw), false).Faults(); len(f) > 0 {
			t.Errorf("%s: %v", raw, f)
		}
	}
}

// Log-probabilities in the shape that /v1/completions had first.
func TestParallelLogprobs(t *testing.T) {
	a := ParseAnswer(200, []byte(`{"choices":[{"text":"ab","logprobs":{"tokens":["a","b"],"token_logprobs":[-0.5,null],`+
		`"top_logprobs":[{"c":-2,"d":-9,"a":-0.5,"b":-1.5},{"b":null}],"text_offset":[0,1]}}],"usage":{"completion_tokens":2}}`), true)
	if len(a.Tokens) != 2 || *a.Tokens[0].Logprob != -0.5 || *a.Tokens[0].TopGap != 1 || a.Tokens[0].ID != -1 || a.Tokens[0].Text != "a" {
		t.Errorf("read %+v", a.Tokens)
	}
	if diff := cmp.Diff([]string{FaceNaN}, faces(a.Faults())); diff != "" {
		t.Errorf("faces (-want +got):\n%s", diff)
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add(200, []byte(`{"content":"a","completion_probabilities":[{"id":1,"logprob":null}]}`), true)
	f.Add(200, []byte("{\"content\":\"a\xe5\",\"stop_type\":\"limit\"}"), true)
	f.Add(500, []byte(`{"error":{"code":500}}`), false)
	f.Add(200, []byte(`{"content":"a\"`), true)
	f.Fuzz(func(t *testing.T, status int, raw []byte, asked bool) {
		before := string(raw)
		a := ParseAnswer(status, raw, asked)
		faults := a.Faults()
		if string(raw) != before {
			t.Fatal("the raw bytes were changed")
		}
		if status != 200 && len(faults) == 0 {
			t.Fatal("a status other than 200 without a fault")
		}
		if !utf8.Valid(raw) && !a.StoppedAtLimit && len(faults) == 0 {
			t.Fatal("invalid UTF-8 without a fault")
		}
	})
}

// A server that does not count tokens has still given those that came.
func TestTokensThatNobodyCounts(t *testing.T) {
	const event = `data: {"choices":[{"text":"x","logprobs":{"content":[{"token":"x","logprob":-1}]}}]}` + "\n\n"
	for raw, want := range map[string]int{
		event + event + "data: [DONE]\n\n":                                       2,
		`{"choices":[{"text":"several words"}]}`:                                 0,
		`{"choices":[{"text":""}]}`:                                              0,
		`{"choices":[{"text":"several words"}],"usage":{"completion_tokens":3}}`: 3,
	} {
		if a := ParseAnswer(200, []byte(raw), true); a.TokensPredicted != want {
			t.Errorf("%s: %d tokens, want %d", raw, a.TokensPredicted, want)
		}
	}
}

package engine

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestReadJSON(t *testing.T) {
	deep := strings.Repeat("[", maxNesting+1)
	for text, want := range map[string]string{
		`{"a":[1,-2.5e+3,true,false,null,"x\u00e9\"",{}],"b":{"c":[]}}`: "",
		"":                                "the JSON ends too early",
		`{"a":1`:                          "the JSON ends too early",
		`{"a":1}}`:                        `byte 7: unexpected '}'`,
		`{"a":1,}`:                        `byte 7: unexpected '}'`,
		`[1 2]`:                           `byte 3: unexpected '2'`,
		`[01]`:                            `byte 2: unexpected '1'`,
		`[-]`:                             `byte 2: unexpected ']'`,
		`[NaN]`:                           `byte 1: unexpected 'N'`,
		`{1:2}`:                           `byte 1: unexpected '1'`,
		"\"a\nb\"":                        `byte 2: unexpected '\n'`,
		`"\x"`:                            `byte 2: unexpected 'x'`,
		`"\u00g0"`:                        `byte 5: unexpected 'g'`,
		deep + strings.Repeat("]", 1+512): "nested deeper than 512",
	} {
		err := readJSON([]byte(text), (*jsonReader).skip)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// The reader accepts what encoding/json accepts and reads strings as it does.
func FuzzReadJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e+3,true,null,"x\u00e9\ud83d\ude00\ud83d"]}`, `"` + "\xff\u2028" + `\/"`, `[0.1e-7]`, `{"\u0061":{}} `, "-0", "01", `"a`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := readJSON(b, (*jsonReader).skip)
		if err != nil && strings.Contains(err.Error(), "nested deeper") {
			return
		}
		if valid := json.Valid(b); valid != (err == nil) {
			t.Fatalf("%q: %v, encoding/json says %v", b, err, valid)
		}
		var want string
		if json.Unmarshal(b, &want) != nil {
			return
		}
		var got string
		if err := readJSON(b, func(r *jsonReader) { got, _, _ = r.string() }); err != nil || got != want {
			t.Fatalf("%q: %q, %v, want %q", b, got, err, want)
		}
	})
}

// BenchmarkParseAnswer reads an answer of 96 tokens with log-probabilities.
func BenchmarkParseAnswer(b *testing.B) {
	raw := longAnswer(96)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if a := ParseAnswer(200, raw, true); len(a.Tokens) != 96 {
			b.Fatal(len(a.Tokens))
		}
	}
}

func longAnswer(tokens int) []byte {
	const token = `{"id":116,"token":"t","bytes":[116],"logprob":-0.9972718358039856,"top_logprobs":[{"id":116,"token":"t","bytes":[116],"logprob":-0.9972718358039856}]}`
	return []byte(`{"index":0,"content":"` + strings.Repeat("t", tokens) + `","tokens":[],"id_slot":2,"stop":true,"tokens_predicted":96,"generation_settings":{"seed":1,"samplers":["a","b"]},` +
		`"completion_probabilities":[` + strings.Repeat(token+",", tokens-1) + token + `]}`)
}

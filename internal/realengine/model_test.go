package realengine

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
)

func model(t *testing.T, kind string, seed int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteModel(&b, kind, seed); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The model is part of what figures are compared by, so its bytes may not change unnoticed, on any processor.
func TestWriteModelIsDeterministic(t *testing.T) {
	want := map[string]string{
		Plain: "bc9c657c2c6d03a2754737384a695d602113c2c833632246df04764127f468f6",
		NaN:   "4499e1417fc528638c5fb3fa29d2e43448379b094146b2306f541c5337937026",
		NaN1:  "b0573d876fd8abedd9faad677eba151691bd5594c01f17e0408c79f255c59728",
		Trig:  "33629c4ca8df5a3deedc12a77c0d9eb91ea5f1147ec1d54586bd6ae50fe4a447",
	}
	for _, kind := range Kinds() {
		if got := fmt.Sprintf("%x", sha256.Sum256(model(t, kind, 1))); got != want[kind] {
			t.Errorf("%s model has digest %s, want %s", kind, got, want[kind])
		}
	}
	if bytes.Equal(model(t, Plain, 1), model(t, Plain, 2)) {
		t.Error("seeds 1 and 2 give the same model")
	}
}

func TestWriteModelErrors(t *testing.T) {
	if err := WriteModel(&bytes.Buffer{}, "odd", 1); err == nil {
		t.Error("an unknown kind gives no error")
	}
	if err := WriteModel(full{}, Plain, 1); !errors.Is(err, errFull) {
		t.Errorf("error %v, want %v in it", err, errFull)
	}
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// answer is what the tests read of llama-server's answer.
type answer struct {
	Content   string `json:"content"`
	Predicted int    `json:"tokens_predicted"`
	Tokens    []struct {
		ID      int      `json:"id"`
		Logprob *float64 `json:"logprob"`
	} `json:"completion_probabilities"`
}

func (a *answer) nulls() int {
	n := 0
	for _, token := range a.Tokens {
		if token.Logprob == nil {
			n++
		}
	}
	return n
}

const tokensAsked = 24

func complete(t *testing.T, base, prompt string) *answer {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"prompt": prompt, "n_predict": tokensAsked, "temperature": 0, "n_probs": 1, "cache_prompt": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	status, text, err := ask(t.Context(), http.MethodPost, base+"/completion", string(body))
	if err != nil || status != http.StatusOK {
		t.Fatalf("completion: status %d, error %v, body %.300s", status, err, text)
	}
	a := &answer{}
	if err := json.Unmarshal(text, a); err != nil {
		t.Fatal(err)
	}
	if a.Predicted != tokensAsked || len(a.Tokens) != tokensAsked {
		t.Fatalf("%d tokens with %d log-probabilities, want %d of each", a.Predicted, len(a.Tokens), tokensAsked)
	}
	return a
}

func printable(text string) bool {
	return !slices.ContainsFunc([]byte(text), func(b byte) bool { return b < ' ' || b > '~' })
}

func TestPlainModel(t *testing.T) {
	tree := Require(t)
	base := serve(t, tree.FrontEnd(), nil, "-m", tree.Model(Plain)).base
	seen := map[string]string{}
	for i := range 40 {
		prompt := fmt.Sprintf("%d: tell me about number %d", i, i*i)
		a := complete(t, base, prompt)
		if n := a.nulls(); n != 0 {
			t.Errorf("%q: %d null log-probabilities", prompt, n)
		}
		if !printable(a.Content) || len(a.Content) != tokensAsked {
			t.Errorf("%q: answer %q, want %d printable characters", prompt, a.Content, tokensAsked)
		}
		if other, known := seen[a.Content]; known {
			t.Errorf("prompts %q and %q have the same answer %q", other, prompt, a.Content)
		}
		seen[a.Content] = prompt
	}
	if a, b := complete(t, base, "again"), complete(t, base, "again"); a.Content != b.Content {
		t.Errorf("one prompt, two answers: %q and %q", a.Content, b.Content)
	}
}

func TestNaN1ModelIsFluent(t *testing.T) {
	tree := Require(t)
	base := serve(t, tree.FrontEnd(), nil, "-m", tree.Model(NaN1)).base
	texts := map[string]bool{}
	for _, prompt := range []string{"hello", "what is it?", "2 + 2"} {
		a := complete(t, base, prompt)
		if n := a.nulls(); n != tokensAsked {
			t.Errorf("%q: %d null log-probabilities of %d, want all", prompt, n, tokensAsked)
		}
		if !printable(a.Content) {
			t.Errorf("%q: answer %q is not printable", prompt, a.Content)
		}
		texts[a.Content] = true
	}
	if len(texts) != 3 {
		t.Errorf("3 prompts have %d answers", len(texts))
	}
}

func TestNaNModel(t *testing.T) {
	tree := Require(t)
	base := serve(t, tree.FrontEnd(), nil, "-m", tree.Model(NaN)).base
	a := complete(t, base, "hello")
	if n := a.nulls(); n != tokensAsked {
		t.Errorf("%d null log-probabilities of %d, want all", n, tokensAsked)
	}
	for _, token := range a.Tokens {
		if token.ID != a.Tokens[0].ID {
			t.Errorf("tokens %d and %d, want one for ever", a.Tokens[0].ID, token.ID)
		}
	}
}

func TestTrigModel(t *testing.T) {
	tree := Require(t)
	base := serve(t, tree.FrontEnd(), nil, "-m", tree.Model(Trig)).base
	for _, step := range []struct {
		prompt string
		nulls  int
	}{{"a clean one", 0}, {"another clean one", 0}, {"one with a ~ in it", tokensAsked}} {
		if n := complete(t, base, step.prompt).nulls(); n != step.nulls {
			t.Errorf("%q: %d null log-probabilities, want %d", step.prompt, n, step.nulls)
		}
	}
}

package acceptance

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// byteTokens counts as a byte-level vocabulary does, wordTokens as a large one:
// about four characters a token and one to begin with.
func byteTokens(_ context.Context, s string) (int, error) { return len(s), nil }
func wordTokens(_ context.Context, s string) (int, error) { return 1 + (len(s)+3)/4, nil }

func testPlan(t *testing.T, yaml string) *Plan {
	t.Helper()
	p, err := parsePlan([]byte("name: test\nmodel: m.gguf\np0: 0.05\n" + yaml))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testPrompter(t *testing.T, p *Plan, tokenize func(context.Context, string) (int, error)) (*prompter, error) {
	t.Helper()
	return newPrompter(t.Context(), p.Lives()[0], p.Sentinels, tokenize)
}

func TestPrompts(t *testing.T) {
	p := testPlan(t, "load: {requests: 10, prompt_tokens: [24, 175, 300], n_predict: [4, 32], logprobs_share: 0.25}")
	for name, tokenize := range map[string]func(context.Context, string) (int, error){"byte": byteTokens, "word": wordTokens} {
		m, err := testPrompter(t, p, tokenize)
		if err != nil {
			t.Fatal(err)
		}
		lengths, predicts, probs := map[int]int{}, map[int]int{}, 0
		last := map[string]int{}
		const n = 1200
		for id := range n {
			pr, err := m.prompt(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(pr.Text, pr.Nonce) || len(pr.Nonce) != nonceLength {
				t.Fatalf("%s: prompt %d does not begin with its nonce: %q", name, id, pr.Text)
			}
			if pr.Tokens > pr.Target || pr.Target > 24 && pr.Tokens < pr.Target*8/10 {
				t.Fatalf("%s: prompt %d has %d tokens for %d", name, id, pr.Tokens, pr.Target)
			}
			if before, seen := last[pr.Nonce[:2]]; seen && id-before < 1024 {
				t.Fatalf("%s: prompts %d and %d begin alike", name, before, id)
			}
			last[pr.Nonce[:2]] = id
			lengths[pr.Target]++
			predicts[pr.NPredict]++
			if pr.Probs {
				probs++
			}
			if again, _ := m.prompt(t.Context(), id); again != pr {
				t.Fatalf("%s: prompt %d differs when made again", name, id)
			}
		}
		for _, target := range p.Load.PromptTokens {
			if lengths[target] != n/3 {
				t.Errorf("%s: lengths %v, want equal shares", name, lengths)
			}
		}
		if predicts[4] == 0 || predicts[32] == 0 || probs < n/5 || probs > n*3/10 {
			t.Errorf("%s: n_predict %v, %d with log-probabilities", name, predicts, probs)
		}
	}
	other := testPlan(t, "load: {requests: 10, seed: 2}")
	m1, _ := testPrompter(t, p, byteTokens)
	m2, _ := testPrompter(t, other, byteTokens)
	a, _ := m1.prompt(t.Context(), 5)
	b, _ := m2.prompt(t.Context(), 5)
	if a.Nonce == b.Nonce {
		t.Error("another seed gives the same nonce")
	}
}

func TestSharedPrefixPrompts(t *testing.T) {
	m, err := testPrompter(t, testPlan(t, "load: {requests: 10, prompts: shared_prefix}"), byteTokens)
	if err != nil {
		t.Fatal(err)
	}
	for a := range 9 {
		one, err := m.prompt(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		other, err := m.prompt(t.Context(), a+3) // one of the next block
		if err != nil {
			t.Fatal(err)
		}
		alike := 0
		for alike < min(len(one.Text), len(other.Text)) && one.Text[alike] == other.Text[alike] {
			alike++
		}
		if shorter := min(one.Target, other.Target); !(float64(alike) > 0.1*float64(shorter)) || one.Nonce == other.Nonce {
			t.Errorf("prompts of %d and %d tokens share %d", one.Target, other.Target, alike)
		}
	}
}

func TestPromptsThatCannotFit(t *testing.T) {
	many := func(_ context.Context, s string) (int, error) { return 3 * len(s), nil }
	m, err := testPrompter(t, testPlan(t, "load: {requests: 10}"), many)
	if err != nil {
		t.Fatal(err)
	}
	for id := range 3 {
		if pr, err := m.prompt(t.Context(), id); (pr.Target == 24) != errors.Is(err, errOvercommit) {
			t.Errorf("target %d: %v", pr.Target, err)
		}
	}
}

func TestLeaks(t *testing.T) {
	l := leaks{"abcdefghijklmnop": 1, "qrstuvwxyz234567": 2}
	for text, want := range map[string]bool{
		"nothing":                          false,
		"own abcdefghijklmnop":             false,
		"x qrstuvwxyz234567":               true,
		"qrstuvwxyz234567":                 true,
		"abcdefghijklmnopqrstuvwxyz234567": true,
		"qrstuvwxyz23456":                  false,
	} {
		if _, got := l.find(text, 1); got != want {
			t.Errorf("%q: leak %v", text, got)
		}
	}
}

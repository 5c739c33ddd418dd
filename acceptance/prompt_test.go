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
	p, err := ParsePlan([]byte("name: test\nmodel: m.gguf\np0: 0.05\n" + yaml))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func testPrompter(t *testing.T, p *Plan, tokenize func(context.Context, string) (int, error)) (*prompter, error) {
	t.Helper()
	return newPrompter(t.Context(), p.Lives()[0], p.Sentinels, false, tokenize)
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

// The server's tokenizer is asked a few times and then left alone.
func TestPromptsAskTheTokenizerSeldom(t *testing.T) {
	for name, tokenize := range map[string]func(string) int{
		"one a word": func(s string) int { return 1 + len(strings.Fields(s)) },
		"one a byte": func(s string) int { return len(s) },
		"short words": func(s string) int {
			n := 1
			for _, w := range strings.Fields(s) {
				n += (len(w) + 3) / 4
			}
			return n
		},
	} {
		asked := 0
		m, err := testPrompter(t, testPlan(t, "load: {requests: 10, prompt_tokens: [175, 300, 600, 2100]}\nserver: {ctx: 16384}\n"),
			func(_ context.Context, s string) (int, error) { asked++; return tokenize(s), nil })
		if err != nil {
			t.Fatal(err)
		}
		const n = 1000
		for id := range n {
			pr, err := m.prompt(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if got := tokenize(pr.Text); got > pr.Target || got < pr.Target-nonceLength-8 || pr.Tokens < got {
				t.Fatalf("%s: prompt %d of %d tokens has %d, we say %d", name, id, pr.Target, got, pr.Tokens)
			}
		}
		if asked > 570 {
			t.Errorf("%s: %d questions for %d prompts", name, asked, n)
		}
	}
}

// A tokenizer whose words have more tokens together than apart is found out, at the beginning or later.
func TestPromptsOfATokenizerThatDoesNotAdd(t *testing.T) {
	late := func(_ context.Context, s string) (int, error) {
		n := len(s)
		if strings.HasPrefix(s, "b") { // of prompts 1, 33, 65, …
			n += 40
		}
		return n, nil
	}
	m, err := testPrompter(t, testPlan(t, "load: {requests: 10, prompt_tokens: [300]}\n"), late)
	if err != nil {
		t.Fatal(err)
	}
	long := 0 // after the first that is tried
	for id := range 2 * askEvery {
		pr, err := m.prompt(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := late(t.Context(), pr.Text); n > pr.Target && id >= askEvery {
			long++
		}
	}
	if long > 0 || !m.ask {
		t.Errorf("%d prompts are too long and nobody noticed", long)
	}
}

// Sentinels are the same in every life and under every seed, come as often as the plan says, and take no number from
// the other prompts.
func TestSentinelPrompts(t *testing.T) {
	p := testPlan(t, "load: {requests: 25, prompt_tokens: [24, 100]}\nsentinels: {every: 5, prompt_tokens: [50, 200], n_predict: 8}\narms: [{name: a, lives: 2}]\n")
	other := testPlan(t, "load: {requests: 25, seed: 9}\nsentinels: {every: 3, prompt_tokens: [200], n_predict: 8}\n")
	seen := map[string]int{}
	lengths := map[int]int{}
	var sentinel prompt
	for _, life := range p.Lives() {
		m, err := newPrompter(t.Context(), life, p.Sentinels, false, byteTokens)
		if err != nil {
			t.Fatal(err)
		}
		for id := range 25 {
			pr, err := m.prompt(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if is := pr.Kind == kindSentinel; is != (id%5 == 4) || is && (pr.Target != []int{50, 200}[pr.Sentinel] || !pr.Probs || pr.NPredict != 8) {
				t.Fatalf("request %d: %+v", id, pr)
			}
			if pr.Kind == kindSentinel {
				sentinel = pr
			} else if lengths[pr.Target]++; seen[pr.Text] > 0 {
				t.Errorf("request %d of life %d has the prompt of another", id, life.Life)
			}
			seen[pr.Text]++
		}
	}
	if lengths[24] != 20 || lengths[100] != 20 || len(seen) != 42 {
		t.Errorf("lengths %v, %d texts", lengths, len(seen))
	}
	m, err := testPrompter(t, other, byteTokens)
	if err != nil {
		t.Fatal(err)
	}
	again, err := m.sentinel(t.Context(), 0, 0)
	if last := sentinel; err != nil || last.Target == 200 && again.Text != last.Text {
		t.Errorf("another plan: %+v, %v, want %+v", again, err, sentinel)
	}
}

func BenchmarkPrompt(b *testing.B) {
	p, err := OpenPlan("default")
	if err != nil {
		b.Fatal(err)
	}
	m, err := newPrompter(b.Context(), p.Lives()[0], p.Sentinels, false, byteTokens)
	if err != nil {
		b.Fatal(err)
	}
	for id := 0; b.Loop(); id++ {
		if _, err := m.prompt(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
}

// Where tokens can only be counted before the load no prompt asks for it, and
// none is longer than its length.
func TestPromptsThatAreNotCounted(t *testing.T) {
	for name, tokenize := range map[string]func(string) int{
		"one a word":  func(s string) int { return 1 + len(strings.Fields(s)) },
		"one a byte":  func(s string) int { return len(s) },
		"an estimate": func(s string) int { return 1 + len(s)/4 },
	} {
		asked := 0
		count := func(_ context.Context, s string) (int, error) { asked++; return tokenize(s), nil }
		p := testPlan(t, "load: {requests: 10, prompt_tokens: [24, 300, 600]}")
		m, err := newPrompter(t.Context(), p.Lives()[0], p.Sentinels, true, count)
		if err != nil {
			t.Fatal(err)
		}
		before := asked
		for id := range 1000 {
			pr, err := m.prompt(t.Context(), id)
			if n := tokenize(pr.Text); err != nil || n > pr.Target || n < pr.Target/4 {
				t.Fatalf("%s: prompt %d of %d tokens has %d, %v", name, id, pr.Target, n, err)
			}
		}
		if asked != before {
			t.Errorf("%s: asked %d times, then %d more", name, before, asked-before)
		}
	}
}

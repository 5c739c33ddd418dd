package acceptance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// nonceLength is the length of a nonce in characters of nonceAlphabet: the
// first two count requests, the other fourteen are random (70 bits).
const (
	nonceLength   = 16
	nonceAlphabet = "abcdefghijklmnopqrstuvwxyz234567"
)

// A prompt is one request's text and shape, a function of the plan's seed, the
// request's number and the server's tokenizer.
type prompt struct {
	ID       int // in its life
	Kind     string
	Sentinel int // kindSentinel: index of its length
	Nonce    string
	Text     string
	Target   int // tokens asked for by the plan
	Tokens   int // at most; up to a nonce's length less as the server counts them
	NPredict int
	Probs    bool
}

// A prompter makes prompts that never have more tokens than their target, so
// that what the plan promised about the context holds. It counts them from the
// tokens of their words. Whether that is right for a tokenizer is tried on every
// length at the beginning and on one prompt of many later; where it is not, the
// tokenizer is asked for every prompt. Without a tokenizer that can be asked
// under load, prompts are made as much shorter as those of the beginning, and
// words together, were too long; every answer tells then whether that was enough. A prompter is used by one goroutine.
type prompter struct {
	load      Load
	first     int // number of the life's first prompt
	sentinels Sentinels
	tokenize  func(ctx context.Context, text string) (int, error)
	once      bool // the tokens of the load's prompts cannot be counted, only those of others before it
	words     *vocabulary
	share     float64        // of a prompt's room that is used
	ask       bool           // the tokenizer about every prompt
	common    []int          // words that prompts begin with if they shall be alike
	made      map[int]prompt // sentinels, by index
}

// askEvery is one of so many prompts, whose tokens are counted by the server
// although they are known. It is prime, so that it meets every kind of nonce
// and every length.
const askEvery = 257

// nonceTurn is after how many prompts one begins with the same two characters.
const nonceTurn = 32 * 32

// sentinelSeed makes a sentinel the same text in every run with a tokenizer.
const sentinelSeed = 0x1b17

// errOvercommit says that the shortest prompt of a length has more tokens.
var errOvercommit = errors.New("the prompts do not fit")

// newPrompter measures the tokenizer. once says that it cannot be asked under
// load, and takes no longer text than the load has.
func newPrompter(ctx context.Context, life PlannedLife, s Sentinels, once bool, tokenize func(context.Context, string) (int, error)) (*prompter, error) {
	m := &prompter{load: life.Load, first: life.FirstPrompt, sentinels: s, tokenize: tokenize, once: once, share: 1, made: map[int]prompt{}}
	lengths, most := slices.Concat(m.load.PromptTokens, s.PromptTokens), len(wordList)
	if once {
		most = slices.Max(lengths) // bytes, of at most one token each
	}
	var err error
	if m.words, err = measureWords(ctx, most, tokenize); err != nil {
		return nil, fmt.Errorf("measure the tokenizer: %w", err)
	}
	if once && m.words.more > 1 {
		m.share = 0.95 / m.words.more
	}
	if m.load.Prompts == PromptsSharedPrefix {
		more, _ := m.words.draw(random(m.load.Seed, ^uint64(0)), slices.Max(m.load.PromptTokens)/2)
		m.common = append([]int{slices.Index(m.words.cost, m.words.least)}, more...)
	}
	for i, length := range lengths {
		if err := m.try(ctx, i, length); err != nil {
			return nil, fmt.Errorf("measure the tokenizer: %w", err)
		}
	}
	return m, nil
}

// try looks whether a prompt of a length has as many tokens as its words say.
func (m *prompter) try(ctx context.Context, i, length int) error {
	const tries = 8
	for range tries {
		// No prompt that the load has soon begins like it.
		pr := m.compose(random(m.load.Seed, ^uint64(i)), m.first+nonceTurn/2-1-i, length)
		n, err := m.tokenize(ctx, pr.Text)
		if err != nil {
			return err
		}
		if !m.once {
			m.ask = m.ask || n > pr.Tokens || n < pr.Tokens-nonceLength
			return nil
		}
		if n <= length {
			return nil
		}
		m.share *= 0.95 * float64(length) / float64(n)
	}
	return fmt.Errorf("%w: one of %d tokens is always longer", errOvercommit, length)
}

func random(seed, number uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, number)) }

// prompt makes the prompt of one request of the life, numbered from 0.
// errOvercommit says that it cannot be as short as its length.
func (m *prompter) prompt(ctx context.Context, id int) (prompt, error) {
	number := m.first + id
	if every := m.sentinels.Every; every > 0 {
		before := number / every // sentinels
		if (number+1)%every == 0 {
			return m.sentinel(ctx, id, before%len(m.sentinels.PromptTokens))
		}
		number -= before
	}
	rng := random(m.load.Seed, uint64(number))
	pr := m.compose(rng, number, m.target(number))
	pr.ID = id
	pr.NPredict = m.load.NPredict[rng.IntN(len(m.load.NPredict))]
	pr.Probs = rng.Float64() < *m.load.LogprobsShare
	return pr, m.fit(ctx, &pr, !m.once && (m.ask || number%askEvery == 0))
}

// sentinel makes one of the fixed prompts.
func (m *prompter) sentinel(ctx context.Context, id, index int) (prompt, error) {
	pr, made := m.made[index]
	if !made {
		length := m.sentinels.PromptTokens[index]
		pr = m.compose(random(sentinelSeed, uint64(length)), length, length)
		pr.Kind, pr.Sentinel, pr.NPredict, pr.Probs = kindSentinel, index, m.sentinels.NPredict, true
		if err := m.fit(ctx, &pr, true); err != nil {
			return pr, err
		}
		m.made[index] = pr
	}
	pr.ID = id
	return pr, nil
}

// compose makes a text of at most so many tokens, as far as the words tell. It
// begins with its nonce, unless all prompts shall begin alike: then half of
// what the nonce leaves is what they have in common.
func (m *prompter) compose(rng *rand.Rand, number, target int) prompt {
	pr := prompt{Nonce: nonce(rng, number), Target: target}
	room := int(m.share * float64(target-m.words.fixed-nonceLength))
	spared := target - m.words.fixed - nonceLength - room
	var text strings.Builder
	if m.common != nil {
		room-- // the nonce has a space before it
		share := max(room/2, min(room, m.words.least))
		n, left := m.words.first(m.common, share)
		for _, i := range m.common[:n] {
			text.WriteString(m.words.words[i] + " ")
		}
		room -= share - left
	}
	text.WriteString(pr.Nonce)
	words, left := m.words.draw(rng, room)
	for _, i := range words {
		text.WriteByte(' ')
		text.WriteString(m.words.words[i])
	}
	pr.Text, pr.Tokens = text.String(), target-left-spared
	return pr
}

// fit makes sure that a prompt is not too long: with ask by the server's count,
// else by ours.
func (m *prompter) fit(ctx context.Context, pr *prompt, ask bool) error {
	for ask || pr.Tokens > pr.Target {
		var err error
		if pr.Tokens, err = m.tokenize(ctx, pr.Text); err != nil {
			return fmt.Errorf("count the tokens of prompt %d: %w", pr.ID, err)
		}
		over := pr.Tokens - pr.Target
		if over <= 0 {
			return nil
		}
		m.ask = true // the words' tokens do not tell
		words := strings.Fields(pr.Text)
		first := slices.Index(words, pr.Nonce) + 1
		if first == len(words) {
			return fmt.Errorf("%w: a prompt of %d tokens has %d with its nonce alone", errOvercommit, pr.Target, pr.Tokens)
		}
		keep := max(first, len(words)-max(1, over*len(words)/pr.Tokens))
		pr.Text = strings.Join(words[:keep], " ")
	}
	return nil
}

// target gives the length of a prompt: every length once in a block of as many
// prompts as there are lengths, in an order of the block's own.
func (m *prompter) target(number int) int {
	lengths := m.load.PromptTokens
	block, place := number/len(lengths), number%len(lengths)
	return lengths[random(m.load.Seed^0x9e3779b97f4a7c15, uint64(block)).Perm(len(lengths))[place]]
}

// nonce gives a request's mark. The first two characters count, so that of a
// thousand prompts in a row no two begin with the same two: the server's slot
// selection never sees a common beginning, whatever the tokenizer makes of it.
func nonce(rng *rand.Rand, number int) string {
	number %= nonceTurn
	b := []byte{nonceAlphabet[number%32], nonceAlphabet[number/32]}
	for len(b) < nonceLength {
		b = append(b, nonceAlphabet[rng.IntN(32)])
	}
	return string(b)
}

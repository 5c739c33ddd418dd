package acceptance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
	ID       int
	Kind     string // kindUnique or kindSentinel
	Sentinel int    // kindSentinel: index of its length
	Nonce    string
	Text     string
	Target   int // tokens asked for by the plan
	Tokens   int // as the server counts them
	NPredict int
	Probs    bool
}

// prompter makes prompts. It is used by one goroutine.
type prompter struct {
	load        Load
	first       int // number of the life's first prompt
	sentinels   Sentinels
	tokenize    func(ctx context.Context, text string) (int, error)
	words       []string // to draw from
	wordTokens  float64  // tokens a word, as the tokenizer counts them
	charTokens  float64  // tokens a character
	nonceTokens int
	common      string // what all prompts begin with, as far as they are long, if they shall be alike
}

// errOvercommit says that the shortest prompt of a length has more tokens.
var errOvercommit = errors.New("the prompts do not fit")

// newPrompter measures the tokenizer on a sample of words.
func newPrompter(ctx context.Context, life PlannedLife, s Sentinels, tokenize func(context.Context, string) (int, error)) (*prompter, error) {
	const sample = 200
	m := &prompter{load: life.Load, first: life.FirstPrompt, sentinels: s, tokenize: tokenize, words: strings.Fields(wordList)}
	text := strings.Join(m.draw(rand.New(rand.NewPCG(m.load.Seed, ^uint64(0))), sample), " ")
	n, err := tokenize(ctx, text)
	if err == nil {
		m.nonceTokens, err = tokenize(ctx, nonce(rand.New(rand.NewPCG(m.load.Seed, ^uint64(0))), 0))
	}
	if err != nil {
		return nil, fmt.Errorf("measure the tokenizer: %w", err)
	}
	if n < sample/2 {
		return nil, fmt.Errorf("measure the tokenizer: %d tokens for %d words", n, sample)
	}
	m.wordTokens, m.charTokens = float64(n)/sample, float64(n)/float64(len(text))
	if m.load.Prompts == PromptsSharedPrefix {
		m.common = text
	}
	return m, nil
}

// preamble is what a prompt of a length begins with: nothing, or half of what
// its nonce leaves.
func (m *prompter) preamble(target int) string {
	chars := float64(target-m.nonceTokens) / 2 / m.charTokens
	return m.common[:max(0, min(len(m.common), int(chars)))]
}

// prompt makes the prompt of one request. It never has more tokens than its
// target, so that what the plan promised about the context holds; errOvercommit
// if that is impossible.
func (m *prompter) prompt(ctx context.Context, id int) (prompt, error) {
	l := m.load
	rng := rand.New(rand.NewPCG(l.Seed, uint64(id)))
	pr := prompt{ID: id, Nonce: nonce(rng, id), Target: m.target(id)}
	pr.NPredict = l.NPredict[rng.IntN(len(l.NPredict))]
	pr.Probs = rng.Float64() < *l.LogprobsShare
	words := m.draw(rng, int(float64(pr.Target)/m.wordTokens)+8)
	begin := m.preamble(pr.Target) + pr.Nonce
	n := max(0, int((float64(pr.Target)-float64(len(begin))*m.charTokens)/m.wordTokens))
	for grown := false; ; {
		n = min(n, len(words))
		var err error
		pr.Text = strings.Join(append([]string{begin}, words[:n]...), " ")
		if pr.Tokens, err = m.tokenize(ctx, pr.Text); err != nil {
			return pr, fmt.Errorf("count the tokens of prompt %d: %w", id, err)
		}
		over := pr.Tokens - pr.Target
		switch {
		case over > 0 && n == 0:
			return pr, fmt.Errorf("%w: a prompt of %d tokens has %d with its nonce alone", errOvercommit, pr.Target, pr.Tokens)
		case over > 0:
			n, grown = n-max(1, int(float64(over)/m.wordTokens)), true
			n = max(n, 0)
		case !grown && n < len(words) && float64(-over) >= 2*m.wordTokens:
			n += int(float64(-over) / m.wordTokens)
			grown = true
		default:
			return pr, nil
		}
	}
}

// target gives the length of a request's prompt: every length once in a block
// of as many requests as there are lengths, in an order of the block's own.
func (m *prompter) target(id int) int {
	lengths := m.load.PromptTokens
	block, place := id/len(lengths), id%len(lengths)
	order := rand.New(rand.NewPCG(m.load.Seed^0x9e3779b97f4a7c15, uint64(block))).Perm(len(lengths))
	return lengths[order[place]]
}

// nonce gives a request's mark. The first two characters count, so that of a
// thousand prompts in a row no two begin with the same two: the server's slot
// selection never sees a common beginning, whatever the tokenizer makes of it.
func nonce(rng *rand.Rand, id int) string {
	b := []byte{nonceAlphabet[id%32], nonceAlphabet[id/32%32]}
	for len(b) < nonceLength {
		b = append(b, nonceAlphabet[rng.IntN(32)])
	}
	return string(b)
}

// draw takes n words at random.
func (m *prompter) draw(rng *rand.Rand, n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = m.words[rng.IntN(len(m.words))]
	}
	return words
}

// wordList has no word that could be part of a nonce's 16 characters in a row.
const wordList = `able acid age air apple arch arm army art aunt baby back bag ball band bank base basin bath bean bear
bed bee bell berry bird blade board boat body bone book boot box boy brain brake branch brass bread brick bridge brush
bucket bulb button cake camera canal card cart cat chain cheese chest chin church circle clock cloud coat collar comb
cord cow cup curtain cushion dog door drain drawer dress drop ear egg engine eye face farm feather field finger fish
flag floor fly foot fork fowl frame garden girl glove goat gun hair hammer hand harbor hat head heart hook horn horse
hospital house island jewel kettle key knee knife knot lake leaf leg library line lip lock map match meadow monkey moon
morning mountain mouth muscle nail neck needle nerve net nose nut office orange oven parcel pen pencil picture pig pin
pipe plane plate plow pocket pot potato prison pump rail rat receipt ring rod roof root sail school scissors screw seed
sheep shelf ship shirt shoe silver skin skirt snake sock spade sponge spoon spring square stamp star station stem stick
stocking stomach store street sun table tail thread throat thumb ticket toe tongue tooth town train tray tree trousers
umbrella valley village wall watch wheel whip whistle window wing wire worm yard yellow`

// leaks finds marks of other requests in answers. It knows every nonce so far,
// also of requests that are not answered yet.
type leaks map[string]int

// find returns the request whose nonce stands in the text, other than its own.
func (l leaks) find(text string, own int) (int, bool) {
	for i := 0; i+nonceLength <= len(text); i++ {
		if id, known := l[text[i:i+nonceLength]]; known && id != own {
			return id, true
		}
	}
	return 0, false
}

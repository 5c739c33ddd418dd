package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// vocabulary is the words that prompts are made of, with the tokens that each
// has in a text, its space included.
type vocabulary struct {
	words []string
	cost  []int   // of the word of the same index
	least int     // cost of the cheapest word
	fixed int     // tokens that every text has besides, such as the one that begins it
	more  float64 // by how much words have had more tokens together than apart; 1: never
}

// measureWords asks for the words' tokens, in texts of at most so many bytes. A
// word has at least one token and at most as many as bytes, so a sum that is one
// of these for a whole group is so for each of its words, and a few questions
// are enough for most vocabularies.
func measureWords(ctx context.Context, most int, count func(context.Context, string) (int, error)) (*vocabulary, error) {
	const start = "a"
	base, err := count(ctx, start)
	if err != nil {
		return nil, err
	}
	v := &vocabulary{words: strings.Fields(wordList), fixed: max(0, base-1), more: 1}
	v.cost = make([]int, len(v.words))
	var measure func(from, to int) error
	measure = func(from, to int) error {
		text := start + " " + strings.Join(v.words[from:to], " ")
		middle, n := (from+to)/2, 0
		if to-from == 1 || len(text) <= most {
			var err error
			if n, err = count(ctx, text); err != nil {
				return err
			}
			n -= base
			switch {
			case to-from == 1: // none, where a server only estimates
				v.cost[from] = max(1, n)
				return nil
			case n < (to-from)/2:
				return fmt.Errorf("%w: the server counts %d for %d words", errUncounted, n, to-from)
			case n <= to-from:
				for i := from; i < to; i++ {
					v.cost[i] = 1
				}
				return nil
			case n == len(text)-len(start):
				for i := from; i < to; i++ {
					v.cost[i] = len(v.words[i]) + 1
				}
				return nil
			}
		}
		if err := measure(from, middle); err != nil {
			return err
		}
		if err := measure(middle, to); err != nil {
			return err
		}
		apart := 0
		for _, cost := range v.cost[from:to] {
			apart += cost
		}
		v.more = max(v.more, float64(n)/float64(apart))
		return nil
	}
	if err := measure(0, len(v.words)); err != nil {
		return nil, err
	}
	v.least = slices.Min(v.cost)
	return v, nil
}

// draw takes words at random, by index, until no more fit into so many tokens.
// It returns what is left of these.
func (v *vocabulary) draw(rng *rand.Rand, tokens int) (words []int, left int) {
	const misses = 8 // words that are too long for the rest
	for missed := 0; tokens >= v.least && missed < misses; {
		i := rng.IntN(len(v.words))
		if v.cost[i] > tokens {
			missed++
			continue
		}
		tokens -= v.cost[i]
		words = append(words, i)
	}
	return words, tokens
}

// first is how many of the words fit into so many tokens, and what is left.
func (v *vocabulary) first(words []int, tokens int) (n, left int) {
	for n < len(words) && v.cost[words[n]] <= tokens {
		tokens -= v.cost[words[n]]
		n++
	}
	return n, tokens
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

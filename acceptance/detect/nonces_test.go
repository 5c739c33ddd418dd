package detect

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/1bit-systems/pkg/engine"
)

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"

func randomNonce(rng *rand.Rand) string {
	b := make([]byte, 16)
	for i := range b {
		b[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return string(b)
}

func TestNonces(t *testing.T) {
	n := NewNonces()
	n.Add(1, "abcdefghijkl2345")
	n.Add(2, "zyxwvutsrqpo7654")
	for text, want := range map[string]int{
		"":                          -1,
		"abcdefghijkl2345":          1,
		"so zyxwvutsrqpo7654 it is": 2,
		"cut: abcdefghijkl":         1, // the answer ended within it
		"hijkl2345":                 -1,
		"efghijkl2345 is its end":   1,
		"abcdefghijk":               -1, // one character less than tells it
		"abcdef ghijkl2345":         -1,
		"ABCDEFGHIJKL2345":          -1,
		"xxxxabcdefghijkl2345xxxx":  1,
		"own first: mnopqrstuvwx, then\nzyxwvutsrqpo7654": 2,
		"größer: abcdefghijkl2345":                        1,
	} {
		got := -1
		if id, at, ok := n.Find(text, 0); ok {
			got = id
			if !strings.HasPrefix(text[at:], text[at:at+window]) || at < 0 {
				t.Errorf("%q: at %d", text, at)
			}
		}
		if got != want {
			t.Errorf("%q: request %d, want %d", text, got, want)
		}
	}
	if _, _, ok := n.Find("abcdefghijkl2345", 1); ok {
		t.Error("a request's own nonce is a leak")
	}
	if id, _, ok := n.Find("abcdefghijkl2345 zyxwvutsrqpo7654", 1); !ok || id != 2 {
		t.Error("another's behind one's own is none")
	}
}

// The leak of the slot's previous request is told as such.
func TestLeakNamesTheTenant(t *testing.T) {
	s := newSet(t)
	for i, nonce := range []string{"aaaabbbbccccdddd", "eeeeffffgggghhhh", "iiiijjjjkkkkllll"} {
		s.Sent(i, nonce)
	}
	answer := func(slot int, text string) *engine.Answer {
		return &engine.Answer{Status: 200, Content: text, TokensPredicted: 9, SlotID: slot}
	}
	for i, tt := range []struct {
		slot       int
		text, want string
	}{
		{3, "fine", ""},
		{3, "so aaaabbbbccccdddd", "leak fault: the answer has the nonce of request 0, which the slot served before"},
		{3, "so aaaabbbbccccdddd", "leak fault: the answer has the nonce of request 0"},
	} {
		if got := tell(s.Exchange(&Exchange{ID: i, NPredict: 9, Answer: answer(tt.slot, tt.text)})); got != tt.want {
			t.Errorf("%d: %s, want %s", i, got, tt.want)
		}
	}
}

// Answers of a healthy model never have a nonce, however many there are, and a leaked one is found among all of them.
func TestManyNonces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := NewNonces()
	nonces := make([]string, 20000)
	for i := range nonces {
		nonces[i] = randomNonce(rng)
		n.Add(i, nonces[i])
	}
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(3, uint64(w)))
			for range 5000 {
				text := fmt.Sprint(randomNonce(rng), randomNonce(rng), randomNonce(rng), " words ", randomNonce(rng))
				if id, _, ok := n.Find(text, -1); ok {
					t.Errorf("%q is said to hold the nonce of %d", text, id)
				}
				of := rng.IntN(len(nonces))
				if id, _, ok := n.Find(text+nonces[of]+text, -1); !ok || id != of {
					t.Errorf("the nonce of %d is not found", of)
				}
			}
		})
	}
	all.Wait()
}

// plainNonces is the same book as a map, in the fewest words.
type plainNonces map[string]int

func (n plainNonces) add(id int, nonce string) {
	if len(nonce) >= window {
		n[nonce[:window]], n[nonce[len(nonce)-window:]] = id, id
	}
}

func (n plainNonces) find(text string, own int) (id, at int, ok bool) {
	for i := range max(0, len(text)-window+1) {
		if id, known := n[text[i:i+window]]; known && id != own && strings.IndexFunc(text[i:i+window], func(r rune) bool { return r > 127 || !word(byte(r)) }) < 0 {
			return id, i, true
		}
	}
	return 0, 0, false
}

// The compact table finds what a map finds, whatever of a nonce a text has, in and out of words.
func TestNoncesAsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	n, plain := NewNonces(), plainNonces{}
	var nonces []string
	found := 0
	for id := range 15000 {
		nonce := randomNonce(rng)
		if rng.IntN(50) == 0 && id > 0 {
			nonce = nonces[rng.IntN(id)] // a known request is asked with the same one again and again
		}
		nonces = append(nonces, nonce)
		n.Add(id, nonce)
		plain.add(id, nonce)
		of := nonces[rng.IntN(len(nonces))]
		from := rng.IntN(len(of))
		text := randomNonce(rng)[:rng.IntN(16)] + [...]string{"", " ", "é", "A"}[rng.IntN(4)] + of[from:from+rng.IntN(len(of)-from+1)] +
			[...]string{"", "-", "9"}[rng.IntN(3)] + randomNonce(rng)[:rng.IntN(16)]
		own := -1
		if rng.IntN(3) == 0 {
			own = rng.IntN(len(nonces))
		}
		id1, at1, ok1 := n.Find(text, own)
		id2, at2, ok2 := plain.find(text, own)
		if id1 != id2 || at1 != at2 || ok1 != ok2 {
			t.Fatalf("%q, own %d: %d at %d (%v), a map finds %d at %d (%v)", text, own, id1, at1, ok1, id2, at2, ok2)
		}
		if ok1 {
			found++
		}
	}
	if found < 300 {
		t.Errorf("only %d texts had a nonce", found)
	}
}

// A request takes less than 40 bytes, however many there are.
func TestNoncesAreSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 7))
	n := NewNonces()
	for id := range 200_000 {
		n.Add(id, randomNonce(rng))
		if id < 10_000 || id%1000 != 0 {
			continue
		}
		size := 0
		for i := range n.ends.parts {
			size += 8*cap(n.ends.parts[i].keys) + 4*cap(n.ends.parts[i].ids)
		}
		if each := float64(size) / float64(id+1); each > 40 {
			t.Fatalf("%.1f bytes a request with %d of them", each, id+1)
		}
	}
}

func FuzzNonces(f *testing.F) {
	f.Add("aaaabbbbccccdddd", "so aaaabbbbccccdddd", 2)
	f.Add("short", "short", 0)
	f.Fuzz(func(t *testing.T, nonce, text string, at int) {
		n := NewNonces()
		n.Add(7, nonce)
		id, from, ok := n.Find(text, -1)
		if ok && (id != 7 || !strings.Contains(nonce, text[from:from+window])) {
			t.Fatalf("%q in %q: %d at %d", nonce, text, id, from)
		}
		if !ok && len(nonce) >= window && strings.IndexFunc(nonce, func(r rune) bool { return r > 127 || !word(byte(r)) }) < 0 && strings.Contains(text, nonce) {
			t.Fatalf("%q in %q is not found", nonce, text)
		}
	})
}

func BenchmarkExchange(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	s, err := New(nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 100000 {
		s.Sent(i, randomNonce(rng))
	}
	a := spoken(strings.Repeat("the quick brown fox jumps ", 4)[:96], -1, 2)
	for i := 0; b.Loop(); i++ {
		s.Exchange(&Exchange{ID: i % 100000, NPredict: 96, ProbsAsked: true, Answer: a})
	}
}

package detect

import (
	"hash/maphash"
	"sync"
)

// window is how many characters of a nonce in a row tell it: less than the whole of one, so that an answer that begins or
// ends within it is told too, and of 32 letters still more than a model finds by chance.
const window = 12

// Nonces knows the nonce of every request and who held which slot. A request takes some 60 bytes.
type Nonces struct {
	seed    maphash.Seed
	mu      sync.RWMutex
	ends    map[uint64]int32 // beginning and end of every nonce, hashed: the request it belongs to
	tenants map[int]int      // slot: the request that it served last
}

// NewNonces makes an empty book.
func NewNonces() *Nonces {
	return &Nonces{seed: maphash.MakeSeed(), ends: map[uint64]int32{}, tenants: map[int]int{}}
}

// Add enters the nonce of a request, before it is sent: letters and digits. One that is shorter than 12 characters is
// never found.
func (n *Nonces) Add(id int, nonce string) {
	if len(nonce) < window {
		return
	}
	first, last := maphash.String(n.seed, nonce[:window]), maphash.String(n.seed, nonce[len(nonce)-window:])
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends[first], n.ends[last] = int32(id), int32(id)
}

// Find returns the first request other than own of whose nonce the text has the first or the last 12 characters, and
// where. A text takes a step a character, and a look-up a character only within words that are long enough.
func (n *Nonces) Find(text string, own int) (id, at int, ok bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for i, run := 0, 0; i < len(text); i++ {
		if !word(text[i]) {
			run = 0
			continue
		}
		if run++; run < window {
			continue
		}
		if id, known := n.ends[maphash.String(n.seed, text[i+1-window:i+1])]; known && int(id) != own {
			return int(id), i + 1 - window, true
		}
	}
	return 0, 0, false
}

// Serve enters that a slot has served a request and returns the one that it served before, -1 if there was none.
func (n *Nonces) Serve(slot, id int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, known := n.tenants[slot]
	if n.tenants[slot] = id; !known || slot < 0 {
		return -1
	}
	return before
}

// word tells whether a byte can be part of a nonce.
func word(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

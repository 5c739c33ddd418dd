package detect

import "sync"

// window is how many characters of a nonce in a row tell it: less than the whole of one, so that an answer that ends
// within it is told too, and of 32 letters still more than a model finds by chance.
const window = 12

// Nonces knows the nonce of every request and who held which slot.
type Nonces struct {
	mu      sync.RWMutex
	parts   map[string]int // every window of every nonce: the request it belongs to
	tenants map[int]int    // slot: the request that it served last
}

// NewNonces makes an empty book.
func NewNonces() *Nonces { return &Nonces{parts: map[string]int{}, tenants: map[int]int{}} }

// Add enters the nonce of a request, before it is sent. One that is shorter than 12 characters is never found.
func (n *Nonces) Add(id int, nonce string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := 0; i+window <= len(nonce); i++ {
		n.parts[nonce[i:i+window]] = id
	}
}

// Find returns the first request other than own whose nonce, or 12 characters of it in a row, stands in the text, and
// where. A text of n characters takes n steps and no memory.
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
		if id, known := n.parts[text[i+1-window:i+1]]; known && id != own {
			return id, i + 1 - window, true
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

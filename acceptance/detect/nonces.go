package detect

import (
	"hash/maphash"
	"math/bits"
	"sync"
)

// window is how many characters of a nonce in a row tell it: less than the whole of one, so that an answer that begins or
// ends within it is told too, and of 32 letters still more than a model finds by chance.
const window = 12

// Nonces knows the nonce of every request and who held which slot. A request takes less than 40 bytes.
type Nonces struct {
	seed    maphash.Seed
	mu      sync.RWMutex
	ends    ends        // beginning and end of every nonce
	tenants map[int]int // slot: the request that it served last
}

// NewNonces makes an empty book.
func NewNonces() *Nonces { return &Nonces{seed: maphash.MakeSeed(), tenants: map[int]int{}} }

// Add enters the nonce of a request, before it is sent: letters and digits. One that is shorter than 12 characters is
// never found.
func (n *Nonces) Add(id int, nonce string) {
	if len(nonce) < window {
		return
	}
	first, last := maphash.String(n.seed, nonce[:window]), maphash.String(n.seed, nonce[len(nonce)-window:])
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ends.put(first, int32(id))
	n.ends.put(last, int32(id))
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
		if id, known := n.ends.get(maphash.String(n.seed, text[i+1-window:i+1])); known && int(id) != own {
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

// ends maps hashed texts to requests. A map of Go's takes three times as much for them; a life may have a million
// requests. Each of its parts is a table with open addressing, which grows by a quarter, so that at most a part is there
// twice while it does.
type ends struct{ parts [64]endTable }

type endTable struct {
	keys []uint64 // 0: free
	ids  []int32
	used int
}

// part gives the table of a hash, and the hash as its key.
func (e *ends) part(hash uint64) (*endTable, uint64) { return &e.parts[hash%64], max(1, hash) }

func (e *ends) put(hash uint64, id int32) {
	t, key := e.part(hash)
	if 10*(t.used+1) > 9*len(t.keys) {
		t.grow()
	}
	t.put(key, id)
}

func (e *ends) get(hash uint64) (id int32, known bool) {
	t, key := e.part(hash)
	if t.used == 0 {
		return 0, false
	}
	i := t.find(key)
	return t.ids[i], t.keys[i] == key
}

// find gives the place of a key, or the free one where it belongs. There always is a free one.
func (t *endTable) find(key uint64) int {
	i, _ := bits.Mul64(key, uint64(len(t.keys)))
	for t.keys[i] != 0 && t.keys[i] != key {
		if i++; i == uint64(len(t.keys)) {
			i = 0
		}
	}
	return int(i)
}

func (t *endTable) put(key uint64, id int32) {
	i := t.find(key)
	if t.keys[i] == 0 {
		t.keys[i] = key
		t.used++
	}
	t.ids[i] = id
}

func (t *endTable) grow() {
	old := *t
	n := len(old.keys) + len(old.keys)/4 + 8
	*t = endTable{keys: make([]uint64, n), ids: make([]int32, n)}
	for i, key := range old.keys {
		if key != 0 {
			t.put(key, old.ids[i])
		}
	}
}

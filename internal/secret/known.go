package secret

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// Known are secrets that were found by their names. They are hidden wherever they stand, also where nothing tells
// what they are.
type Known []string

// shortest is the length in bytes below which a value would be found in much that is not it.
const shortest = 6

// Add takes in the value of a variable or an option, if it is a secret, as it is and as JSON and URLs write it. A path is
// none by itself, and part of others.
func (k *Known) Add(name, value string) {
	if credentials(name) {
		from, to := userPassword(value)
		value = value[from:to]
	} else if !Named(name) || harmless(name, value) {
		return
	}
	k.add(value)
	for line := range strings.Lines(value) { // as a journal has them
		if line = strings.TrimSpace(line); line != value && len(line) >= 16 && !strings.HasPrefix(line, "-----") {
			k.add(line)
		}
	}
	slices.SortStableFunc(*k, func(a, b string) int { return len(b) - len(a) }) // one may hold another
}

func (k *Known) add(value string) {
	if len(value) < shortest {
		return
	}
	packed, err := json.Marshal(value)
	if err != nil {
		return
	}
	once := string(packed[1 : len(packed)-1])
	for _, form := range []string{value, once, url.QueryEscape(value), url.PathEscape(value)} {
		if !slices.Contains(*k, form) {
			*k = append(*k, form)
		}
	}
}

// Text is a text with the secrets in it masked, those that are known and those that Text finds.
func (k Known) Text(s string) string {
	return hide(s, func(s string) []span {
		found := secrets(s)
		for _, value := range k {
			for at := 0; ; {
				i := strings.Index(s[at:], value)
				if i < 0 {
					break
				}
				found = append(found, span{at + i, at + i + len(value)})
				at += i + len(value)
			}
		}
		return found
	})
}

// AddWords takes in the secrets of a command line.
func (k *Known) AddWords(argv []string) {
	eachValue(argv, func(_ int, name, value string) {
		if name != "" {
			k.Add(name, value)
		}
	})
}

package secret

import (
	"slices"
	"strings"
)

// Known are secrets that were found by their names. They are hidden wherever they stand, also where nothing tells
// what they are.
type Known []string

// shortest is the length in bytes below which a value would be found in much that is not it.
const shortest = 6

// Add takes in the value of a variable or an option, if it is a secret. A path is none by itself, and part of others.
func (k *Known) Add(name, value string) {
	path := strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~/") || strings.HasPrefix(value, "./")
	if Named(name) && !path && !harmless(name, value) && len(value) >= shortest && !slices.Contains(*k, value) {
		*k = append(*k, value)
		slices.SortFunc(*k, func(a, b string) int { return len(b) - len(a) }) // one may hold another
	}
}

// Text is a text with the secrets in it masked, those that are known and those that Text finds.
func (k Known) Text(s string) string {
	for _, value := range k {
		s = strings.ReplaceAll(s, value, Mask)
	}
	return Text(s)
}

// AddWords takes in the secrets of a command line.
func (k *Known) AddWords(argv []string) {
	for i, word := range argv {
		name, value, assigned := strings.Cut(word, "=")
		switch {
		case assigned:
			k.Add(name, value)
		case strings.HasPrefix(word, "-") && i+1 < len(argv):
			k.Add(word, argv[i+1])
		}
	}
}

// Package lazyregexp compiles regular expressions at their first use. A program whose every package compiles its own
// at the start pays for all of them in each run, and a single command needs few.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns what compiles a pattern when it is first called. A pattern that is none panics then, so that each needs
// a test that uses it.
func New(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

package secret

import (
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

var (
	reKeyBegins = lazyregexp.New(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	reKeyEnds   = lazyregexp.New(`-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	// A line of a private key's body, with what a logger writes before it.
	reKeyLine = lazyregexp.New(`^(?:.*[\s:|])?([A-Za-z0-9+/=]{40,})\s*$|^\s*([A-Za-z0-9+/=]+)\s*$|^(?:.*\s)?((?:Proc-Type|DEK-Info|Comment|Version): .*)$`)
)

// longestKey bounds the lines of one key: 16384 bits of RSA have 200.
const longestKey = 400

// KeyLines hides private keys that come line by line, as a journal has them. It is for the lines of one writer, in their
// order. Lines in between that are no part of a key stay, and the first and the last are for [Text] to mask.
type KeyLines struct{ left int }

// Text is a line without what it has of a key.
func (k *KeyLines) Text(line string) string {
	begins, ends := strings.Contains(line, "-----BEGIN ") && reKeyBegins().MatchString(line), reKeyEnds().MatchString(line)
	switch {
	case begins:
		if k.left = longestKey; ends {
			k.left = 0
		}
		return line
	case k.left == 0:
		return line
	case ends:
		k.left = 0
		return line
	}
	k.left--
	return hide(line, func(s string) []span { return findAll(reKeyLine(), s) })
}

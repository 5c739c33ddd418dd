package secret

import (
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

var (
	reTyped     = lazyregexp.New(`^(?:bool|int|float):`) // of llama-server's --override-kv
	reCount     = lazyregexp.New(`^-?[0-9]{1,9}$`)
	reAmount    = lazyregexp.New(`^(?:[0-9]{1,3}|[0-9]{1,5}\.[0-9]{1,6})(?:%|[kKMG]|[kKMG]?i?B|ms|s|us|min|h)?$`)
	reVariable  = lazyregexp.New(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`)
	rePath      = lazyregexp.New(`^(?:~|\.|\.\.|%[hdtSECLTV]|\$\{?HOME\}?|\$\{?CREDENTIALS_DIRECTORY\}?)/|^/(?:home|root|etc|run|var|usr|opt|srv|tmp|data|mnt|media|dev|proc|sys|nix|snap|boot|lib|models|secrets|work)(?:/|$)`)
	reSpecial   = lazyregexp.New(`^(?:<[^<>\s]{0,40}>|\[[A-Z]{2,8}\])$`) // of a vocabulary
	reRandom    = lazyregexp.New(`^[A-Za-z0-9_+/=~\-]{8,}$`)
	reLetter    = lazyregexp.New(`[A-Za-z]`)
	reDigit     = lazyregexp.New(`[0-9]`)
	reNoSecret  = lazyregexp.New(`^(?:0x[0-9a-fA-F]+|[0-9]+(?:[.:\-][0-9]+)*[A-Za-z]{0,3})$`)
	harmlessSet = set(`true false yes no on off auto none null nil <nil> undefined enabled disabled ` + Mask)
)

// harmless tells of the value of a name that says secret that it is none: one letter, a word for yes or no, a number
// where tokens and keys are counted, a path, or a variable that stands for it.
func harmless(name, value string) bool {
	lower := strings.ToLower(value)
	if typed := reTyped().FindString(lower); typed != "" {
		lower = lower[len(typed):]
	}
	switch {
	case len(lower) <= 1, harmlessSet[lower], reVariable().MatchString(value), isPath(value):
		return true
	case place(name):
		return !strings.Contains(value, ":") && strings.ContainsAny(value, "/.")
	case only(strings.TrimLeft(name, "-"), "pass", "keys"):
		return reAmount().MatchString(value)
	}
	p := parts(name)
	says := func(ends ...string) bool {
		return slices.ContainsFunc(p, func(part string) bool {
			return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(part, end) })
		})
	}
	switch {
	case says("secret", "password", "passwd", "passphrase"):
		return false
	case says("token", "tokens"):
		return reCount().MatchString(value) || reAmount().MatchString(value) || reSpecial().MatchString(value)
	case says("key", "keys"):
		return reAmount().MatchString(value)
	}
	return false
}

func isPath(value string) bool { return rePath().MatchString(value) }

// random tells whether a word looks as if nobody would say it: letters and digits, and no number.
func random(word string) bool {
	return reRandom().MatchString(word) && reLetter().MatchString(word) && reDigit().MatchString(word) &&
		!reNoSecret().MatchString(word) && !isPath(word)
}

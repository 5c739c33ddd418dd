// Package secret hides secrets in what is kept or shown: in command lines, variables, unit files and the lines of
// logs. Whether something is a secret is told by its name, such as HF_TOKEN or --api-key, by where it stands, as a
// password in a URL, or by its own shape. What is hidden is replaced by Mask, which tells nothing of its length.
//
// A text is read once from its beginning: the names in it are found, with the quotes that they stand in; a name is
// judged by its words, and then the value that follows by what it looks like. URLs and shapes are looked for in the same
// text, and what any of them finds is masked.
//
// More is hidden than need be: a name that only looks like one of a secret costs a reader a value, the other error
// costs an owner an account. But what an engine says of its model is full of tokens and keys, and stays: numbers,
// paths, and the names of a vocabulary's tokens. What no name and no shape tells, such as a password in the middle of a
// sentence, is not found.
package secret

import (
	"regexp"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// Mask stands for a value that is not shown.
const Mask = "(masked)"

// Value is the value of a variable or an option as it may be shown.
func Value(name, value string) string {
	if Named(name) && !harmless(name, value) {
		return Mask
	}
	return Text(value)
}

// A word that assigns, as API_KEY=x and --api-key=x do; other words have a sign of equality somewhere.
var reAssigned = lazyregexp.New(`(?s)^(-{0,2}[A-Za-z0-9_.\-]+)=(.*)$`)

// Words are the words of a command line as they may be shown.
func Words(argv []string) []string {
	words := make([]string, len(argv))
	eachValue(argv, func(i int, name, value string) {
		head := argv[i][:len(argv[i])-len(value)]
		switch {
		case name == "":
			words[i] = Text(value)
		case credentials(name):
			from, to := userPassword(value)
			words[i] = head + value[:from] + mask(value[from:to]) + value[to:]
		default:
			words[i] = head + Value(name, value)
		}
	})
	return words
}

// eachValue calls f with each word of a command line, or what it assigns, and the name of the option or the variable
// whose value that is, "" if there is none.
func eachValue(argv []string, f func(i int, name, value string)) {
	option, program := "", ""
	for i, word := range argv {
		m := reAssigned().FindStringSubmatch(word)
		if i > 0 && argv[i-1] == "-c" {
			m = nil // a shell's, with other words behind
		}
		switch {
		case option != "":
			f(i, option, word)
			option = ""
		case m != nil && program != "" && pairOption(program, m[1]) != "":
			f(i, pairOption(program, m[1]), m[2])
		case m != nil:
			f(i, m[1], m[2])
		default:
			f(i, "", word)
			program = programOf(program, word)
			switch {
			case !strings.HasPrefix(word, "-"):
			case pairOption(program, word) != "":
				option = pairOption(program, word)
			case Named(word):
				option = word
			}
		}
	}
}

func mask(s string) string {
	if s == "" {
		return ""
	}
	return Mask
}

// findAll finds what a pattern matches, or its last group that takes part.
func findAll(re *regexp.Regexp, s string) []span {
	var found []span
	for _, m := range re.FindAllStringSubmatchIndex(s, -1) {
		for i := len(m) - 2; i >= 0; i -= 2 {
			if m[i] >= 0 {
				found = append(found, span{m[i], m[i+1]})
				break
			}
		}
	}
	return found
}

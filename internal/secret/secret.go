// Package secret hides secrets in what is kept or shown: in command lines, variables, unit files and the lines of
// logs. Whether something is a secret is told by its name, such as HF_TOKEN or --api-key, by where it stands, as a
// password in a URL, or by its own shape. What is hidden is replaced by Mask, which tells nothing of its length.
//
// More is hidden than need be: a name that only looks like one of a secret costs a reader a value, the other error
// costs an owner an account.
package secret

import (
	"slices"
	"strings"
	"unicode"
)

// Mask stands for a value that is not shown.
const Mask = "(masked)"

// Named tells whether the value of a variable, an option or a header of this name is a secret.
func Named(name string) bool {
	for _, part := range parts(name) {
		if slices.Contains([]string{"keys", "tokens", "auth", "pass", "pwd", "bearer", "cred", "creds", "pat"}, part) ||
			strings.HasSuffix(part, "key") || strings.HasSuffix(part, "token") {
			return true
		}
		for _, word := range []string{"secret", "password", "passwd", "passphrase", "credential", "authorization", "cookie"} {
			if strings.Contains(part, word) {
				return true
			}
		}
	}
	return false
}

// parts divides a name at what is no letter and no digit, and where a capital follows a small letter. They come in
// small letters.
func parts(name string) []string {
	var b strings.Builder
	small := false
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			c = ' '
		case unicode.IsUpper(c) && small:
			b.WriteByte(' ')
		}
		small = unicode.IsLower(c)
		b.WriteRune(unicode.ToLower(c))
	}
	return strings.Fields(b.String())
}

// Value is the value of a variable or an option as it may be shown.
func Value(name, value string) string {
	if Named(name) && !harmless(name, value) {
		return Mask
	}
	return Text(value)
}

// harmless tells of the value of a name that says secret that it is none: one letter, a word for yes or no or, where
// tokens are counted or named by their number, a number.
func harmless(name, value string) bool {
	value = strings.ToLower(value)
	if len(value) <= 1 || slices.Contains([]string{"true", "false", "yes", "no", "on", "off", "auto", "none", "null", Mask}, value) {
		return true
	}
	number := strings.Trim(value, "0123456789") == ""
	return number && len(value) <= 9 && slices.ContainsFunc(parts(name), func(p string) bool { return p == "tokens" || p == "token" })
}

// Words are the words of a command line as they may be shown.
func Words(argv []string) []string {
	words := make([]string, len(argv))
	option := "" // whose value the next word is
	for i, word := range argv {
		name, value, assigned := strings.Cut(word, "=")
		switch {
		case option != "":
			words[i], option = Value(option, word), ""
		case assigned:
			words[i] = name + "=" + Value(name, value)
		default:
			words[i] = Text(word)
			if strings.HasPrefix(word, "-") && Named(word) {
				option = word
			}
		}
	}
	return words
}

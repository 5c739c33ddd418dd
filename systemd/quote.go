package systemd

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// ErrUnquotable is wrapped by QuoteAssignment for a name or value that no Environment= line
// carries unchanged, or that it carries and no process can get.
var ErrUnquotable = errors.New("cannot be written as Environment=")

// maxVariable is the longest KEY=value that the kernel hands to a program, in bytes
// (MAX_ARG_STRLEN without the NUL at the end).
const maxVariable = 128<<10 - 1

// QuoteAssignment writes KEY=value as one word for the right side of Environment=, so that
// systemd reads exactly that value: quoted as a whole, backslash and quote escaped, per cent
// doubled. The error wraps ErrUnquotable for a bad name, a control character (also newline and
// tab), what is not UTF-8, and what is longer than 128 KiB.
func QuoteAssignment(key, value string) (string, error) {
	switch {
	case !validName(key):
		return "", fmt.Errorf("%w: %q is not the name of a variable", ErrUnquotable, key)
	case !validValue(value):
		return "", fmt.Errorf("%w: the value of %s is not UTF-8", ErrUnquotable, key)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", fmt.Errorf("%w: the value of %s has control characters", ErrUnquotable, key)
	case len(key)+1+len(value) > maxVariable:
		return "", fmt.Errorf("%w: the value of %s is longer than 128 KiB", ErrUnquotable, key)
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`)
	return `"` + key + "=" + escape.Replace(value) + `"`, nil
}

package systemd

import "strings"

// validName is systemd's rule for the name of a variable.
func validName(name string) bool {
	if name == "" || (name[0] >= '0' && name[0] <= '9') {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// validValue is systemd's rule for the value of a variable: any UTF-8, control characters too.
func validValue(value string) bool { return validUTF8(value) }

// splitAssignment splits KEY=value where systemd would take it.
func splitAssignment(text string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(text, "=")
	return key, value, ok && validName(key) && validValue(value)
}

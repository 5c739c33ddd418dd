package systemd

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// Version tells which systemd this is, as it said when it was connected to: its number, such as 252, 0 where that cannot
// be read, and its whole text, such as "252.39-1~deb12u2".
func (m *Manager) Version(context.Context) (number int, text string, err error) {
	text = get[string](m.about, "Version")
	if text == "" {
		return 0, "", errors.New("ask systemd for its version: it does not tell")
	}
	digits := strings.TrimPrefix(text, "v")
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		digits = digits[:end]
	}
	if number, err = strconv.Atoi(digits); err != nil {
		number = 0
	}
	return number, text, nil
}

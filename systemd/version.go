package systemd

import (
	"context"
	"fmt"
	"strconv"
)

// Version tells which systemd this is, as it said when it was connected to: its number, such as 252, 0 where that cannot
// be read, and its whole text, such as "252.39-1~deb12u2".
func (m *Manager) Version(context.Context) (number int, text string, err error) {
	text = get[string](m.about, "Version")
	if text == "" {
		return 0, "", fmt.Errorf("ask systemd for its version: it does not tell")
	}
	digits := 0
	for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
		digits++
	}
	number, _ = strconv.Atoi(text[:digits])
	return number, text, nil
}

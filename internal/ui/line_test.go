package ui

import (
	"strings"
	"testing"
)

func TestLine(t *testing.T) {
	var b strings.Builder
	l := &Line{w: &b, width: func() int { return 8 }}
	l.Clear()
	l.Say("one")
	l.Say("one")
	l.Say("longer \x1b[2J than that")
	l.Clear()
	l.Clear()
	if want := "\rone\x1b[K\rlonger…\x1b[K\r\x1b[K"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	none := NewLine(&b)
	none.Say("x")
	none.Clear()
	if none != nil || strings.Contains(b.String(), "x") {
		t.Error("a line where there is no terminal")
	}
}

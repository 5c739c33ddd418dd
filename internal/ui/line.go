package ui

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Line is one line at the end of a terminal that says what goes on. What else is written there has to Clear it first.
// A nil Line shows nothing.
type Line struct {
	w     io.Writer
	width func() int // of the terminal, in characters

	mu    sync.Mutex
	shown string
}

// NewLine makes a line on w when w is a terminal, and nil otherwise.
func NewLine(w io.Writer) *Line {
	if !IsTerminal(w) {
		return nil
	}
	fd := int(w.(*os.File).Fd())
	return &Line{w: w, width: func() int {
		width, _, err := term.GetSize(fd)
		if err != nil {
			return 80
		}
		return width
	}}
}

// Say shows a text in place of the one before, cut to the width of the terminal.
func (l *Line) Say(text string) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	runes := []rune(Clean(text))
	if most := max(l.width()-1, 1); len(runes) > most {
		runes = append(runes[:most-1:most-1], '…')
	}
	if text = string(runes); text != l.shown {
		l.shown = text
		fmt.Fprintf(l.w, "\r%s\x1b[K", text)
	}
}

// Clear takes the line away.
func (l *Line) Clear() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown != "" {
		l.shown = ""
		fmt.Fprint(l.w, "\r\x1b[K")
	}
}

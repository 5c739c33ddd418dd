// Package ui shows things to people: a table, a size, a progress bar, and text from elsewhere without its
// control characters.
package ui

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// Table writes rows in aligned columns, the first row being the header.
func Table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = Clean(cell)
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	return t.Flush()
}

// Size writes a number of bytes with a binary unit, such as "62.9 MiB".
func Size(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	v, i := float64(n)/1024, 0
	for v >= 1023.95 && i < len(units)-1 {
		v, i = v/1024, i+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[i])
}

// Clean makes text from elsewhere safe for a terminal: what is not printable is shown escaped.
func Clean(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}

// IsTerminal tells whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Progress is a bar for work whose size is known. A nil Progress shows nothing.
type Progress struct {
	pool *mpb.Progress
	bar  *mpb.Bar
	note atomic.Value // of string; the bar is drawn by a goroutine of its own
}

// NewProgress makes a bar on w when w is a terminal, and nil otherwise.
func NewProgress(w io.Writer, what string) *Progress {
	if !IsTerminal(w) {
		return nil
	}
	p := &Progress{pool: mpb.New(mpb.WithOutput(w), mpb.WithWidth(48), mpb.WithRefreshRate(150*time.Millisecond))}
	p.note.Store("")
	p.bar = p.pool.New(0, mpb.BarStyle(), mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(what+" ")),
		mpb.AppendDecorators(decor.Percentage(), decor.Any(func(decor.Statistics) string { return " " + p.note.Load().(string) })))
	return p
}

// Update moves the bar to done of total, with a note behind it.
func (p *Progress) Update(done, total int64, note string) {
	if p == nil {
		return
	}
	p.note.Store(note)
	p.bar.SetTotal(total, false)
	p.bar.SetCurrent(done)
}

// Bytes moves the bar to done of total bytes.
func (p *Progress) Bytes(done, total int64) {
	if p != nil {
		p.Update(done, total, Size(done)+" of "+Size(total))
	}
}

// Close takes the bar away.
func (p *Progress) Close() {
	if p == nil {
		return
	}
	p.bar.Abort(true)
	p.pool.Wait()
}

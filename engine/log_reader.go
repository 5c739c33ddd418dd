package engine

import (
	"bytes"
	"strings"
	"time"
)

// A LogReader cuts a growing log into lines and reads them. However the bytes
// are split between calls of Feed, the events are the same, each of them once.
// It keeps one unfinished line, of at most maxLogLine bytes.
//
// It also knows what a single line does not tell: in the log of 2025 the slot of
// a timing stands in the line before.
type LogReader struct {
	rest []byte // of a line whose end has not come
	over bool   // that line is too long and is left out
	head LogEvent
}

const (
	// maxLogLine bounds a line, in bytes. A longer one is no event: it is a
	// prompt that somebody logs, and its pieces must not be taken for lines.
	maxLogLine = 64 << 10
	// logBlock is how much text is read at a time, in bytes. Details share it.
	logBlock = 64 << 10
)

// Feed takes the next bytes of the log, read at the given time since the
// process started, and calls f for each event.
func (r *LogReader) Feed(p []byte, at time.Duration, f func(LogEvent)) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		first := end
		switch {
		case end < 0:
			r.keep(p)
			return
		case len(r.rest) > 0 || r.over:
			r.keep(p[:end])
			r.Flush(at, f)
		default:
			if last := bytes.LastIndexByte(p[:min(len(p), logBlock)], '\n'); last > end {
				end = last
			}
			if first <= maxLogLine {
				r.block(string(p[:end]), at, f)
			}
		}
		p = p[end+1:]
	}
}

// Flush reads a last line without an end, of a log that will not grow any more.
func (r *LogReader) Flush(at time.Duration, f func(LogEvent)) {
	if !r.over && len(r.rest) > 0 {
		r.line(string(r.rest), at, f)
	}
	r.rest, r.over = r.rest[:0], false
}

// keep adds to the unfinished line.
func (r *LogReader) keep(p []byte) {
	if r.over = r.over || len(r.rest)+len(p) > maxLogLine; r.over {
		r.rest = r.rest[:0]
		return
	}
	r.rest = append(r.rest, p...)
}

// block reads whole lines, without the end of the last.
func (r *LogReader) block(text string, at time.Duration, f func(LogEvent)) {
	for {
		end := strings.IndexByte(text, '\n')
		if end < 0 {
			r.line(text, at, f)
			return
		}
		r.line(text[:end], at, f)
		text = text[end+1:]
	}
}

func (r *LogReader) line(text string, at time.Duration, f func(LogEvent)) {
	var ev LogEvent
	if !ev.parse(text) {
		if ev.Kind == logHead {
			r.head = LogEvent{Kind: logHead, Router: ev.Router, Slot: ev.Slot, Task: ev.Task}
		}
		return
	}
	ev.Read = at
	if r.head.Kind != "" && ev.Router == r.head.Router {
		if ev.Slot < 0 && (ev.Kind == LogTiming || ev.Kind == LogGraphs) {
			ev.Slot, ev.Task = r.head.Slot, r.head.Task
		} else {
			r.head = LogEvent{}
		}
	}
	f(ev)
}

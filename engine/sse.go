package engine

import "bytes"

// An sseScanner finds the events of a stream of server-sent events in a buffer
// that grows. Where the buffer was cut into pieces makes no difference. Lines
// end with LF, CR or both; comments, ids and unknown fields are skipped.
//
// It takes one field that the standard has not: "error", by which older
// llama-servers tell in mid-stream that they cannot go on.
type sseScanner struct {
	at     int  // what is before it has been read
	afterR bool // the last byte before it is a CR, so that an LF belongs to it

	lines    int    // of data, of the event that has begun
	from, to int    // where the first of them stands
	joined   []byte // all, if there are several
	failed   bool   // it has the field "error", or its name is that
}

// An sseEvent is what one event says.
type sseEvent struct {
	data   []byte
	at     int  // where data stands in the buffer; -1: in several pieces
	failed bool // it is an error
	torn   bool // the stream ended before the event did
}

// next gives the next event in the buffer, which holds all that has come since
// the beginning. end says that nothing more will come: what is left of an event
// then counts as one.
func (s *sseScanner) next(raw []byte, end bool) (sseEvent, bool) {
	for s.at < len(raw) {
		if s.afterR {
			s.afterR = false
			if raw[s.at] == '\n' {
				s.at++
				continue
			}
		}
		from := s.at
		n := lineEnd(raw[from:])
		if n < 0 {
			if !end {
				return sseEvent{}, false
			}
			n = len(raw) - from
			s.at = len(raw)
		} else {
			s.afterR = raw[from+n] == '\r'
			s.at = from + n + 1
		}
		if n == 0 {
			if ev, ok := s.take(raw); ok {
				return ev, true
			}
			continue
		}
		s.line(raw, from, from+n)
	}
	if end {
		ev, ok := s.take(raw)
		ev.torn = true
		return ev, ok
	}
	return sseEvent{}, false
}

// byteOrderMark may begin a stream.
const byteOrderMark = "\xef\xbb\xbf"

// lineEnd finds the first CR or LF, or -1.
func lineEnd(b []byte) int {
	n := bytes.IndexByte(b, '\n')
	if n >= 0 {
		b = b[:n]
	}
	if r := bytes.IndexByte(b, '\r'); r >= 0 {
		return r
	}
	return n
}

// line takes one line that is not empty.
func (s *sseScanner) line(raw []byte, from, to int) {
	if from == 0 && bytes.HasPrefix(raw[:to], []byte(byteOrderMark)) {
		from += len(byteOrderMark)
	}
	name, value := raw[from:to], to
	if colon := bytes.IndexByte(name, ':'); colon >= 0 {
		name, value = name[:colon], from+colon+1
		if value < to && raw[value] == ' ' {
			value++
		}
	}
	switch string(name) {
	case "event":
		s.failed = s.failed || string(raw[value:to]) == "error"
		return
	case "error":
		s.failed = true
	case "data":
	default:
		return
	}
	switch s.lines++; s.lines {
	case 1:
		s.from, s.to = value, to
	case 2:
		s.joined = append(append(append(s.joined[:0], raw[s.from:s.to]...), '\n'), raw[value:to]...)
	default:
		s.joined = append(append(s.joined, '\n'), raw[value:to]...)
	}
}

// take ends the event that has begun. One without data is none.
func (s *sseScanner) take(raw []byte) (sseEvent, bool) {
	ev := sseEvent{at: s.from, failed: s.failed}
	switch {
	case s.lines == 1:
		ev.data = raw[s.from:s.to]
	case s.lines > 1:
		ev.data, ev.at = s.joined, -1
	}
	s.lines, s.failed = 0, false
	return ev, len(ev.data) > 0
}

// isEventStream tells a stream of events from a JSON text by its beginning.
func isEventStream(raw []byte) bool {
	raw = bytes.TrimLeft(bytes.TrimPrefix(raw, []byte(byteOrderMark)), "\r\n")
	for _, field := range []string{"data", "event", "error", "id", "retry", ""} {
		if after, ok := bytes.CutPrefix(raw, []byte(field)); ok && len(after) > 0 && after[0] == ':' {
			return true
		}
	}
	return false
}

// A stream is an answer that comes in events.
type stream struct {
	answer *Answer
	scan   sseScanner
}

// feed reads the events that have come in full. raw is everything since the
// beginning; end says that nothing more will come. It tells whether there was
// a token among them.
func (s *stream) feed(raw []byte, end bool) (token bool) {
	a := s.answer
	a.Raw, a.Streamed = raw, true
	text, tokens := len(a.text), len(a.Tokens)
	for {
		ev, ok := s.scan.next(raw, end)
		if !ok {
			break
		}
		s.event(ev)
	}
	if end {
		a.Cut = a.Cut || !a.ended
		a.finish()
	}
	return len(a.text) > text || len(a.Tokens) > tokens
}

func (s *stream) event(ev sseEvent) {
	a := s.answer
	switch {
	case string(bytes.TrimSpace(ev.data)) == "[DONE]":
		a.ended = true
		return
	case ev.failed:
		a.Events++
		if a.InBand == "" {
			a.InBand = bounded(ev.data)
		}
		return
	}
	before := a.decodeErr
	a.Events++
	a.document(ev.data, ev.at)
	if ev.torn && a.decodeErr != nil && before == nil {
		a.decodeErr, a.decodeRaw, a.Cut = nil, nil, true // not wrong, but half
	}
}

package systemd

import "fmt"

// Bounds of what is held of lines that journald split: of one, and how many at a time.
const (
	maxJoined      = 1 << 20
	maxSplitLines  = 64
	lineBreakField = "_LINE_BREAK"
)

// splitLines puts lines together again that journald split because they are longer than LineMax= (48 KiB). It marks
// every piece but the last one; the pieces of one stream follow each other, with others between them.
type splitLines struct {
	open  map[string]*Entry // by stream
	bytes map[string]int    // that are left out
	order []string          // of the streams, the oldest first
}

// add takes the next entry and gives those that are whole with it: none where it is a piece with more to come. A whole
// line stands where its last piece does.
func (s *splitLines) add(e Entry) []Entry {
	stream := e.Fields["_STREAM_ID"] + " " + e.Boot
	more := e.Fields["_TRANSPORT"] == "stdout" && e.Fields[lineBreakField] == "line-max"
	first, follows := s.open[stream]
	if !more && !follows {
		return []Entry{e}
	}
	var done []Entry
	if follows && first.PID != e.PID {
		done, follows = append(done, s.end(stream, "its process wrote no more of it")), false
	}
	if follows {
		e = s.join(stream, *first, e)
	}
	if !more {
		s.forget(stream)
		return append(done, e)
	}
	if !follows && len(s.order) == maxSplitLines {
		done = append(done, s.end(s.order[0], "too many long lines were written at a time"))
	}
	if s.open == nil {
		s.open, s.bytes = map[string]*Entry{}, map[string]int{}
	}
	if !follows {
		s.order = append(s.order, stream)
	}
	s.open[stream] = &e
	return done
}

// join puts a piece behind those before it.
func (s *splitLines) join(stream string, first, next Entry) Entry {
	keep := min(len(next.Message), maxJoined-len(first.Message))
	if left := len(next.Message) - keep; left > 0 {
		s.bytes[stream] += left
	}
	missing := next.Missing
	if missing == "" {
		missing = first.Missing
	}
	next.Message = first.Message + next.Message[:keep]
	if left := s.bytes[stream]; left > 0 {
		missing = fmt.Sprintf("the line is longer than 1 MiB: %d bytes are left out", left)
	} else {
		next.Raw = append(append(first.Raw[:len(first.Raw):len(first.Raw)], '\n'), next.Raw...)
	}
	next.Missing = missing
	return next
}

// end gives up waiting for the rest of a line.
func (s *splitLines) end(stream, why string) Entry {
	e := *s.open[stream]
	s.forget(stream)
	e.Missing = "the end of the line: " + why
	return e
}

func (s *splitLines) forget(stream string) {
	delete(s.open, stream)
	delete(s.bytes, stream)
	for i, one := range s.order {
		if one == stream {
			s.order = append(s.order[:i], s.order[i+1:]...)
			return
		}
	}
}

// endAll gives up waiting for the rest of every line.
func (s *splitLines) endAll(why string) []Entry {
	var all []Entry
	for len(s.order) > 0 {
		all = append(all, s.end(s.order[0], why))
	}
	return all
}

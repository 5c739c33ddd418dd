package neighbour

import (
	"bytes"
	"os"

	"github.com/1bit-systems/pkg/engine"
)

// A tail reads what is appended to a file from now on.
type tail struct {
	path   string
	offset int64
	rest   []byte // of a line whose end has not come
	long   bool   // that line is too long and is left out
}

const (
	tailBlock = 256 << 10
	maxLine   = 64 << 10
)

func newTail(path string) *tail {
	t := &tail{path: path}
	if info, err := os.Stat(path); err == nil {
		t.offset = info.Size()
	}
	return t
}

// read gives what is new in the file to f, in pieces.
func (t *tail) read(f func([]byte)) {
	file, err := os.Open(t.path)
	if err != nil {
		return // the program has written nothing yet
	}
	defer file.Close()
	buf := make([]byte, tailBlock)
	for {
		n, err := file.ReadAt(buf, t.offset)
		t.offset += int64(n)
		if n > 0 {
			f(buf[:n])
		}
		if err != nil || n == 0 {
			return // io.EOF, or what the next look will meet again
		}
	}
}

// lines gives the new whole lines to f, without their ends.
func (t *tail) lines(f func(string)) {
	t.read(func(p []byte) {
		for len(p) > 0 {
			end := bytes.IndexByte(p, '\n')
			if end < 0 {
				t.keep(p)
				return
			}
			t.keep(p[:end])
			if !t.long {
				f(string(bytes.TrimRight(t.rest, "\r")))
			}
			t.rest, t.long = t.rest[:0], false
			p = p[end+1:]
		}
	})
}

// finish gives a last line without an end to f, once no more can come.
func (t *tail) finish(f func(string)) {
	if t.lines(f); len(t.rest) > 0 && !t.long {
		f(string(t.rest))
	}
	t.rest = t.rest[:0]
}

func (t *tail) keep(p []byte) {
	if t.long = t.long || len(t.rest)+len(p) > maxLine; !t.long {
		t.rest = append(t.rest, p...)
	}
}

// A logReader finds what an engine's log says went wrong: each kind of trouble once, with its first line.
type logReader struct {
	tail   *tail
	reader engine.LogReader
	found  tally
}

func newLogReader(path string) *logReader { return &logReader{tail: newTail(path)} }

func (l *logReader) look() {
	l.tail.read(func(p []byte) {
		l.reader.Feed(p, 0, l.event)
	})
}

func (l *logReader) finish() []string {
	l.look()
	l.reader.Flush(0, l.event)
	return l.found.list()
}

func (l *logReader) event(e engine.LogEvent) {
	switch e.Kind {
	case engine.LogNaN, engine.LogAbort, engine.LogAlloc, engine.LogDevice, engine.LogBind:
		l.found.add(string(e.Kind), e.Detail)
	}
}

package systemd

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// File is a unit file or drop-in as systemd reads it.
type File struct {
	Path  string
	Lines []Line // in order; comments, section headers and lines without "=" are not among them
	// Empty says that there is not a byte in it. A unit file like that masks the unit, and so
	// does a symbolic link to /dev/null; a drop-in hides the weaker one of the same name.
	Empty bool
	// Problems are the lines that systemd passes over, and where it stops reading.
	Problems []Problem
}

// Line is one assignment, KEY=VALUE, of a unit file.
type Line struct {
	Section string // as written, "" before the first header; systemd takes only exact names
	Key     string
	Value   string // of a continued line the parts, with a space for each line end
	Number  int    // of the line on which it begins; 1 is the first
}

// Problem is something in a file that systemd does not take as its writer meant it.
type Problem struct {
	File  string
	Line  int // 0: the file as a whole
	What  string
	Fatal bool // the rest of the file is lost, or the unit cannot start
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.What
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What)
}

const (
	whitespace    = " \t\n\r"
	commentStarts = "#;"
	byteOrderMark = "\ufeff"
	maxLine       = 1 << 20 // systemd's LONG_LINE_MAX, in bytes
	maxFile       = 64 << 20
)

// ErrTooBig is returned for a file that is too big to be one of systemd's.
var ErrTooBig = errors.New("larger than 64 MiB")

// ParseFile reads the bytes of a unit file as systemd's config_parse does: a line ends at LF, CR,
// NUL or a pair of them; a backslash at its end continues it, and comments may stand in between;
// one that is a MiB or longer ends the reading. Foreign sections and keys are kept as they are.
// The error is ErrTooBig, wrapped with the path; whatever else is wrong with the bytes, systemd
// starts the unit without them, and File.Problems tells.
func ParseFile(path string, data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("read %s: %w", path, ErrTooBig)
	}
	p := fileParser{file: &File{Path: path, Empty: len(data) == 0}, rest: data}
	p.run()
	return p.file, nil
}

// Get returns the assignments of a key in a section, in order.
func (f *File) Get(section, key string) []Line {
	var lines []Line
	for _, line := range f.Lines {
		if line.Section == section && line.Key == key {
			lines = append(lines, line)
		}
	}
	return lines
}

// fileParser is the state of one reading.
type fileParser struct {
	file    *File
	rest    []byte
	section string
}

func (p *fileParser) problem(line int, fatal bool, what string) {
	p.file.Problems = append(p.file.Problems, Problem{File: p.file.Path, Line: line, What: what, Fatal: fatal})
}

func (p *fileParser) run() {
	var joined []byte // the continued line so far
	var start int     // where it began
	var marked bool   // a byte order mark was seen
	for number := 1; len(p.rest) > 0; number++ {
		line, tooLong := p.readLine()
		if tooLong {
			p.problem(number, true, "line too long")
			return
		}
		if start := bytes.TrimLeft(line, whitespace); len(start) > 0 && in(commentStarts, start[0]) {
			if opensQuote(joined) {
				p.problem(number, false, "a comment, although it stands between quotes: "+string(bytes.TrimRight(start, whitespace)))
			}
			continue
		}
		if rest, ok := bytes.CutPrefix(line, []byte(byteOrderMark)); ok && !marked {
			line, marked = rest, true
		}
		if joined == nil {
			start = number
		} else if len(joined)+len(line) > maxLine {
			p.problem(number, true, "continued line too long")
			return
		}
		whole := append(joined, line...)
		if endsEscaped(whole) {
			whole[len(whole)-1] = ' '
			joined = whole
			continue
		}
		joined = nil
		if !p.parseLine(string(whole), start) {
			return
		}
	}
	if joined != nil {
		p.parseLine(string(joined), start)
	}
}

// opensQuote says whether a value so far ends between quotes.
func opensQuote(value []byte) bool {
	var quote byte
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		}
	}
	return quote != 0
}

// endsEscaped says whether the last byte of a line is a backslash that no backslash escapes.
func endsEscaped(line []byte) bool {
	n := 0
	for n < len(line) && line[len(line)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// readLine takes the next line off, without its end. The three bytes that end a line may come
// together, each once, and a NUL last.
func (p *fileParser) readLine() (line []byte, tooLong bool) {
	end := bytes.IndexAny(p.rest, "\n\r\x00")
	if end < 0 {
		end = len(p.rest)
	}
	if end >= maxLine {
		return nil, true
	}
	line = p.rest[:end]
	var seen [3]bool
	for end < len(p.rest) {
		kind := strings.IndexByte("\n\r\x00", p.rest[end])
		if kind < 0 || seen[kind] || seen[2] {
			break
		}
		seen[kind] = true
		end++
	}
	p.rest = p.rest[end:]
	return line, false
}

// parseLine takes one whole line; false ends the reading.
func (p *fileParser) parseLine(text string, number int) bool {
	text = strings.Trim(text, whitespace)
	switch {
	case text == "":
		return true
	case !validUTF8(text):
		p.problem(number, true, "not UTF-8")
		return false
	case text[0] == '[':
		return p.parseHeader(text, number)
	}
	key, value, ok := strings.Cut(text, "=")
	switch {
	case !ok:
		p.problem(number, false, "no = in this line")
		return true
	case key == "":
		p.problem(number, false, "nothing before the =")
		return true
	}
	if p.section == "" {
		p.problem(number, false, "assignment before the first section")
	}
	p.file.Lines = append(p.file.Lines, Line{
		Section: p.section,
		Key:     strings.Trim(key, whitespace),
		Value:   strings.Trim(value, whitespace),
		Number:  number,
	})
	return true
}

func (p *fileParser) parseHeader(text string, number int) bool {
	name, ok := strings.CutSuffix(text[1:], "]")
	if !ok {
		p.problem(number, true, "section header without ]")
		return false
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || strings.ContainsRune("\"'\\\x7f", r) }) {
		p.problem(number, true, "bad characters in a section header")
		return false
	}
	p.section = name
	return true
}

// validUTF8 is systemd's idea of it, which leaves out the code points that are no characters.
func validUTF8(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r >= 0xfdd0 && r <= 0xfdef || r&0xfffe == 0xfffe
	})
}

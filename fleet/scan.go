package fleet

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/systemd"
)

// scan tells from the bytes of unit files which services may have to do with a package or an engine, so that the
// manager need not be asked about every other one. It errs on the side of asking.
type scan struct {
	tree  *unitTree       // reads files and follows links
	files map[string]bool // what was found in a file
}

func newScan(homes []string) *scan {
	return &scan{&unitTree{homes: homes, links: map[string]string{}}, map[string]bool{}}
}

// marks are words that stand in whatever names a package's folder, our variables or a program of an engine.
var marks = [...]string{"1bit", "ONEBIT_", "llama-", "/zinc"}

// file tells whether a unit file, or an environment file that it names, may concern us. One that cannot be read may.
func (s *scan) file(path string) bool {
	found, seen := s.files[path]
	if !seen {
		data := s.tree.read(path, func(fs.FileInfo) bool { return false })
		found = len(s.tree.unread) > 0 || s.text(data) || s.environmentFiles(data)
		s.tree.unread = nil
		s.files[path] = found
	}
	return found
}

// text tells whether a text may name a package or an engine: in so many words, by an escape, or over a link.
func (s *scan) text(data []byte) bool {
	if bytes.ContainsAny(data, `"'`) { // quotes may stand in the middle of a word
		data = bytes.Map(func(r rune) rune {
			if r == '"' || r == '\'' {
				return -1
			}
			return r
		}, data)
	}
	for _, mark := range marks {
		if bytes.Contains(data, []byte(mark)) {
			return true
		}
	}
	return s.escaped(data) || s.linked(data)
}

// escaped tells whether a character is written by its number.
func (s *scan) escaped(data []byte) bool {
	for i := bytes.IndexByte(data, '\\'); i >= 0 && i+1 < len(data); {
		if c := data[i+1]; c >= '0' && c <= '7' || c == 'x' || c == 'u' || c == 'U' {
			return true
		}
		next := bytes.IndexByte(data[i+1:], '\\')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

// linked tells whether a path among the words may lead into a package over links, or cannot be known.
func (s *scan) linked(data []byte) bool {
	for _, word := range bytes.FieldsFunc(data, func(r rune) bool { return strings.ContainsRune(endsPath, r) }) {
		path := strings.TrimLeft(string(word), "-@+!~")
		if strings.Contains(path, "/") && specifies(path) {
			return true
		}
		for _, one := range s.tree.expand(path) {
			if strings.Contains(s.tree.resolve(one), packager.DirPrefix) {
				return true
			}
		}
	}
	return false
}

// specifies tells whether a path has a specifier in it, other than that of the home folder at its beginning.
func specifies(path string) bool {
	return strings.Contains(strings.ReplaceAll(strings.TrimPrefix(path, "%h/"), "%%", ""), "%")
}

// environmentFiles tells the same of the files that a unit file has systemd read at every start.
func (s *scan) environmentFiles(data []byte) bool {
	if !bytes.Contains(data, []byte("EnvironmentFile")) {
		return false
	}
	read := systemd.NewEnvironmentReader()
	for line := range bytes.Lines(data) {
		value, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("EnvironmentFile"))
		if !ok {
			continue
		}
		value = bytes.TrimLeft(value, " \t=-")
		if specifies(string(value)) || bytes.HasSuffix(value, []byte(`\`)) {
			return true
		}
		for _, pattern := range s.tree.expand(string(value)) {
			found, err := read(pattern)
			if err != nil {
				if !absent(err) {
					return true
				}
				continue
			}
			if slices.ContainsFunc(found, func(one systemd.EnvironmentBytes) bool { return one.Err != nil || s.text(one.Data) }) {
				return true
			}
		}
	}
	return false
}

// process tells whether a process may run from a package or be an engine.
func (s *scan) process(p procInfo, pl *place) bool {
	if engineProgram(p.exe) || slices.ContainsFunc(p.argv[:min(3, len(p.argv))], func(arg string) bool {
		_, ok := pl.at(arg)
		return ok || engineProgram(arg)
	}) {
		return true
	}
	if _, ok := pl.inEnv(p.env, nil); ok {
		return true
	}
	_, ok := pl.inProcess(p)
	return ok
}

// enginePrograms are the names of an engine's own programs, by which a unit is known as one that is not ours.
var enginePrograms = []string{"llama-server", "llama-cli", "llama-bench", "llama-perplexity", "zinc"}

// engineProgram tells whether a path or a name is that of an engine's program.
func engineProgram(path string) bool {
	path, _ = undeleted(path)
	return slices.Contains(enginePrograms, filepath.Base(path))
}

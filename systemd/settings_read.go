package systemd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Edit is a change of one unit file or drop-in that has not been made yet.
type Edit struct {
	Path string
	Data []byte // the bytes as if written
	Gone bool   // as if removed; Data is not looked at
}

// EnvironmentReader finds and reads the files that the pattern of an EnvironmentFile= matches,
// in order. No match is fs.ErrNotExist.
type EnvironmentReader func(pattern string) ([]EnvironmentBytes, error)

// EnvironmentBytes is one environment file.
type EnvironmentBytes struct {
	Path string
	Data []byte
	Err  error // it could not be read
}

// ReadSettings reads the files that the manager names for a unit, and the environment files that
// those name, and works out what they amount to. With edits it is as if these were already
// written: a drop-in at a new place is merged where its name puts it. A file that is not there or
// not a file is left out, with a Problem.
//
// The list of drop-ins is the one that is loaded; Unit.Rescan makes it the one of the disk.
func ReadSettings(u *Unit, specifiers Specifiers, edits ...Edit) (*Settings, error) {
	paths := slices.Clone(u.DropInPaths)
	edited := map[string]Edit{}
	for _, edit := range edits {
		var err error
		if paths, err = u.apply(paths, edit); err != nil {
			return nil, fmt.Errorf("work out the settings of %s: %w", u.ID, err)
		}
		edited[edit.Path] = edit
	}
	if u.FragmentPath != "" && !edited[u.FragmentPath].Gone {
		paths = append([]string{u.FragmentPath}, paths...)
	}
	var files []*File
	var lost []Problem
	for _, name := range paths {
		edit, ok := edited[name]
		data := edit.Data
		if !ok {
			var err error
			data, err = readFile(name)
			switch {
			case errors.Is(err, fs.ErrPermission): // systemd may well be allowed to
				return nil, fmt.Errorf("read the settings of %s: %w", u.ID, err)
			case err != nil:
				lost = append(lost, Problem{File: name, What: fmt.Sprintf("left out: %v", err)})
				continue
			}
		}
		file, err := ParseFile(name, data)
		if err != nil {
			return nil, fmt.Errorf("read the settings of %s: %w", u.ID, err)
		}
		files = append(files, file)
	}
	settings := Effective(files, ReadEnvironmentFiles, specifiers.forUnit(u.ID, u.FragmentPath))
	settings.Problems = append(lost, settings.Problems...)
	return settings, nil
}

// Effective works out what files amount to: the unit file, then its drop-ins as they are merged.
// The specifiers must be those of the unit; what they lack becomes unsure.
func Effective(files []*File, read EnvironmentReader, specifiers Specifiers) *Settings {
	m := merger{specifiers: specifiers, settings: &Settings{files: files}}
	for _, file := range files {
		m.settings.Problems = append(m.settings.Problems, file.Problems...)
		for _, line := range file.Lines {
			if line.Section == "Service" {
				m.file, m.line = file.Path, line.Number
				m.take(line.Key, line.Value)
			}
		}
	}
	m.readFiles(read)
	m.settings.order = slices.Concat(m.pass, m.plain, m.fromFiles, m.unset)
	return m.settings
}

// merger is the state of one reading over all files of a unit.
type merger struct {
	specifiers Specifiers
	settings   *Settings
	file       string // of the line that is read
	line       int

	pass, plain, fromFiles, unset []Assignment
	files                         []Assignment // Value is the pattern
}

func (m *merger) problem(fatal bool, format string, args ...any) {
	m.settings.Problems = append(m.settings.Problems,
		Problem{File: m.file, Line: m.line, What: fmt.Sprintf(format, args...), Fatal: fatal})
}

// take takes one line of the [Service] section.
func (m *merger) take(key, value string) {
	switch key {
	case "Environment":
		if value == "" {
			m.plain = append(m.plain, Assignment{File: m.file, Line: m.line, Kind: KindReset})
			return
		}
		m.words(value, true, func(word, unsure string) bool {
			name, content, ok := splitAssignment(word)
			if ok {
				m.plain = append(m.plain, m.assignment(KindEnvironment, name, content, unsure))
			}
			return ok
		})
	case "PassEnvironment":
		if value == "" {
			m.pass = nil
			return
		}
		m.words(value, false, func(word, unsure string) bool {
			if validName(word) {
				m.pass = append(m.pass, m.assignment(KindPassEnvironment, word, "",
					firstOf(unsure, "its value is the one that the manager has")))
			}
			return validName(word)
		})
	case "UnsetEnvironment":
		if value == "" {
			m.unset = nil
			return
		}
		m.words(value, true, func(word, unsure string) bool {
			name, content, only := splitAssignment(word)
			if !only && !validName(word) {
				return false
			}
			a := m.assignment(KindUnsetEnvironment, name, content, unsure)
			a.only = only
			m.unset = append(m.unset, a)
			return true
		})
	case "EnvironmentFile":
		m.takeFile(value)
	}
}

func (m *merger) assignment(kind Kind, key, value, unsure string) Assignment {
	return Assignment{Key: key, Value: value, File: m.file, Line: m.line, Kind: kind, Unsure: unsure}
}

// words splits a line, expands every word and hands it on; what comes after a quote that is not
// closed is lost, and so is a word that has a bad specifier or is refused.
func (m *merger) words(line string, unescape bool, take func(word, unsure string) bool) {
	for {
		word, rest, more, err := nextWord(line, unescape)
		if err != nil {
			m.problem(false, "from here on ignored, %v: %s", err, line)
			return
		} else if !more {
			return
		}
		line = rest
		value, unsure, ok := m.specifiers.expand(word)
		if !ok {
			m.problem(false, "ignored, a %% that should be doubled: %s", word)
		} else if !take(value, unsure) {
			m.problem(false, "ignored, not a valid assignment: %s", word)
		}
	}
}

func (m *merger) takeFile(value string) {
	if value == "" {
		m.files = nil
		return
	}
	pattern, unsure, ok := m.specifiers.expand(value)
	if !ok || !path.IsAbs(strings.TrimPrefix(pattern, "-")) && unsure == "" {
		m.problem(false, "ignored, not an absolute path: %s", value)
		return
	}
	m.files = append(m.files, m.assignment(KindEnvironmentFile, "", pattern, unsure))
}

// readFiles reads the environment files that are left after the resets.
func (m *merger) readFiles(read EnvironmentReader) {
	for _, from := range m.files {
		m.file, m.line = from.File, from.Line
		if from.Unsure != "" {
			m.cannotRead("which file %s is, is not certain: %s", from.Value, from.Unsure)
			continue
		}
		pattern, optional := strings.CutPrefix(from.Value, "-")
		found, err := read(pattern)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if !optional {
				m.problem(true, "the unit does not start, there is no environment file %s", pattern)
			}
		case err != nil:
			m.cannotRead("environment file %s: %v", pattern, err)
		}
		for _, one := range found {
			m.readPairs(one, optional)
		}
	}
}

func (m *merger) readPairs(one EnvironmentBytes, optional bool) {
	pairs, err := []Pair(nil), one.Err
	if err == nil {
		pairs, err = ParseEnvironmentFile(one.Path, one.Data)
	}
	switch {
	case errors.Is(err, ErrEnvironmentFile), errors.Is(err, fs.ErrNotExist):
		if optional {
			m.problem(false, "left out: %v", err)
		} else {
			m.problem(true, "the unit does not start: %v", err)
		}
	case err != nil:
		m.cannotRead("environment file %v", err)
	}
	for _, pair := range pairs {
		m.fromFiles = append(m.fromFiles, Assignment{Key: pair.Key, Value: pair.Value, Unsure: pair.Unsure,
			File: one.Path, Line: pair.Line, Kind: KindEnvironmentFile})
	}
}

// cannotRead notes an environment file that we cannot read: it may set any variable.
func (m *merger) cannotRead(format string, args ...any) {
	m.problem(false, format, args...)
	m.settings.unread = firstOf(m.settings.unread, fmt.Sprintf(format, args...))
}

// ReadEnvironmentFiles is the EnvironmentReader of the real file system. It matches a pattern as
// glob(3) does, for which a leading dot is not matched by a wildcard.
func ReadEnvironmentFiles(pattern string) ([]EnvironmentBytes, error) {
	paths := []string{pattern}
	if strings.ContainsAny(pattern, `*?[\`) {
		var err error
		paths, err = filepath.Glob(strings.ReplaceAll(pattern, "[!", "[^"))
		if err != nil {
			paths = []string{pattern}
		}
		paths = slices.DeleteFunc(paths, func(found string) bool { return hidden(pattern, found) })
		slices.Sort(paths)
	}
	var files []EnvironmentBytes
	for _, one := range paths {
		data, err := readFile(one)
		if len(paths) == 1 && errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		files = append(files, EnvironmentBytes{Path: one, Data: data, Err: err})
	}
	if len(files) == 0 {
		return nil, &fs.PathError{Op: "glob", Path: pattern, Err: fs.ErrNotExist}
	}
	return files, nil
}

// hidden says whether some part of a found path begins with a dot that the pattern does not spell.
func hidden(pattern, found string) bool {
	parts, want := strings.Split(found, "/"), strings.Split(pattern, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, ".") && i < len(want) && !strings.HasPrefix(want[i], ".") && !strings.HasPrefix(want[i], `\.`) {
			return true
		}
	}
	return false
}

// readFile reads a file that ought to be a regular one, without waiting for a pipe or reading a
// device for ever. A character device is taken for /dev/null.
func readFile(name string) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeCharDevice != 0:
		return nil, nil
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: %w", name, ErrTooBig)
	}
	return data, nil
}

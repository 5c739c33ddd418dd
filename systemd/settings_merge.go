package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Effective works out what files amount to: the unit file, then its drop-ins as they are merged.
// The specifiers must be those of the unit; what they lack becomes unsure.
func Effective(files []*File, read EnvironmentReader, specifiers Specifiers) *Settings {
	m := merger{specifiers: specifiers, settings: &Settings{doubts: map[string]Problem{}}}
	for _, file := range files {
		m.settings.Problems = append(m.settings.Problems, file.Problems...)
		m.settings.files = append(m.settings.files, m.takeAll(file))
	}
	m.checkSearchPath()
	m.checkUnit()
	m.readFiles(read)
	m.settings.order = slices.Concat(m.pass, m.plain, m.fromFiles, m.unset)
	return m.settings
}

// takeAll takes the lines of a file, and returns it without those that systemd does not get to.
func (m *merger) takeAll(file *File) *File {
	for i, line := range file.Lines {
		m.file, m.line = file.Path, line.Number
		if line.Section == "Service" && !m.take(line.Key, line.Value) {
			cut := *file
			cut.Lines = file.Lines[:i]
			return &cut
		}
		m.checkPlace(line)
	}
	return file
}

// merger is the state of one reading over all files of a unit.
type merger struct {
	specifiers Specifiers
	settings   *Settings
	file       string // of the line that is read
	line       int

	pass, plain, fromFiles, unset []Assignment
	files                         []Assignment // Value is the pattern
	stops                         int          // commands of ExecStop=
}

func (m *merger) problem(fatal bool, format string, args ...any) {
	m.settings.Problems = append(m.settings.Problems,
		Problem{File: m.file, Line: m.line, What: fmt.Sprintf(format, args...), Fatal: fatal})
}

// take takes one line of the [Service] section. When it returns false systemd reads the file no
// further.
func (m *merger) take(key, value string) bool {
	switch key {
	case "ExecStart", "ExecStartPre", "ExecStartPost", "ExecCondition", "ExecReload", "ExecStop", "ExecStopPost":
		return m.takeCommands(key, value)
	case "WorkingDirectory":
		return m.takeFolder(value)
	case "User", "Group", "SupplementaryGroups":
		return m.takePerson(key, value)
	case "DynamicUser", "RootDirectory", "RootImage", "RootVerity", "PIDFile":
		return m.takePlace(key, value)
	case "Environment":
		if value == "" {
			m.plain = append(m.plain, m.assignment(KindReset, "", "", ""))
			return true
		}
		m.words(value, assignmentRule, func(word, unsure string) bool {
			name, content, ok := splitAssignment(word)
			if ok {
				m.plain = append(m.plain, m.assignment(KindEnvironment, name, content, unsure))
			}
			return ok
		})
	case "PassEnvironment":
		if value == "" {
			m.pass = m.reset(m.pass)
			return true
		}
		m.words(value, nameRule, func(word, unsure string) bool {
			if validName(word) {
				m.pass = append(m.pass, m.assignment(KindPassEnvironment, word, "",
					firstOf(unsure, "its value is the one that the manager has")))
			}
			return validName(word)
		})
	case "UnsetEnvironment":
		if value == "" {
			m.unset = m.reset(m.unset)
			return true
		}
		m.words(value, assignmentRule, func(word, unsure string) bool {
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
	return true
}

// reset takes back what an empty value takes back; where it is not certain that systemd gets to
// it, what it would take back is no more certain.
func (m *merger) reset(list []Assignment) []Assignment {
	doubt := m.settings.doubted(m.file, m.line)
	if doubt == "" {
		return nil
	}
	for i := range list {
		list[i].Unsure = firstOf(list[i].Unsure, doubt)
	}
	return list
}

func (m *merger) assignment(kind Kind, key, value, unsure string) Assignment {
	return Assignment{Key: key, Value: value, File: m.file, Line: m.line, Kind: kind,
		Unsure: firstOf(m.settings.doubted(m.file, m.line), unsure)}
}

// words splits a line, expands every word and hands it on; what comes after a quote that is not
// closed is lost, and so is a word that has a bad specifier or is refused.
func (m *merger) words(line string, rule wordRule, take func(word, unsure string) bool) {
	for {
		word, rest, more, err := nextWord(line, rule)
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
		m.files = m.reset(m.files)
		return
	}
	pattern, unsure, ok := m.specifiers.expand(value)
	bad := badPath(strings.TrimPrefix(pattern, "-"))
	switch {
	case !ok:
		bad = "a % that should be doubled"
	case unsure != "":
		bad = ""
	}
	if bad != "" {
		m.problem(false, "ignored, %s: %s", bad, value)
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
				m.refuse(m.file, m.line, "there is no environment file %s", pattern)
			}
		case err != nil:
			m.cannotRead("environment file %s: %v", pattern, err)
		}
		since := len(m.fromFiles)
		for _, one := range found {
			m.readPairs(one, optional)
		}
		unorder(m.fromFiles[since:], found)
	}
}

// unorder marks what two files of one pattern set, where it is not certain which one comes first.
func unorder(set []Assignment, found []EnvironmentBytes) {
	if len(found) == 0 || found[0].Unordered == "" {
		return
	}
	in := map[string]string{} // by variable the file, "" for several
	for _, a := range set {
		if file, have := in[a.Key]; have && file != a.File {
			in[a.Key] = ""
		} else {
			in[a.Key] = a.File
		}
	}
	for i, a := range set {
		if in[a.Key] == "" {
			set[i].Unsure = firstOf(a.Unsure, found[0].Unordered)
		}
	}
}

// badPath says why systemd takes no path like this, "" when it does.
func badPath(name string) string {
	switch parts := strings.Split(name, "/"); {
	case !path.IsAbs(name):
		return "not an absolute path"
	case slices.Contains(parts, ".."):
		return "there is a .. in the path"
	case len(path.Clean(name)) >= 4096 || slices.ContainsFunc(parts, func(part string) bool { return len(part) > 255 }):
		return "too long for a path"
	}
	return ""
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
			m.refuse(m.file, m.line, "%v", err)
		}
	case errors.Is(err, ErrDisputedFile):
		m.problem(false, "perhaps left out: %v", err)
		if !optional {
			m.settings.disputed = firstOf(m.settings.disputed, err.Error())
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

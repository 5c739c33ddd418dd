package systemd

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// flaw is a bug of a reader, put into one stage of ours: what the others do is right.
type flaw struct {
	skip     func(o *observation, owner string) bool // the drop-ins in the folder of owner
	order    func(paths []string)                    // of the drop-ins
	bytes    func(text string) string                // of a file, before it is split into lines
	line     func(line Line) (again Line, keep bool) // of a file, after that
	settings func(s *Settings)                       // after the files are merged
}

// readWith is read with a flaw.
func readWith(bug flaw) reading {
	return func(o *observation) (outcome, error) {
		paths := slices.Clone(o.unit.DropInPaths)
		if bug.skip != nil {
			paths = slices.DeleteFunc(paths, func(path string) bool { return bug.skip(o, DropInOwner(path)) })
		}
		if bug.order != nil {
			bug.order(paths)
		}
		var files []*File
		for _, path := range append([]string{o.unit.FragmentPath}, paths...) {
			data, err := readFile(path)
			if err != nil {
				return outcome{}, err
			}
			if bug.bytes != nil {
				data = []byte(bug.bytes(string(data)))
			}
			file, err := ParseFile(path, data)
			if err != nil {
				return outcome{}, err
			}
			if bug.line != nil {
				var lines []Line
				for _, line := range file.Lines {
					if again, keep := bug.line(line); keep {
						lines = append(lines, again)
					}
				}
				file.Lines = lines
			}
			files = append(files, file)
		}
		settings := Effective(files, ReadEnvironmentFiles, o.specifiers.forUnit(o.unit.ID, o.unit.FragmentPath))
		if bug.settings != nil {
			bug.settings(settings)
		}
		return outcomeOf(settings, o), nil
	}
}

// inValues makes the flaw of a reader that takes some text of a value for another one.
func inValues(old, text string, keys ...string) flaw {
	return flaw{line: func(line Line) (Line, bool) {
		if slices.Contains(keys, line.Key) {
			line.Value = strings.ReplaceAll(line.Value, old, text)
		}
		return line, true
	}}
}

// without makes the flaw of a reader that passes over an assignment.
func withoutLine(key, value string) flaw {
	return flaw{line: func(line Line) (Line, bool) { return line, line.Key != key || line.Value != value }}
}

// inWords makes the flaw of a reader that takes a word of a command for another one before
// variables are replaced.
func inWords(change func(word string) string) flaw {
	return flaw{settings: func(s *Settings) {
		for i := range s.start {
			s.start[i].Argv = slices.Clone(s.start[i].Argv)
			for j, word := range s.start[i].Argv {
				s.start[i].Argv[j] = change(word)
			}
		}
	}}
}

// inOrder makes the flaw of a reader that has another idea of what wins.
func inOrder(force func(a Assignment) int) flaw {
	return flaw{settings: func(s *Settings) {
		slices.SortStableFunc(s.order, func(a, b Assignment) int { return force(a) - force(b) })
	}}
}

var (
	commentInside  = regexp.MustCompile(`\\(\r\n|\n\r|\n|\r|\x00)[ \t]*[#;][^\r\n\x00]*(\r\n|\n\r|\n|\r|\x00)`)
	commentEscaped = regexp.MustCompile(`(?m)^([ \t]*[#;][^\r\n\x00]*)\\(\r\n|\n)`)
	continuation   = regexp.MustCompile(`\\(\r\n|\n\r|\n|\r)`)
)

// flawedReadings are bugs that readers of unit files have had.
func flawedReadings() map[string]flaw {
	return map[string]flaw{
		"a comment ends a continuation": {bytes: func(text string) string {
			return commentInside.ReplaceAllString(text, "\n")
		}},
		"a comment inside a continuation is part of the value": {bytes: func(text string) string {
			return regexp.MustCompile(`(\\(?:\r\n|\n))([ \t]*)([#;])`).ReplaceAllString(text, `$1$2""$3`)
		}},
		"a backslash at its end continues a comment": {bytes: func(text string) string {
			return commentEscaped.ReplaceAllString(text, "$1 ")
		}},
		"a continuation joins without a space": {bytes: func(text string) string {
			return continuation.ReplaceAllString(text, "")
		}},
		"only LF ends a line": {bytes: func(text string) string {
			return strings.ReplaceAll(strings.ReplaceAll(text, "\r", " "), "\x00", " ")
		}},
		"a byte order mark is part of the first line": {bytes: func(text string) string {
			return strings.Replace(text, "\ufeff", "\ufeff;", 1)
		}},
		"white space in a section header does not count": {bytes: func(text string) string {
			return strings.ReplaceAll(text, "[Service ]", "[Service]")
		}},
		"sections do not matter": {line: func(line Line) (Line, bool) { line.Section = "Service"; return line, true }},
		"case does not matter": {line: func(line Line) (Line, bool) {
			if strings.EqualFold(line.Key, "Environment") {
				line.Key = "Environment"
			}
			return line, true
		}},
		"what is not UTF-8 is read": {bytes: func(text string) string { return strings.ToValidUTF8(text, "?") }},

		"an instance has no drop-ins of a dash prefix": {skip: func(o *observation, owner string) bool {
			return strings.Contains(o.unit.ID, "@") && strings.HasSuffix(owner, "-.service")
		}},
		"a dash prefix has no instances": {skip: func(o *observation, owner string) bool {
			return strings.Contains(owner, "-@") && owner != o.unit.ID && owner != o.set.fragment
		}},
		"a link to a template is no name of an instance": {skip: func(o *observation, owner string) bool {
			return o.set.links[owner] != "" && strings.Contains(owner, "@.")
		}},
		"a link to a link is no name": {skip: func(o *observation, owner string) bool {
			target := o.set.links[owner]
			return target != "" && o.set.links[target] != ""
		}},
		"drop-ins by folder":           {order: func(paths []string) { slices.Sort(paths) }},
		"drop-ins the other way round": {order: slices.Reverse[[]string]},
		"drop-ins without regard to case": {order: func(paths []string) {
			slices.SortStableFunc(paths, func(a, b string) int {
				return strings.Compare(strings.ToLower(filepath.Base(a)), strings.ToLower(filepath.Base(b)))
			})
		}},

		"an empty Environment= does nothing":     withoutLine("Environment", ""),
		"an empty ExecStart= does nothing":       withoutLine("ExecStart", ""),
		"an empty EnvironmentFile= does nothing": withoutLine("EnvironmentFile", ""),
		"an empty value takes back the rest of the environment": {settings: func(s *Settings) {
			if i := slices.IndexFunc(s.order, func(a Assignment) bool { return a.Kind == KindReset }); i >= 0 {
				s.order = slices.DeleteFunc(s.order, func(a Assignment) bool { return a.Kind == KindEnvironmentFile })
			}
		}},
		"the first ExecStart= counts": {settings: func(s *Settings) { s.start = s.start[:min(1, len(s.start))] }},

		"a file beyond .. is read": {line: func(line Line) (Line, bool) {
			if line.Key == "EnvironmentFile" && strings.HasPrefix(line.Value, "/") {
				line.Value = filepath.Clean(line.Value)
			}
			return line, true
		}},
		"[[:alpha:]] is a set of letters":         inValues("[[:alpha:]]", "[:alph]", "EnvironmentFile"),
		"a ] at the beginning of a set closes it": inValues("[]t-]", "[]]t-]", "EnvironmentFile"),
		"[[.o.]] is not known":                    inValues("[[.o.]]", "[.]", "EnvironmentFile"),

		"%% is not halved":                           inValues("%%", "%%%%", "Environment", "ExecStart"),
		"%h is not known":                            inValues("%h", "%%h", "Environment", "ExecStart"),
		"%I is the instance as it is":                inValues("%I", "%i", "Environment", "ExecStart"),
		"a bad specifier stays as it is":             inValues("%4", "%%4", "Environment", "ExecStart"),
		"single quotes are plain":                    inValues("'", `\'`, "Environment"),
		"single quotes are plain in a command":       inValues("'", `\'`, "ExecStart"),
		"double quotes are plain":                    inValues(`"`, `\"`, "Environment"),
		"escapes are plain":                          inValues(`\`, `\\`, "Environment"),
		"escapes are plain in a command":             inValues(`\`, `\\`, "ExecStart"),
		"an escape that is none loses its backslash": inValues(`\q`, `q`, "ExecStart"),
		"a semicolon ends no command":                inValues(" ; ", ` \; `, "ExecStart"),
		"an escaped semicolon ends a command":        inValues(` \; `, " ; ", "ExecStart"),
		"a bad command costs only its line": {line: func(line Line) (Line, bool) {
			_, bad := parseCommands(line.Value, Specifiers{'h': "/"})
			return line, !strings.HasPrefix(line.Key, "Exec") || bad == nil
		}},

		"$A is one word": inWords(func(word string) string {
			if name, ok := strings.CutPrefix(word, "$"); ok && validName(name) {
				return "${" + name + "}"
			}
			return word
		}),
		"$A inside a word is replaced": inWords(func(word string) string {
			return regexp.MustCompile(`([^$])\$([A-D])`).ReplaceAllString(word, "$1$${$2}")
		}),
		"$$ stays two": inWords(func(word string) string { return strings.ReplaceAll(word, "$$", "$$$$") }),
		"${A:-x} has a default": inWords(func(word string) string {
			return strings.ReplaceAll(word, "${A:-x}", "x")
		}),
		"variables are replaced in spite of a colon": {settings: func(s *Settings) {
			for i := range s.start {
				s.start[i].Prefix = strings.ReplaceAll(s.start[i].Prefix, ":", "")
			}
		}},
		"variables are not replaced": {settings: func(s *Settings) {
			for i := range s.start {
				s.start[i].Prefix += ":"
			}
		}},
		"@ is not known": {settings: func(s *Settings) {
			for i, c := range s.start {
				if strings.Contains(c.Prefix, "@") {
					s.start[i].Argv = append([]string{c.Path}, c.Argv...)
				}
			}
		}},

		"Environment= beats an environment file": inOrder(func(a Assignment) int {
			switch a.Kind {
			case KindUnsetEnvironment:
				return 2
			case KindEnvironmentFile:
				return 0
			}
			return 1
		}),
		"the first environment file wins": {settings: func(s *Settings) {
			reversed := slices.Clone(s.order)
			slices.Reverse(reversed)
			var files []Assignment
			for _, a := range reversed {
				if a.Kind == KindEnvironmentFile {
					files = append(files, a)
				}
			}
			for i, a := range s.order {
				if a.Kind == KindEnvironmentFile {
					s.order[i], files = files[0], files[1:]
				}
			}
		}},
		"UnsetEnvironment= is not known": {settings: func(s *Settings) {
			s.order = slices.DeleteFunc(s.order, func(a Assignment) bool { return a.Kind == KindUnsetEnvironment })
		}},
		"UnsetEnvironment=A=b takes any value of A": {settings: func(s *Settings) {
			for i := range s.order {
				s.order[i].only = false
			}
		}},
		"a missing environment file is no error": {settings: func(s *Settings) {
			if strings.Contains(s.refused, "environment file") {
				s.refused = ""
			}
		}},
		"any number of commands is good": {settings: func(s *Settings) {
			if strings.Contains(s.refused, "more than one") {
				s.refused = ""
			}
		}},
	}
}

// find takes those flaws away that make a difference to what was observed. No flaw makes none.
func find(t *testing.T, observed []*observation, flaws map[string]flaw) {
	t.Helper()
	for _, o := range observed[:min(len(observed), 50)] {
		if difference, _ := o.compare(readWith(flaw{})); difference != "" {
			t.Errorf("without a flaw: %s: %s", o.set.name, difference)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(flaws)) {
		for _, o := range observed {
			if difference, _ := o.compare(readWith(flaws[name])); difference != "" {
				t.Logf("%s: found by %s: %.200s", name, o.set.name, difference)
				delete(flaws, name)
				break
			}
		}
	}
}

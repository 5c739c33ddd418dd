package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unitCase is a set of files after a public bug report, and what systemd makes of it. The first
// part of a path says where it goes: etc, run and usr are the search path from its strong end,
// files is anywhere else. Text that begins with "-> " is a symbolic link.
type unitCase struct {
	name  string
	unit  string // engine.service when empty
	files map[string]string
	v252  bool // known of this version only

	want     map[string]string // the environment, as far as the files make it; nil: it is not started
	unsure   []string          // those of it that another version makes something else of
	start    []string          // ExecStart= as written
	loaded   []string          // argv of the only ExecStart, as systemd has it too
	commands [][]string        // the same of more than one
	from     string            // where the last command comes from, as file:line

	refused    string            // how the reason begins for which the unit is not started
	state      string            // what systemd says of the unit then
	last       map[string]string // by section/key: the line that counts, and those that it hides
	properties map[string]any    // the same in systemd's words
	above      map[string]string // by variable and file: the lines that win over the file's
	problems   []string          // a part of each, in any order; there are no others
}

// folders says where the parts of a case go.
type folders struct{ etc, run, usr, files string }

func (f folders) place(path string) string {
	part, rest, _ := strings.Cut(path, "/")
	return filepath.Join(map[string]string{"etc": f.etc, "run": f.run, "usr": f.usr, "files": f.files}[part], rest)
}

// name is the opposite of place, anywhere in a text.
func (f folders) name(text string) string {
	return strings.NewReplacer(f.etc, "etc", f.run, "run", f.usr, "usr", f.files, "files").Replace(text)
}

// write puts the files of a case in place and takes them away after the test.
func (c unitCase) write(t *testing.T, f folders) {
	t.Helper()
	for name, text := range c.files {
		path := f.place(name)
		target, link := strings.CutPrefix(text, "-> ")
		target = strings.ReplaceAll(target, "FILES", f.files)
		if link {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
		} else {
			writeFile(t, path, strings.ReplaceAll(text, "FILES", f.files))
		}
		t.Cleanup(func() {
			os.Remove(path)
			os.Remove(filepath.Dir(path))
		})
	}
}

func (c unitCase) unitName() string {
	if c.unit == "" {
		return "engine.service"
	}
	return c.unit
}

// checkEnvironment compares the environment that we make of a unit with what the case says.
func (c unitCase) checkEnvironment(t *testing.T, settings *Settings) {
	t.Helper()
	got := map[string]string{}
	for key, setting := range settings.Environment() {
		if unsure := slices.Contains(c.unsure, key); unsure != (setting.Unsure != "") {
			t.Errorf("%s is unsure: %q, want that: %v", key, setting.Unsure, unsure)
		}
		got[key] = setting.Value
	}
	if diff := cmp.Diff(c.want, got); c.want != nil && diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// check compares all that we make of a unit with what the case says.
func (c unitCase) check(t *testing.T, u *Unit, specifiers Specifiers, f folders) {
	t.Helper()
	settings, err := ReadSettings(u, specifiers)
	if err != nil {
		t.Fatal(err)
	}
	c.checkEnvironment(t, settings)
	if c.start != nil {
		var start []string
		for _, value := range settings.Values("Service", "ExecStart") {
			start = append(start, value.Value)
		}
		if diff := cmp.Diff(c.start, start); diff != "" {
			t.Errorf("ExecStart (-want +got):\n%s", diff)
		}
	}
	var commands [][]string
	var from string
	for _, command := range settings.Start() {
		commands = append(commands, command.Argv)
		from = f.name(fmt.Sprintf("%s:%d", command.File, command.Line))
	}
	if diff := cmp.Diff(c.argv(), commands); c.argv() != nil && diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if c.from != "" && from != c.from {
		t.Errorf("the command is from %s, want %s", from, c.from)
	}
	why, unsure := settings.Refused()
	if why = f.name(why); (why == "") != (c.refused == "") || !strings.HasPrefix(why, c.refused) || unsure != "" {
		t.Errorf("refused: %q (%s), want %q", why, unsure, c.refused)
	}
	for key, want := range c.last {
		section, name, _ := strings.Cut(key, "/")
		if got := c.describe(settings.Last(section, name)); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	for key, want := range c.above {
		variable, file, _ := strings.Cut(key, " ")
		var above []string
		for _, a := range settings.Above(variable, f.place(file)) {
			above = append(above, f.name(fmt.Sprintf("%s:%d", a.File, a.Line)))
		}
		if got := strings.Join(above, " "); got != want {
			t.Errorf("above %s are %q, want %q", key, got, want)
		}
	}
	c.checkProblems(t, settings.Problems, f)
}

func (c unitCase) checkProblems(t *testing.T, problems []Problem, f folders) {
	t.Helper()
	missing := slices.Clone(c.problems)
	for _, p := range problems {
		text := f.name(p.String())
		if i := slices.IndexFunc(missing, func(part string) bool { return strings.Contains(text, part) }); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
		} else {
			t.Errorf("unexpected problem: %s", text)
		}
	}
	for _, part := range missing {
		t.Errorf("no problem says %q: %v", part, problems)
	}
}

func (c unitCase) argv() [][]string {
	if c.loaded != nil {
		return [][]string{c.loaded}
	}
	return c.commands
}

// describe writes the line that counts, and the ones that it hides.
func (c unitCase) describe(s Single) string {
	if s.File == "" {
		return ""
	}
	text := fmt.Sprintf("%s:%d %s=%s", filepath.Base(s.File), s.Number, s.Key, s.Line.Value)
	for _, hidden := range s.Hides {
		text += fmt.Sprintf(" hides %s:%d", filepath.Base(hidden.File), hidden.Number)
	}
	return text
}

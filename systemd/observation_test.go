package systemd

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// observation is a generated unit, and what a real systemd made of it.
type observation struct {
	set    unitSet
	unit   *Unit  // found in the folders, without a question to systemd
	result string // of the job, or why there was none
	runs   []run

	specifiers Specifiers
	inherited  map[string]string
	noter      string // the program whose runs are in runs
	inPath     bool   // it is also started by its name
}

// outcome is what a reading of the files makes of a unit.
type outcome struct {
	refused     string
	unsure      string // why it may be refused all the same
	environment map[string]Setting
	commands    []expected
}

// expected is one command that ought to run.
type expected struct {
	StartCommand
	argv   []string
	unsure string
}

// mayBeEmpty says whether perhaps no word of the command is left, not even argv[0]: systemd does not start that. Every one of
// them is then a variable by itself, and what one of these is, is not certain.
func (e expected) mayBeEmpty() bool {
	return len(e.argv) == 0 || e.unsure != "" && !e.NoVariables() && !slices.ContainsFunc(e.Argv, func(word string) bool {
		name, ok := strings.CutPrefix(word, "$")
		return !ok || strings.HasPrefix(name, "{") || strings.HasPrefix(name, "$")
	})
}

// reading works out from the files of an observation what ought to be observed.
type reading func(o *observation) (outcome, error)

// read is the reading that all of this is about.
func read(o *observation) (outcome, error) {
	settings, err := ReadSettings(o.unit, o.specifiers)
	if err != nil {
		return outcome{}, err
	}
	return outcomeOf(settings, o), nil
}

func outcomeOf(s *Settings, o *observation) outcome {
	out := outcome{environment: s.Environment()}
	out.refused, out.unsure = s.Refused()
	for _, c := range s.Start() {
		e := expected{StartCommand: c}
		e.argv, e.unsure = s.Argv(c, o.inherited)
		out.commands = append(out.commands, e)
	}
	return out
}

// tally counts what was compared.
type tally struct {
	refused, started, commands, unsureCommands, values, unsureValues int
}

func (t *tally) add(more tally) {
	t.refused += more.refused
	t.started += more.started
	t.commands += more.commands
	t.unsureCommands += more.unsureCommands
	t.values += more.values
	t.unsureValues += more.unsureValues
}

// compare holds a reading against what was observed, and says what differs, "" for nothing.
func (o *observation) compare(read reading) (difference string, t tally) {
	out, err := read(o)
	if err != nil {
		return err.Error(), t
	}
	if out.refused != "" {
		t.refused++
		if o.result == "done" || len(o.runs) > 0 {
			return fmt.Sprintf("it ran (%s), we say %s", o.result, out.refused), t
		}
		return "", t
	}
	for _, c := range out.commands {
		if out.unsure != "" || c.Unsure != "" || c.mayBeEmpty() {
			t.unsureCommands++
			return "", t
		}
	}
	t.started++
	want, ends := o.wanted(out)
	if len(want) != len(o.runs) {
		return fmt.Sprintf("%d processes ran (%s), we say %d of %d commands", len(o.runs), o.result, len(want), len(out.commands)), t
	}
	if !ends && o.result != "done" && !o.set.again() {
		return fmt.Sprintf("the job ended with %s, we know of no reason", o.result), t
	}
	for i, c := range want {
		got := o.runs[i]
		switch {
		case c.unsure != "":
			t.unsureCommands++
		case !slices.Equal(c.argv, got.argv):
			return fmt.Sprintf("%s:%d starts %q, we say %q", c.File, c.Line, got.argv, c.argv), t
		default:
			t.commands++
		}
		for _, key := range keyPool {
			setting, set := out.environment[key]
			value, have := got.environment[key]
			switch {
			case setting.Unsure != "":
				t.unsureValues++
			case set != have || setting.Value != value:
				return fmt.Sprintf("%s is %q (set: %v), we say %q (set: %v) from %s:%d", key, value, have,
					setting.Value, set, setting.File, setting.Line), t
			default:
				t.values++
			}
		}
	}
	return "", t
}

// wanted are the commands that start the program that notes; fails says that one of the others
// cannot be started and so ends the unit.
func (o *observation) wanted(out outcome) (want []expected, fails bool) {
	for _, c := range out.commands {
		switch {
		case c.Path == o.noter, o.inPath && c.Path == path.Base(o.noter):
			want = append(want, c)
		case c.Path == "/bin/true", c.Path == "true", strings.Contains(c.Prefix, "-"):
		default:
			return want, true
		}
	}
	return want, false
}

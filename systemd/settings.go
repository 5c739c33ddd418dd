package systemd

import (
	"fmt"
	"slices"
	"strings"
)

// Setting is the value of one environment variable and where it comes from.
type Setting struct {
	Value string
	File  string
	Line  int // 1 is the first
	// Unsure says why Value is not certain, or even that the variable is set; "" when it is.
	Unsure string
}

// Kind says by what means a line touches a variable.
type Kind string

// The kinds, from the weakest to the strongest.
const (
	KindPassEnvironment  Kind = "PassEnvironment"  // hands through a value of the manager's: unsure
	KindEnvironment      Kind = "Environment"      // sets it
	KindReset            Kind = "reset"            // an empty Environment=: takes back all before it
	KindEnvironmentFile  Kind = "EnvironmentFile"  // sets it from a file, whatever Environment= says
	KindUnsetEnvironment Kind = "UnsetEnvironment" // takes it away in the end
)

// Assignment is one line that touches a variable.
type Assignment struct {
	Key    string
	Value  string // "" for KindReset and KindPassEnvironment, and where UnsetEnvironment= gives none
	File   string
	Line   int
	Kind   Kind
	Unsure string // why it is not certain that, or with what value, the line counts; "" when it is

	only bool // an UnsetEnvironment=KEY=Value: takes away this value only
}

// Settings is what the files of one unit amount to.
type Settings struct {
	// Problems are lines that systemd passes over, files that it cannot read and the like. Not
	// even a Fatal one need keep the unit from starting (in a drop-in it costs the rest of that):
	// see Refused.
	Problems []Problem

	files    []*File // each as far as systemd reads it
	start    []StartCommand
	refused  string
	doubts   map[string]Problem // by file: the line from which on it may be lost
	order    []Assignment       // in order of force: each takes effect over all before it
	unread   string             // an environment file that we cannot read and systemd may
	disputed string             // an environment file because of which not every version of systemd starts the unit
}

// Value is an assignment of a unit file together with the file it is from.
type Value struct {
	File string
	Line
}

// Values lists the assignments of any list-valued key, such as ExecStart, that count: those
// after the last empty one, over all files in the order in which they are merged. Specifiers
// stand as they are.
func (s *Settings) Values(section, key string) []Value {
	var values []Value
	for _, file := range s.files {
		for _, line := range file.Get(section, key) {
			if line.Value == "" {
				values = nil
				continue
			}
			values = append(values, Value{File: file.Path, Line: line})
		}
	}
	return values
}

// Lines lists every assignment of all files, in the order in which they are merged and as far as systemd reads them,
// whether or not it counts.
func (s *Settings) Lines() []Value {
	var values []Value
	for _, file := range s.files {
		for _, line := range file.Lines {
			values = append(values, Value{File: file.Path, Line: line})
		}
	}
	return values
}

// Start lists the commands of ExecStart= that count, over all files and after the last reset. Of
// more than one, only a Type=oneshot unit starts at all, and runs them one after the other.
func (s *Settings) Start() []StartCommand { return s.start }

// Environment is what the unit's own files put into the environment of its next process:
// Environment= with its resets, then the environment files in order, then UnsetEnvironment=.
// What the manager itself adds (HOME, INVOCATION_ID, …) is not in it.
func (s *Settings) Environment() map[string]Setting { return s.environment(nil) }

// environment lays what the files say over what the manager hands to every process.
func (s *Settings) environment(inherited map[string]string) map[string]Setting {
	plain := map[string]Setting{} // the list that an empty Environment= empties
	all := map[string]Setting{}
	for key, value := range inherited {
		all[key] = Setting{Value: value}
		if strings.Contains(ownVariables, " "+key+" ") {
			all[key] = Setting{Value: value, Unsure: "systemd may set it by itself"}
		}
	}
	merge := func() {
		for key, setting := range plain {
			all[key] = setting
		}
		plain = map[string]Setting{}
	}
	for _, a := range s.order {
		setting := Setting{Value: a.Value, File: a.File, Line: a.Line, Unsure: a.Unsure}
		switch a.Kind {
		case KindPassEnvironment:
			all[a.Key] = setting
		case KindEnvironment:
			plain[a.Key] = setting
		case KindReset:
			if a.Unsure == "" {
				clear(plain)
			}
			for key, setting := range plain {
				setting.Unsure = firstOf(setting.Unsure, a.Unsure)
				plain[key] = setting
			}
		case KindEnvironmentFile:
			merge()
			all[a.Key] = setting
		case KindUnsetEnvironment:
			merge()
			unset(all, a)
		}
	}
	merge()
	if s.unread != "" {
		for key, setting := range all {
			setting.Unsure = firstOf(setting.Unsure, s.unread)
			all[key] = setting
		}
	}
	return all
}

// unset takes a variable away.
func unset(all map[string]Setting, a Assignment) {
	setting, set := all[a.Key]
	switch {
	case !set, a.only && a.Unsure == "" && setting.Unsure == "" && a.Value != setting.Value:
	case a.Unsure != "":
		setting.Unsure = firstOf(setting.Unsure, a.Unsure)
		all[a.Key] = setting
	case a.only && setting.Unsure != "":
		setting.Unsure = fmt.Sprintf("%s:%d takes it away if its value is %q, which is not certain: %s",
			a.File, a.Line, a.Value, setting.Unsure)
		all[a.Key] = setting
	default:
		delete(all, a.Key)
	}
}

// History lists every line that touches a variable, in order of force: what the last one says
// holds. A reset is in it where it takes something back, an UnsetEnvironment=KEY=VALUE where the
// value may be that one.
func (s *Settings) History(key string) []Assignment {
	var history []Assignment
	set := false       // something before can be reset
	var before Setting // what an UnsetEnvironment= finds
	for _, a := range s.order {
		switch {
		case a.Kind == KindReset:
			if !set {
				continue
			}
			a.Key, set = key, false
		case a.Key != key:
			continue
		case a.Kind == KindEnvironment:
			set = true
			before = Setting{Value: a.Value, Unsure: a.Unsure}
		case a.Kind == KindUnsetEnvironment:
			if a.only && a.Unsure == "" && before.Unsure == "" && before.Value != a.Value {
				continue
			}
		default:
			before = Setting{Value: a.Value, Unsure: a.Unsure}
		}
		history = append(history, a)
	}
	return history
}

// Keys lists, sorted, every variable that some line touches, also one that is not in Environment
// because a later line took it away.
func (s *Settings) Keys() []string { return s.KeysWhere(func(Assignment) bool { return true }) }

// KeysWhere lists, sorted, the variables of which a line does what holds tells.
func (s *Settings) KeysWhere(holds func(Assignment) bool) []string {
	var keys []string
	for _, a := range s.order {
		if a.Kind != KindReset && holds(a) {
			keys = append(keys, a.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Above lists the lines that win over the last one of a file that sets the variable: later
// drop-ins, resets, environment files, UnsetEnvironment=. It is empty when the file's line holds
// or when it has none.
func (s *Settings) Above(key, file string) []Assignment {
	history := s.History(key)
	if i := lastIn(history, file); i >= 0 {
		return history[i+1:]
	}
	return nil
}

// Below lists the lines that would hold, the last one foremost, were it not for a file's line
// that sets the variable.
func (s *Settings) Below(key, file string) []Assignment {
	history := s.History(key)
	i := lastIn(history, file)
	if i < 0 {
		return nil
	}
	var below []Assignment
	for _, a := range history[:i] {
		if a.Kind == KindReset {
			below = nil
		} else if a.File != file {
			below = append(below, a)
		}
	}
	return below
}

// lastIn finds the last assignment of a file that sets a value, -1 when there is none.
func lastIn(history []Assignment, file string) int {
	for i, a := range slices.Backward(history) {
		if a.File == file && (a.Kind == KindEnvironment || a.Kind == KindEnvironmentFile) {
			return i
		}
	}
	return -1
}

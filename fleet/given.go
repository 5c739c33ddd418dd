package fleet

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Given is a variable that a service's server has or gets, and what gives it.
type Given struct {
	Key, Value string
	Where      string // the file with its line; "" where no file of the unit says it
	By         string // what gives it, in words
	Remedy     string // how it is taken away, without the restart that follows; "" where that does
	Process    int    // the server that has it and would not get it again; 0: the next one gets it
}

// Cure is how a service gets rid of it.
func (g Given) Cure(unit string) string {
	if g.Remedy == "" {
		return "1bit pkg restart " + unit
	}
	return g.Remedy + " && 1bit pkg restart " + unit
}

// given says what value of a variable the next server gets, or else the one that runs has; ok is false where neither has
// it. What a process really has is told by its environment alone: a command can set and take away.
func (v *view) given(key string) (g Given, ok bool) {
	if g, ok = v.nextGiven(key); ok {
		return g, true
	}
	pid := v.live.server()
	for _, p := range v.procs {
		if value, has := lookup(p.env, key); has && pid != 0 && p.pid == pid {
			return Given{
				Key: key, Value: value, Process: pid,
				By: fmt.Sprintf("is in the environment of the server that runs (process %d), and neither its files nor the manager give it now", pid),
			}, true
		}
	}
	return Given{}, false
}

// nextGiven is what the next server gets: by a word of its command, its unit's files, or the manager.
func (v *view) nextGiven(key string) (Given, bool) {
	userFlag := " --user"
	if v.system {
		userFlag = ""
	}
	empty := false
	for _, c := range v.loaded.ExecStart {
		value, state := ofCommand(c.Path, c.Argv, key)
		empty = empty || state == takenAway
		if state != set {
			continue
		}
		g := Given{Key: key, Value: value, By: "is set by ExecStart="}
		for _, line := range v.settings.Values("Service", "ExecStart") {
			if strings.Contains(line.Value, key) {
				g.Where = at(line.File, line.Number)
			}
		}
		g.Remedy = fmt.Sprintf("take it out of %s, then: systemctl%s daemon-reload", or(g.Where, "ExecStart="), userFlag)
		return g, true
	}
	if empty {
		return Given{}, false
	}
	if value, on := v.environment()[key]; on {
		g := Given{Key: key, Value: value, By: "is set", Remedy: "take it out of the unit's files, then: systemctl" + userFlag + " daemon-reload"}
		if from, said := v.settings.Environment()[key]; said {
			g.Where = at(from.File, from.Line)
			g.Remedy = fmt.Sprintf("take it out of %s, then: systemctl%s daemon-reload", g.Where, userFlag)
		}
		return g, true
	}
	value, on := v.place.inherited[key]
	if on && !slices.Contains(v.loaded.UnsetEnvironment, key) && !slices.Contains(v.loaded.UnsetEnvironment, key+"="+value) {
		return Given{
			Key: key, Value: value, By: "is set in the environment that the manager gives to all its services",
			Remedy: fmt.Sprintf("take it out of environment.d or DefaultEnvironment=, where it stands there, and: systemctl%s unset-environment %s", userFlag, key),
		}, true
	}
	return Given{}, false
}

// What a command does to a variable.
const (
	leaves = iota
	set
	takenAway
)

// ofCommand says what a command does to a variable for what it starts: env(1), and the script of a shell. A script that
// decides for itself is not understood: the process that it has started tells.
func ofCommand(program string, argv []string, key string) (value string, state int) {
	if len(argv) == 0 {
		return "", leaves
	}
	switch name := filepath.Base(program); {
	case name == "env":
		for i, word := range argv[1:] {
			before := argv[i]
			switch assigned, value, is := strings.Cut(word, "="); {
			case word == "-i" || word == "-" || word == "--ignore-environment", word == "--unset="+key, word == "-u"+key, word == key && (before == "-u" || before == "--unset"):
				state = takenAway
			case is && assigned == key:
				return value, set
			case strings.HasPrefix(word, "-") || is || before == "-u" || before == "--unset" || before == "-C" || before == "--chdir":
			default:
				return ofShell(word, argv[i+1:], key, state)
			}
		}
		return "", state
	default:
		return ofShell(program, argv, key, leaves)
	}
}

// ofShell is ofCommand for a shell and its script; state is what was done before it.
func ofShell(program string, argv []string, key string, state int) (string, int) {
	at := slices.IndexFunc(argv, func(word string) bool { return strings.HasPrefix(word, "-") && strings.HasSuffix(word, "c") })
	if !slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh"}, filepath.Base(program)) || at < 0 || at+1 >= len(argv) {
		return "", state
	}
	script := argv[at+1]
	if strings.ContainsAny(script, "#`(") || slices.ContainsFunc([]string{"&&", "||", "if ", "case ", "unset "}, func(s string) bool { return strings.Contains(script, s) }) {
		return "", state
	}
	for command := range strings.FieldsFuncSeq(script, func(r rune) bool { return r == ';' || r == '\n' }) {
		for _, word := range strings.Fields(command) {
			assigned, value, is := strings.Cut(word, "=")
			switch {
			case is && assigned == key:
				return strings.Trim(value, `"'`), set
			case is || word == "export" || word == "exec" || word == "env" || filepath.Base(word) == "env":
				continue
			}
			break
		}
	}
	return "", state
}

// server is the process that answers, 0 where none is known.
func (l *Live) server() int {
	switch {
	case l == nil:
		return 0
	case l.Child != nil:
		return l.Child.PID
	case l.Main != nil:
		return l.Main.PID
	}
	return 0
}

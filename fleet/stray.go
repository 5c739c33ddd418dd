package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// stray is what decides which program a unit starts and lies in no package, while other values of the unit do point
// into one: a switch would move these and change nothing of what runs. The zero value says that nothing strays.
type stray struct {
	setting string // the server's variable, or ExecStart
	value   string // "" for a variable that some line takes away
	at      string // what does so, with file and line where that is certain
}

func (s stray) isZero() bool { return s.setting == "" }

func (s stray) String() string {
	switch {
	case s.setting == "ExecStart":
		return fmt.Sprintf("%s starts %s, which lies in no package", s.at, s.value)
	case s.value == "":
		return s.at
	}
	return fmt.Sprintf("%s, which lies in no package", s.at)
}

// remedy says what to do about it.
func (s stray) remedy() string {
	if s.setting == "ExecStart" {
		return "let it start a package's program, or take the variables that name a package away"
	}
	return "take that line out, or name a package's program"
}

// strayOf looks at what settings amount to and the commands that are started. b is what of it points into packages.
func strayOf(s *systemd.Settings, pl *place, commands []systemd.Command, b binding) stray {
	if len(b) == 0 {
		return stray{}
	}
	program, found := engineOf(commands)
	if !found {
		return strayVariable(s, pl, commands, b)
	}
	if _, in := pl.at(program); in {
		return stray{}
	}
	at := "ExecStart="
	if values := s.Values("Service", "ExecStart"); len(values) > 0 {
		at = fmt.Sprintf("%s:%d: ExecStart=", values[0].File, values[0].Number)
	}
	return stray{"ExecStart", program, at}
}

// loadedStray is the same of what the manager has loaded, which may not be what the files say.
func (v *view) loadedStray() stray {
	now, is := loadedEnvironment(v.loaded)[serverVariable]
	disk, said := v.settings.Environment()[serverVariable]
	switch _, in := v.place.inValue(now); {
	case is == said && now == disk.Value:
		return strayOf(v.settings, v.place, v.loaded.ExecStart, v.armed)
	case len(v.armed) == 0 || in || !is:
		return stray{}
	}
	return stray{serverVariable, now, fmt.Sprintf("the manager has loaded %s=%s", serverVariable, now)}
}

// strayVariable finds the server's variable set to what is in no package, or taken away. It decides nothing where the
// command names another variable of the binding as its program.
func strayVariable(s *systemd.Settings, pl *place, commands []systemd.Command, b binding) stray {
	history := s.History(serverVariable)
	set, ok := s.Environment()[serverVariable]
	switch {
	case ok:
		if _, in := pl.inValue(set.Value); in {
			return stray{}
		}
		return stray{serverVariable, set.Value, fmt.Sprintf("%s:%d sets %s=%s", set.File, set.Line, serverVariable, set.Value)}
	case !slices.ContainsFunc(history, func(a systemd.Assignment) bool { _, in := pl.inValue(a.Value); return in }):
		return stray{}
	}
	for _, a := range b {
		if a.Key != serverVariable && startsBy(commands, a.Key) {
			return stray{}
		}
	}
	return stray{serverVariable, "", describe(serverVariable, history[len(history)-1])}
}

// startsBy tells whether a command has a word that is the variable.
func startsBy(commands []systemd.Command, key string) bool {
	return slices.ContainsFunc(commands, func(c systemd.Command) bool {
		return slices.ContainsFunc(c.Argv, func(word string) bool {
			return strings.Contains(word, "${"+key+"}") || word == "$"+key
		})
	})
}

// engineOf finds the engine's program that commands start themselves, also by way of a shell or env: a word that is
// the absolute path of one.
func engineOf(commands []systemd.Command) (program string, ok bool) {
	for _, c := range commands {
		for _, arg := range append([]string{c.Path}, c.Argv...) {
			for _, word := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(endsPath, r) }) {
				if !filepath.IsAbs(word) || !engineProgram(word) {
					continue
				}
				if info, err := os.Stat(word); word == c.Path || err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
					return word, true
				}
			}
		}
	}
	return "", false
}

// namer is the variable that names the package which would decide if nothing strayed.
func (b binding) namer(pl *place) string {
	for _, key := range b.keys() {
		for _, a := range b {
			if _, in := pl.inValue(a.Value); in && a.Key == key {
				return key
			}
		}
	}
	return ""
}

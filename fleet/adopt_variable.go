package fleet

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/systemd"
)

// The names of the variables that adopt makes of a command. None of the engine's begins so, but for the server's.
const (
	programVariable = "ONEBIT_PROGRAM" // of a program that is not the server
	argumentPrefix  = "ONEBIT_ARG_"
)

// value is what a word of one variable stands for.
func (r *rewriter) value(literal string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(literal, "${"), "}")
	for _, a := range r.vars {
		if a.Key == name {
			return a.Value
		}
	}
	return ""
}

// variable is the name of the variable for a path: one that the unit has already where there is one. started tells
// whether the path may be that of the program that the command runs: only then it gets the name of the server's
// variable, which the engine's front end reads.
func (r *rewriter) variable(path, hint string, started bool) string {
	path = r.place.pinnedList(path)
	for _, known := range []binding{r.vars, r.reuse} {
		for _, key := range known.keys() {
			for _, a := range known {
				if a.Key == key && a.Value == path {
					r.add(a)
					return a.Key
				}
			}
		}
	}
	name := hint
	if started && filepath.Base(path) == "llama-server" && !r.isTaken(serverVariable) {
		name = serverVariable
	} else if name == "" {
		name = argumentPrefix + variableName(filepath.Base(path))
	}
	unique := name
	for i := 2; r.isTaken(unique); i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}
	r.add(Assignment{unique, path})
	return unique
}

// afterOption tells whether a shell's text ends where the value of an option begins, or a variable's.
func afterOption(text string) bool {
	fields := strings.Fields(text)
	return len(fields) > 0 && strings.HasPrefix(fields[len(fields)-1], "-") || strings.HasSuffix(text, "=")
}

// spareFrontEnd keeps the server's variable from a unit that runs the engine's front end and sets none: the front end
// would start that server in place of its own.
func (r *rewriter) spareFrontEnd(lines []ownLine) {
	for _, l := range lines {
		if l.Section != "Service" || !strings.HasPrefix(l.Key, "Exec") {
			continue
		}
		for _, word := range strings.FieldsFunc(l.Value, func(c rune) bool { return strings.ContainsRune(endsPath, c) }) {
			if filepath.Base(strings.TrimLeft(word, prefixes)) == packager.FrontDoorEntry {
				r.taken = append(r.taken, serverVariable)
				return
			}
		}
	}
}

func (r *rewriter) add(a Assignment) {
	for _, have := range r.vars {
		if have.Key == a.Key {
			return
		}
	}
	r.vars = append(r.vars, a)
}

func (r *rewriter) isTaken(name string) bool {
	for _, a := range r.vars {
		if a.Key == name {
			return true
		}
	}
	for _, key := range r.taken {
		if key == name {
			return true
		}
	}
	return false
}

// hintOf names the variable for a word after what the word is: the program, or the value of an option. "" leaves it to
// the path.
func hintOf(words []systemd.RawWord, i int) string {
	if i == 0 {
		return programVariable
	}
	option, _, ok := strings.Cut(words[i].Text, "=")
	if !ok || strings.ContainsAny(option, "/ \t") {
		option = words[i-1].Text
		if i == 1 || !strings.HasPrefix(option, "-") || len(strings.Trim(option, "-")) < 2 || strings.ContainsAny(option, "=/ \t") {
			return ""
		}
	}
	if name := variableName(strings.TrimLeft(option, "-")); name != "" {
		return argumentPrefix + name
	}
	return ""
}

// variableName makes a name of a text: letters, digits and what separates them.
func variableName(text string) string {
	var b strings.Builder
	for _, c := range strings.ToUpper(text) {
		switch {
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			b.WriteRune(c)
		default:
			b.WriteByte('_')
		}
	}
	return strings.Trim(b.String(), "_")
}

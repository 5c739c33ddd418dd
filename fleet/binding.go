package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// serverVariable names the program that the engine's front end starts; it decides which package a unit runs where
// its variables disagree.
const serverVariable = "ONEBIT_LLAMA_SERVER"

// binding is the variables of a unit that point into a package, sorted by name, with the values that hold (or
// would hold, for one that a later line takes away).
type binding []Assignment

// bindingOf finds the variables of which some line points into a package. Where the value that holds does not,
// the last one that does stands in for it: the switch will move the variable, or be refused for what wins.
func bindingOf(s *systemd.Settings, pl *place) binding {
	effective := s.Environment()
	var b binding
	for _, key := range s.KeysWhere(func(a systemd.Assignment) bool { _, in := pl.inValue(a.Value); return in }) {
		if e, ok := effective[key]; ok {
			if _, ok := pl.inValue(e.Value); ok {
				b = append(b, Assignment{key, e.Value})
				continue
			}
		}
		for _, a := range slices.Backward(s.History(key)) {
			if a.Kind != systemd.KindEnvironment && a.Kind != systemd.KindEnvironmentFile {
				continue
			}
			if _, ok := pl.inValue(a.Value); ok {
				b = append(b, Assignment{key, a.Value})
				break
			}
		}
	}
	return b
}

// inEnvironment keeps of an environment the variables that point into a package.
func inEnvironment(env map[string]string, pl *place) binding {
	var b binding
	for key, value := range env {
		if _, ok := pl.inValue(value); ok {
			b = append(b, Assignment{key, value})
		}
	}
	slices.SortFunc(b, func(x, y Assignment) int { return strings.Compare(x.Key, y.Key) })
	return b
}

func (b binding) keys() []string {
	keys := make([]string, len(b))
	for i, a := range b {
		keys[i] = a.Key
	}
	// The server's variable first: it decides.
	slices.SortStableFunc(keys, func(x, y string) int {
		switch {
		case x == serverVariable && y != serverVariable:
			return -1
		case y == serverVariable && x != serverVariable:
			return 1
		}
		return 0
	})
	return keys
}

// packages lists the packages that the variables point into, the deciding one first.
func (b binding) packages(pl *place) []PackageRef {
	var out []PackageRef
	for _, key := range b.keys() {
		for _, a := range b {
			if a.Key != key {
				continue
			}
			for part := range strings.SplitSeq(a.Value, ":") {
				if ref, ok := pl.at(part); ok && !slices.Contains(out, ref) {
					out = append(out, ref)
				}
			}
		}
	}
	return out
}

// pkg is the package that decides, zero where no variable points into one.
func (b binding) pkg(pl *place) PackageRef {
	if all := b.packages(pl); len(all) > 0 {
		return all[0]
	}
	return PackageRef{}
}

// move rewrites every variable to the package at folder to. It is refused where the package lacks what a variable
// names and the package of before has, or where a value mentions a package in a form that cannot be moved.
func (b binding) move(pl *place, to string) (binding, error) {
	out := make(binding, len(b))
	for i, a := range b {
		parts := strings.Split(a.Value, ":")
		for j, part := range parts {
			folder, rest, ok := pl.split(part)
			if !ok {
				if pl.mentions(part) {
					return nil, fmt.Errorf("%w: %s=%s holds a package's path in a form that cannot be moved", ErrRefused, a.Key, a.Value)
				}
				continue
			}
			moved := filepath.Join(to, filepath.FromSlash(rest))
			if strings.HasSuffix(part, "/") {
				moved += "/"
			}
			if _, err := os.Stat(moved); err != nil && !lacking(folder, part) {
				return nil, fmt.Errorf("%w: %s names %s, and %s has none: %w", ErrRefused, a.Key, rest, filepath.Base(to), err)
			}
			parts[j] = moved
		}
		out[i] = Assignment{a.Key, strings.Join(parts, ":")}
	}
	return out, nil
}

// lacking tells whether a package that is there has not what path names: then the next one need not have it either.
// A path with more than a name in it is perhaps none, but a command.
func lacking(folder, path string) bool {
	return !absentPath(folder) && absentPath(path) && !strings.ContainsAny(path, endsPath+varies)
}

// loadedEnvironment is what the next process of a unit gets from what the manager has loaded: Environment=, then
// the environment files (which are read at every start), less UnsetEnvironment=.
func loadedEnvironment(u *systemd.Unit) map[string]string {
	env := map[string]string{}
	for _, assignment := range u.Environment {
		if key, value, ok := strings.Cut(assignment, "="); ok {
			env[key] = value
		}
	}
	read := systemd.NewEnvironmentReader()
	for _, file := range u.EnvironmentFiles {
		found, err := read(file.Path)
		if err != nil {
			continue
		}
		for _, one := range found {
			pairs, err := systemd.ParseEnvironmentFile(one.Path, one.Data)
			if one.Err != nil || err != nil && !errors.Is(err, systemd.ErrDisputedFile) {
				continue
			}
			for _, pair := range pairs {
				env[pair.Key] = pair.Value
			}
		}
	}
	for _, name := range u.UnsetEnvironment {
		key, value, only := strings.Cut(name, "=")
		if !only || env[key] == value {
			delete(env, key)
		}
	}
	return env
}

// boundCommand finds a package in what ExecStart= runs or hands over: it would stay behind when the variables
// move.
func boundCommand(u *systemd.Unit, pl *place) (what string, bound bool) {
	for _, command := range u.ExecStart {
		if _, ok := pl.at(command.Path); ok {
			return command.Path, true
		}
		for _, arg := range command.Argv {
			if _, ok := pl.at(arg); ok || pl.mentions(arg) {
				return arg, true
			}
		}
	}
	return "", false
}

package fleet

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// words are the parts of a loaded unit, other than variables, that point into a package: it would stay behind when
// the variables move.
func (v *view) words() []Setting {
	var out []Setting
	add := func(key, word string) {
		if _, ok := v.place.inWord(word); !ok && !v.place.mentions(word) {
			return
		}
		s := Setting{Setting: key, Value: word}
		if values := v.settings.Values("Service", key); len(values) > 0 {
			last := values[len(values)-1]
			s.File, s.Line, s.Of = last.File, last.Number, v.of(last.File)
		}
		for _, have := range out {
			if have == s {
				return
			}
		}
		out = append(out, s)
	}
	for _, command := range v.loaded.ExecStart {
		add("ExecStart", command.Path)
		for _, arg := range command.Argv {
			add("ExecStart", arg)
		}
	}
	add("WorkingDirectory", strings.TrimLeft(v.loaded.WorkingDirectory, "-!")) // a manager spells an optional one "!"
	return out
}

// inWord finds the package that a word of a command names: the word itself, a list of paths, or what stands behind
// the "=" of an option.
func (p *place) inWord(word string) (PackageRef, bool) {
	if ref, ok := p.inValue(word); ok {
		return ref, true
	}
	if _, value, ok := strings.Cut(word, "="); ok {
		return p.inValue(value)
	}
	return PackageRef{}, false
}

// armedPackage is what the next start uses: the package of the variables, or, where none points into one, the package
// that the command names itself. It is none where what decides lies in no package.
func (v *view) armedPackage() PackageRef {
	if !v.astray.isZero() {
		return PackageRef{}
	}
	if program, ok := engineOf(v.loaded.ExecStart); ok {
		if ref, in := v.place.at(program); in {
			return ref
		}
	}
	if ref := v.overridden(); !ref.isZero() {
		return ref
	}
	if ref := v.armed.pkg(v.place); !ref.isZero() {
		return ref
	}
	for _, command := range v.settings.Start() { // with variables in the midst of a path, as in 1bit-${ID}
		argv, unsure := v.settings.Argv(command, v.place.inherited)
		for _, arg := range argv {
			if ref, ok := v.place.inText(arg); ok && unsure == "" {
				return ref
			}
		}
	}
	for _, word := range v.words() {
		if ref, ok := v.place.inText(word.Value); ok && word.Setting == "ExecStart" {
			return ref
		}
	}
	return PackageRef{}
}

// inText finds the package that a word names: as a whole, or by a path somewhere in it, as in a shell's command.
func (p *place) inText(word string) (PackageRef, bool) {
	if ref, ok := p.inWord(word); ok {
		return ref, true
	}
	for _, s := range p.spans(word) {
		return p.at(word[s.from:s.to])
	}
	return PackageRef{}, false
}

// named lists the packages that the variables and the command name.
func (v *view) named() []string {
	var names []string
	add := func(ref PackageRef) {
		if !ref.isZero() && !slices.Contains(names, ref.Name) {
			names = append(names, ref.Name)
		}
	}
	for _, ref := range v.armed.packages(v.place) {
		add(ref)
	}
	for _, word := range v.words() {
		if ref, ok := v.place.inText(word.Value); ok && word.Setting == "ExecStart" {
			add(ref)
		}
	}
	return names
}

// overridden is the package of the server's variable where the command itself sets that, as env does.
func (v *view) overridden() PackageRef {
	for _, command := range v.loaded.ExecStart {
		for _, arg := range command.Argv {
			if value, ok := strings.CutPrefix(arg, serverVariable+"="); ok {
				ref, _ := v.place.inValue(value)
				return ref
			}
		}
	}
	return PackageRef{}
}

// of says whose file a drop-in is where it is not the unit's alone, such as "template llm@.service"; else "".
func (v *view) of(file string) string {
	owner := systemd.DropInOwner(file)
	switch {
	case owner == "" || owner == v.loaded.ID:
		if v.loaded.FragmentPath == file && systemd.IsTemplate(baseName(file)) {
			return "template " + baseName(file)
		}
		return ""
	case owner == "service":
		return "kind of unit, for all services"
	case systemd.IsTemplate(owner) && owner == template(v.loaded.ID):
		return "template " + owner
	case strings.HasSuffix(owner, "-.service") || strings.HasSuffix(owner, "-@.service"):
		return "prefix " + strings.TrimSuffix(strings.TrimSuffix(owner, ".service"), "@")
	}
	return "alias " + owner
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// inherits is the server's variable that a front end gets from the manager alone, where that names a package.
func (v *view) inherits() (Assignment, bool) {
	value, ok := v.place.inherited[serverVariable]
	if !ok || slices.Contains(v.settings.Keys(), serverVariable) {
		return Assignment{}, false
	}
	_, in := v.place.inValue(value)
	front := slices.ContainsFunc(v.loaded.ExecStart, func(c systemd.Command) bool {
		return filepath.Base(c.Path) == "1bit" && slices.Contains(c.Argv, "serve")
	})
	return Assignment{serverVariable, value}, in && (front || startsBy(v.loaded.ExecStart, serverVariable))
}

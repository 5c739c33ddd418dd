package build

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// entry is one folder of a RUNPATH, as the places that it stands for.
type entry struct {
	keep    string // its spelling in the package; "" if it cannot stay
	inside  string // the folder of the package; "" if none
	inTree  string // the folder of the tree; "" if none
	outside string // the folder of the host; "" if none
	lost    bool   // a folder of another machine, which may have been this tree
}

// entry says what an entry of a file's RUNPATH stands for. The file is in
// folder home of the package and was in folder treeHome of the tree.
func (k *relinker) entry(text, home, treeHome string) entry {
	for _, token := range []string{"$ORIGIN", "${ORIGIN}"} {
		rest, ok := strings.CutPrefix(text, token)
		if !ok || rest != "" && rest[0] != '/' || strings.Contains(rest, "$") {
			continue
		}
		e := entry{}
		if at, ok := within(path.Join(home, rest)); ok {
			if f := k.files.resolve(at); f != nil && f.Type == packager.TypeDir {
				e.keep, e.inside = text, at
			}
		}
		if at, ok := within(path.Join(treeHome, rest)); ok {
			e.inTree = at
		}
		return e
	}
	if !filepath.IsAbs(text) || strings.Contains(text, "$") {
		return entry{}
	}
	clean := filepath.Clean(text)
	if k.declared(clean) {
		return entry{keep: text, outside: clean}
	}
	if rel, ok := k.tree.inside(clean); ok {
		e := entry{inTree: rel}
		if f := k.files.resolve(rel); f != nil && f.Type == packager.TypeDir {
			e.inside = rel
		}
		return e
	}
	return entry{lost: true}
}

// within returns a relative path if it does not lead out.
func within(p string) (string, bool) { return p, p != ".." && !strings.HasPrefix(p, "../") }

// declared tells whether a folder of the host is one that the recipe requires,
// or inside one. What a build tree is inside of is none.
func (k *relinker) declared(dir string) bool {
	return slices.ContainsFunc(k.recipe.Requires, func(r packager.Requirement) bool {
		if r.Kind != packager.RequirePath {
			return false
		}
		_, holds := below(r.Name, dir)
		_, holdsTree := below(r.Name, k.tree.path)
		return holds && !holdsTree
	})
}

// compose makes the new entries: those that stay, at the places of the others
// what they led to, and what no entry led to before the first of the host's.
func (k *relinker) compose(o *linkage.Object, entries []entry, become [][]string, further []string, found map[string]string) []string {
	var now []string
	add := func(texts ...string) {
		for _, text := range texts {
			if !slices.Contains(now, text) {
				now = append(now, text)
			}
		}
	}
	for i, e := range entries {
		if e.outside != "" {
			add(further...)
		}
		if e.keep != "" {
			add(e.keep)
		}
		add(become[i]...)
	}
	add(further...)
	return append(now, k.fromLinks(o, now, found)...)
}

// fromLinks returns further entries for a library that is also found by links
// in other folders: the loader takes the folder of the link for $ORIGIN.
func (k *relinker) fromLinks(o *linkage.Object, now []string, found map[string]string) (more []string) {
	if o.Program {
		return nil // of a program it follows the links first
	}
	home := path.Dir(o.Path)
	for _, from := range k.files.linksTo(o.Path) {
		if from == home {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			finds := func(text string) bool {
				e := k.entry(text, from, from)
				return e.inside != "" && k.has(e.inside, name, o.Machine)
			}
			if slices.ContainsFunc(now, finds) || slices.ContainsFunc(more, finds) {
				continue
			}
			text := origin(from, found[name])
			if _, ok := within(path.Join(home, strings.TrimPrefix(text, "$ORIGIN"))); ok {
				more = append(more, text)
			}
		}
	}
	return more
}

// origin spells folder dir as one that looks for it from folder home does.
func origin(home, dir string) string {
	if home == dir {
		return "$ORIGIN"
	}
	return "$ORIGIN/" + relative(home, dir)
}

// relative is the way from one folder of a package to another.
func relative(from, to string) string {
	rel, err := filepath.Rel(filepath.FromSlash(from), filepath.FromSlash(to))
	if err != nil {
		return to // both are relative: it cannot be
	}
	return filepath.ToSlash(rel)
}

package build

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// relinker makes the programs and libraries of a package find each other from
// wherever the package lies. For every ELF file it looks for what the file
// needs in the order in which the loader would have looked in the build tree,
// and notes two things: the entries that the file's RUNPATH must have, and the
// libraries of the tree that the package lacks.
type relinker struct {
	recipe  *Recipe
	tree    *buildTree
	files   *packageFiles
	objects map[string]*linkage.Object // by path in the package
	added   map[string]string          // path in the package to path in the tree
	neededs map[string]string          // path of an added file to who asked first
	runpath map[string][]string        // the new entries of files that need others
}

// relink returns the package's entries and contents with every RUNPATH set
// right and every library of the build tree that is needed. The tree is left as it is;
// what is rewritten is so in a folder that work makes.
func relink(ctx context.Context, r *Recipe, files []packager.File, dir string, c *content, work func() (*workFolder, error)) ([]packager.File, error) {
	tree, err := newBuildTree(dir, c.tree)
	if err != nil {
		return nil, err
	}
	objects, err := c.objects(ctx, files)
	if err != nil {
		return nil, err
	}
	k := &relinker{
		recipe: r, tree: tree, files: newPackageFiles(files), objects: map[string]*linkage.Object{},
		added: map[string]string{}, neededs: map[string]string{}, runpath: map[string][]string{},
	}
	for _, o := range objects {
		if o.Damage == "" && o.Machine != linkage.GPU {
			k.objects[o.Path] = o
		}
	}
	todo := slices.Sorted(maps.Keys(k.objects))
	for len(todo) > 0 {
		more, err := k.one(ctx, todo[0])
		if err != nil {
			return nil, err
		}
		todo = append(todo[1:], more...)
	}
	for p, source := range k.added {
		c.elsewhere[p] = place{c.tree, source}
	}
	if len(k.runpath) > 0 {
		w, err := work()
		if err != nil {
			return nil, err
		}
		if err := k.rewrite(ctx, c, w); err != nil {
			return nil, err
		}
	}
	return k.files.sorted(), nil
}

// one works out what one ELF file needs and returns the files that were added
// for it.
func (k *relinker) one(ctx context.Context, p string) (added []string, err error) {
	o := k.objects[p]
	old := o.Runpath
	if len(old) == 0 {
		old = o.Rpath
	}
	if len(o.Needed) == 0 && len(old) == 0 {
		return nil, nil
	}
	home := path.Dir(p)
	treeHome := home
	if source, ok := k.added[p]; ok {
		treeHome = path.Dir(source)
	}
	entries := make([]entry, len(old))
	for i, text := range old {
		entries[i] = k.entry(text, home, treeHome)
	}
	// What every entry becomes, and what no entry led to.
	become, further := make([][]string, len(entries)), []string{}
	found := map[string]string{} // library to the folder of the package
	for _, name := range o.Needed {
		if _, ok := found[name]; ok || linkage.Runtime(name) || strings.Contains(name, "/") {
			continue
		}
		at, i, isNew, err := k.find(ctx, o, home, entries, name)
		if err != nil {
			return nil, err
		}
		if isNew {
			added = append(added, path.Join(at, name))
		}
		if at == "" {
			continue // the audit will say so, if the host does not have it
		}
		found[name] = at
		switch {
		case i < 0:
			further = append(further, origin(home, at))
		case entries[i].keep == "" || entries[i].inside != at:
			become[i] = append(become[i], origin(home, at))
		}
	}
	if now := k.compose(o, entries, become, further, found); !slices.Equal(now, old) || len(o.Runpath) > 0 && len(o.Rpath) > 0 {
		k.runpath[p] = now
	}
	return added, nil
}

// ofHost tells whether the recipe asks the host for a library.
func (k *relinker) ofHost(name string) bool {
	return slices.Contains(k.recipe.Requires, packager.Requirement{Kind: packager.RequireLibrary, Name: name})
}

// find returns the folder of the package that a library is in, "" if it is in
// none, and the entry that led there, -1 if none did. It adds the library if
// only the build tree has it.
func (k *relinker) find(ctx context.Context, o *linkage.Object, home string, entries []entry, name string) (at string, by int, isNew bool, err error) {
	ofHost, outside, lost := k.ofHost(name), false, false
	for i, e := range entries {
		if e.inside != "" && k.has(e.inside, name, o.Machine) {
			return e.inside, i, false, nil
		}
		if e.inTree != "" && !ofHost {
			source, err := k.tree.library(path.Join(e.inTree, name), o.Machine)
			if err != nil {
				return "", 0, false, err
			}
			if source != "" {
				at, isNew, err := k.bring(ctx, o, home, name, source)
				return at, i, isNew, err
			}
		}
		outside, lost = outside || e.outside != "", lost || e.lost
	}
	if at, err := k.nearest(ctx, o, home, name); err != nil || at != "" {
		return at, -1, false, err
	}
	// From a folder of the host it is the host's. Whether this machine has it
	// there must not decide: another would make another package.
	if ofHost || outside && !lost {
		return "", -1, false, nil
	}
	sources, err := k.tree.named(ctx, name, o.Machine)
	if err != nil || len(sources) == 0 {
		return "", -1, false, err
	}
	for _, other := range sources[1:] {
		same, err := k.tree.same(ctx, sources[0], other)
		if err != nil {
			return "", 0, false, err
		}
		if !same {
			return "", 0, false, fmt.Errorf("%s needs %s, which the tree has more than once: %s: %w: say which by its RUNPATH, or that it is the host's by \"library: %s\" in requires",
				o.Path, name, strings.Join(sources, ", "), ErrRecipe, name)
		}
	}
	at, isNew, err = k.bring(ctx, o, home, name, sources[0])
	return at, -1, isNew, err
}

// has tells whether a folder of the package has a library of the machine.
func (k *relinker) has(dir, name, machine string) bool {
	f := k.files.resolve(path.Join(dir, name))
	return f != nil && k.objects[f.Path] != nil && k.objects[f.Path].Machine == machine
}

// nearest returns the folder of the package with a library of that name which
// is the fewest steps away; "" if there is none.
func (k *relinker) nearest(ctx context.Context, o *linkage.Object, home, name string) (string, error) {
	best, steps, file := "", 0, ""
	for _, dir := range k.files.folders(name) {
		if !k.has(dir, name, o.Machine) {
			continue
		}
		n, at := len(strings.Split(relative(home, dir), "/")), k.files.resolve(path.Join(dir, name)).Path
		if dir == home {
			n = 0
		}
		switch {
		case best == "" || n < steps:
			best, steps, file = dir, n, at
		case n == steps:
			same, err := k.tree.same(ctx, k.source(file), k.source(at))
			if same || err != nil {
				if err != nil {
					return "", err
				}
				continue
			}
			return "", fmt.Errorf("%s needs %s, which is in both %s and %s: say which by its RUNPATH: %w", o.Path, name, best, dir, ErrRecipe)
		}
	}
	return best, nil
}

// bring returns the folder of the package that has the tree's library under
// that name, after adding it beside the file that asks for it if need be.
func (k *relinker) bring(ctx context.Context, o *linkage.Object, home, name, source string) (at string, isNew bool, err error) {
	best := ""
	for _, dir := range k.files.folders(name) {
		f := k.files.resolve(path.Join(dir, name))
		if f == nil || f.Type != packager.TypeFile {
			continue
		}
		if same, err := k.tree.same(ctx, k.source(f.Path), source); err != nil {
			return "", false, err
		} else if !same {
			continue
		}
		if best == "" || dir == home || best != home && len(relative(home, dir)) < len(relative(home, best)) {
			best = dir
		}
	}
	if best != "" {
		return best, false, nil
	}
	p := path.Join(home, name)
	if f := k.files.lookup(p); f != nil {
		other := p
		if asked := k.neededs[p]; asked != "" {
			other = fmt.Sprintf("%s (for %s)", k.added[p], asked)
		}
		return "", false, fmt.Errorf("%s needs %s of the tree as %s, where another file is: %s: %w: put the two programs into folders of their own",
			o.Path, source, p, other, ErrRecipe)
	}
	if err := packager.CheckPath(p); err != nil {
		return "", false, fmt.Errorf("%s needs %s: %w: %w", o.Path, name, err, ErrRecipe)
	}
	info, err := k.tree.root.Stat(filepath.FromSlash(source))
	if err != nil {
		return "", false, err
	}
	k.files.add(packager.File{Path: p, Type: packager.TypeFile, Mode: fileMode(info.Mode()), Size: info.Size()})
	from, err := k.tree.object(source)
	if err != nil {
		return "", false, err
	}
	copied := *from
	copied.Path = p
	k.objects[p], k.added[p], k.neededs[p] = &copied, source, o.Path
	return home, true, nil
}

// source is where in the tree a file of the package comes from.
func (k *relinker) source(p string) string {
	if source, ok := k.added[p]; ok {
		return source
	}
	return p
}

// fileMode is the mode of a file in a package.
func fileMode(m fs.FileMode) packager.Mode {
	if m&0o111 != 0 {
		return 0o755
	}
	return 0o644
}

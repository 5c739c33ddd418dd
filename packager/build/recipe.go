package build

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/1bit-systems/pkg/packager"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"
)

// ErrRecipe is wrapped by every error about the recipe, about what it asks of
// the tree, or about an option beside it.
var ErrRecipe = errors.New("nothing was built")

const maxRecipe = 1 << 20

// Recipe says what of a tree becomes a package. The package comment describes
// its file.
type Recipe struct {
	Flavour     string
	Include     []string
	EntryPoints map[string]string
	FrontDoor   []string
	// Components are sorted by name; a commit is "" where a checkout has to
	// give it.
	Components []packager.Component
	Requires   []packager.Requirement
	// FixRunpath makes the package's ELF files find each other, and brings in
	// what they need of the tree.
	FixRunpath bool

	// FixesFile is the registry of fixes, relative to the recipe's folder; ""
	// if there is none. The fixes that RequireFixes names must be carried.
	FixesFile    string
	RequireFixes []string

	// lines remembers where in the file a thing stands.
	file  string
	lines map[string]int
}

// LoadRecipe reads and checks a recipe. Its errors wrap [ErrRecipe], except
// where the file could not be read.
func LoadRecipe(name string) (*Recipe, error) {
	b, err := readDocument("recipe", name)
	if err != nil {
		return nil, err
	}
	return ParseRecipe(name, b)
}

// readDocument reads a file that a person wrote, up to a byte more than one
// may have.
func readDocument(what, name string) ([]byte, error) {
	// Without waiting, should it be a pipe that nobody writes to.
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s %s: it is a %s, not a file: %w", what, name, typeName(info.Mode()), ErrRecipe)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRecipe+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return b, nil
}

// ParseRecipe checks the bytes of a recipe; name is what errors call it.
func ParseRecipe(name string, b []byte) (*Recipe, error) {
	if len(b) > maxRecipe {
		return nil, fmt.Errorf("%s: more than %d bytes: %w", name, maxRecipe, ErrRecipe)
	}
	root, err := document(name, b)
	if err != nil {
		return nil, err
	}
	r := &Recipe{file: name, lines: map[string]int{}}
	d := &decoder{file: name}
	d.recipe(r, root)
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

func (d *decoder) recipe(r *Recipe, root *yaml.Node) {
	top := d.keys(root, "", "flavour", "include", "entry_points", "front_door", "components", "requires", "fix_runpath", "fixes", "require_fixes")
	for _, key := range []string{"flavour", "include", "entry_points", "components"} {
		if d.err == nil && top[key] == nil {
			d.fail(root, key, "missing: add it")
		}
	}
	if d.err != nil {
		return
	}
	r.Flavour = d.text(top["flavour"], "flavour", packager.CheckWord)
	r.Include = d.texts(top["include"], "include", checkInclude)
	if d.err == nil && len(r.Include) == 0 {
		d.fail(top["include"], "include", "is empty: list the folders and programs to take")
	}
	for _, item := range d.items(top["include"], "include") {
		r.lines["include "+item.Value] = item.Line
	}
	r.EntryPoints = map[string]string{}
	for _, p := range d.pairs(top["entry_points"], "entry_points") {
		key := "entry_points." + p.key.Value
		r.EntryPoints[p.key.Value] = d.text(p.value, key, packager.CheckPath)
		r.lines[key] = p.key.Line
	}
	r.FrontDoor = d.texts(top["front_door"], "front_door", packager.CheckWord)
	if d.err == nil && len(r.FrontDoor) > 0 && r.EntryPoints[packager.FrontDoorEntry] == "" {
		d.fail(top["front_door"], "front_door", fmt.Sprintf("the verbs need an entry point %s: add it to entry_points", packager.FrontDoorEntry))
	}
	d.components(r, top["components"])
	d.requires(r, top["requires"])
	d.fixes(r, top["fixes"], top["require_fixes"])
	r.FixRunpath = d.flag(top["fix_runpath"], "fix_runpath")
}

// checkInclude allows what may be a path of the package, and "." for all.
func checkInclude(s string) error {
	if s == "." {
		return nil
	}
	return packager.CheckPath(s)
}

func (d *decoder) components(r *Recipe, n *yaml.Node) {
	for _, p := range d.pairs(n, "components") {
		key := "components." + p.key.Value
		fields := map[string]*yaml.Node{} // a commit may come from a checkout
		if kindOf(p.value) != "nothing" {
			fields = d.keys(p.value, key, "commit", "url")
		}
		r.lines[key] = p.key.Line
		c := packager.Component{Name: p.key.Value, Declared: true}
		c.Commit = d.text(fields["commit"], key+".commit", nil)
		c.URL = d.text(fields["url"], key+".url", nil)
		check := c
		if fields["commit"] == nil {
			check.Commit = noCommit
		}
		if err := packager.CheckComponent(check); d.err == nil && err != nil {
			d.fail(p.key, key, err.Error())
		}
		r.Components = append(r.Components, c)
	}
	slices.SortFunc(r.Components, func(a, b packager.Component) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// noCommit stands for the commit that is not known yet in checks of the rest.
const noCommit = "0000000"

func (d *decoder) fixes(r *Recipe, file, required *yaml.Node) {
	r.FixesFile = d.text(file, "fixes", nil)
	r.RequireFixes = d.texts(required, "require_fixes", nil)
	if file != nil {
		r.lines["fixes"] = file.Line
	}
	if required != nil {
		r.lines["require_fixes"] = required.Line
	}
	for _, item := range d.items(required, "require_fixes") {
		r.lines["require_fixes "+item.Value] = item.Line
	}
}

func (d *decoder) requires(r *Recipe, n *yaml.Node) {
	for i, item := range d.items(n, "requires") {
		key := fmt.Sprintf("requires[%d]", i)
		fields := d.keys(item, key, packager.RequirePath, packager.RequireDevice, packager.RequireLibrary, packager.RequireKernelParameter, "value")
		if d.err != nil {
			return
		}
		var q packager.Requirement
		for _, kind := range []string{packager.RequirePath, packager.RequireDevice, packager.RequireLibrary, packager.RequireKernelParameter} {
			if fields[kind] == nil {
				continue
			}
			if q.Kind != "" {
				d.fail(item, key, fmt.Sprintf("has both %s and %s: make two items of it", q.Kind, kind))
			}
			q.Kind, q.Name = kind, d.text(fields[kind], key+"."+kind, nil)
		}
		q.Value = d.text(fields["value"], key+".value", nil)
		if err := packager.CheckRequirement(q); d.err == nil && err != nil {
			d.fail(item, key, err.Error())
		}
		r.Requires = append(r.Requires, q)
	}
}

// wrong is an error about the recipe's key, for what only the tree can tell.
// A tree that cannot be read is not the recipe's fault.
func (r *Recipe) wrong(key string, err error) error {
	if unreadable := new(fs.PathError); !errors.As(err, &unreadable) {
		err = fmt.Errorf("%w: %w", err, ErrRecipe)
	}
	return fmt.Errorf("%s:%d: %s: %w", r.file, max(r.lines[key], 1), key, err)
}

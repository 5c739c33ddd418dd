package build

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"go.yaml.in/yaml/v3"
)

// FixRegistry is the list of what was ever fixed, one YAML file.
type FixRegistry struct {
	// Fixes are sorted by id, without an answer to whether they are carried.
	Fixes []packager.Fix

	file string
}

// LoadFixRegistry reads and checks a registry of fixes. Its errors wrap
// [ErrRecipe], except where the file could not be read.
func LoadFixRegistry(name string) (*FixRegistry, error) {
	b, err := readDocument("registry of fixes", name)
	if err != nil {
		return nil, err
	}
	return ParseFixRegistry(name, b)
}

// ParseFixRegistry checks the bytes of a registry; name is what errors call
// it.
func ParseFixRegistry(name string, b []byte) (*FixRegistry, error) {
	if len(b) > maxRecipe {
		return nil, fmt.Errorf("%s: more than %d bytes: %w", name, maxRecipe, ErrRecipe)
	}
	root, err := document(name, b)
	if err != nil {
		return nil, err
	}
	reg := &FixRegistry{file: name}
	d := &decoder{file: name}
	for i, item := range d.items(root, "the registry") {
		f := d.fix(item, fixKey(item, i+1))
		if d.err == nil && slices.ContainsFunc(reg.Fixes, func(g packager.Fix) bool { return g.ID == f.ID }) {
			d.fail(item, f.ID, "is there twice: remove one")
		}
		reg.Fixes = append(reg.Fixes, f)
	}
	if d.err != nil {
		return nil, d.err
	}
	slices.SortFunc(reg.Fixes, func(a, b packager.Fix) int { return strings.Compare(a.ID, b.ID) })
	return reg, nil
}

// fixKey names a fix in errors: by its number, and its id if it has one.
func fixKey(n *yaml.Node, number int) string {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if id := n.Content[i+1]; n.Content[i].Value == "id" && id.Kind == yaml.ScalarNode {
			return fmt.Sprintf("fix %d (%q)", number, id.Value)
		}
	}
	return fmt.Sprintf("fix %d", number)
}

func (d *decoder) fix(n *yaml.Node, key string) packager.Fix {
	fields := d.keys(n, key, "id", "title", "component", "commits", "off")
	for _, k := range []string{"id", "title", "component", "commits"} {
		if d.err == nil && fields[k] == nil {
			d.fail(n, key+"."+k, "missing: add it")
		}
	}
	f := packager.Fix{
		ID: d.text(fields["id"], key+".id", nil), Title: d.text(fields["title"], key+".title", nil),
		Component: d.text(fields["component"], key+".component", nil), Off: d.text(fields["off"], key+".off", nil),
	}
	f.Commits = d.texts(fields["commits"], key+".commits", nil)
	if err := packager.CheckFix(f); d.err == nil && err != nil {
		d.fail(n, key, err.Error())
	}
	return f
}

// registry reads the recipe's registry of fixes, nil if it names none, and
// looks whether what the recipe requires is in it.
func (r *Recipe) registry() (*FixRegistry, error) {
	if r.FixesFile == "" {
		if len(r.RequireFixes) > 0 {
			return nil, r.wrong("require_fixes", fmt.Errorf("needs a registry: name it with fixes: FILE"))
		}
		return nil, nil
	}
	name := r.FixesFile
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(r.file), name)
	}
	reg, err := LoadFixRegistry(name)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: fixes: %w", r.file, max(r.lines["fixes"], 1), err)
	}
	for _, id := range r.RequireFixes {
		if !slices.ContainsFunc(reg.Fixes, func(f packager.Fix) bool { return f.ID == id }) {
			return nil, r.wrong("require_fixes "+id, fmt.Errorf("%s has no such fix: add it there or correct the id", reg.file))
		}
	}
	return reg, nil
}

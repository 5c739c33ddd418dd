package build

import (
	"path"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// packageFiles are the entries of a package that is being put together.
type packageFiles struct {
	m     packager.Manifest
	dirs  map[string][]string // name to the folders with an entry of that name
	links map[string][]string // file to the folders with links to it
}

func newPackageFiles(files []packager.File) *packageFiles {
	p := &packageFiles{m: packager.Manifest{Files: slices.Clone(files)}, dirs: map[string][]string{}, links: map[string][]string{}}
	for _, f := range files {
		p.index(f)
		if f.Type == packager.TypeLink {
			if to := p.resolve(f.Path); to != nil && !slices.Contains(p.links[to.Path], path.Dir(f.Path)) {
				p.links[to.Path] = append(p.links[to.Path], path.Dir(f.Path))
			}
		}
	}
	return p
}

func (p *packageFiles) index(f packager.File) {
	if f.Type != packager.TypeDir {
		name := path.Base(f.Path)
		p.dirs[name] = append(p.dirs[name], path.Dir(f.Path))
	}
}

func (p *packageFiles) lookup(name string) *packager.File { return p.m.Lookup(name) }

// resolve follows the package's links to what is at a path; nil is nothing.
func (p *packageFiles) resolve(name string) *packager.File {
	f, err := p.m.Resolve(name)
	if err != nil {
		return nil
	}
	return f
}

// folders are those with a file or link of that name, sorted but for what was
// added.
func (p *packageFiles) folders(name string) []string { return p.dirs[name] }

// linksTo are the folders with links to a file.
func (p *packageFiles) linksTo(name string) []string { return p.links[name] }

func (p *packageFiles) add(f packager.File) {
	i, _ := slices.BinarySearchFunc(p.m.Files, f.Path, func(f packager.File, name string) int { return strings.Compare(f.Path, name) })
	p.m.Files = slices.Insert(p.m.Files, i, f)
	p.index(f)
}

func (p *packageFiles) sorted() []packager.File { return p.m.Files }

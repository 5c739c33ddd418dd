package packager

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// FrontDoorEntry is the entry point that the front-door verbs are handed to.
const FrontDoorEntry = "1bit"

// Lookup returns the entry of that path, nil if there is none.
func (m *Manifest) Lookup(p string) *File {
	i, ok := slices.BinarySearchFunc(m.Files, p, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok {
		return nil
	}
	return &m.Files[i]
}

// checkLinks holds every link of a package that comes from elsewhere to the
// package: its target is relative and, followed through all other links, is
// an entry. What an imported directory's links point at is its owner's matter:
// nothing is ever extracted through them.
func (m *Manifest) checkLinks() error {
	for i := range m.Files {
		f := &m.Files[i]
		if f.Type != TypeLink {
			continue
		}
		if len(f.Target) > maxPath {
			return fmt.Errorf("target of link %q has %d bytes, limit %d", f.Path, len(f.Target), maxPath)
		}
		if err := checkText("target of link "+f.Path, f.Target); err != nil {
			return err
		}
		if m.Imported {
			continue
		}
		if _, err := m.resolve(f.Path); err != nil {
			return fmt.Errorf("link %q to %q: %w", f.Path, f.Target, err)
		}
	}
	return nil
}

// resolve follows p through the links of the package as the kernel would and
// returns the file or folder it ends at. Leaving the package, even to come
// back, is an error, and so is a loop or a missing entry.
func (m *Manifest) resolve(p string) (*File, error) {
	if path.IsAbs(p) {
		return nil, fmt.Errorf("%q is not relative", p)
	}
	root := &File{Path: ".", Type: TypeDir, Mode: 0o755}
	at, hops, steps := root, 0, 0
	todo := strings.Split(p, "/")
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		if steps++; steps > maxSteps {
			return nil, fmt.Errorf("%q goes through more than %d names", p, maxSteps)
		}
		if at.Type != TypeDir {
			return nil, fmt.Errorf("%q is not a folder", at.Path)
		}
		switch part {
		case "", ".":
			continue
		case "..":
			if at == root {
				return nil, fmt.Errorf("%q leaves the package", p)
			}
			if dir := path.Dir(at.Path); dir == "." {
				at = root
			} else {
				at = m.Lookup(dir)
			}
			continue
		}
		next := m.Lookup(path.Join(at.Path, part))
		if next == nil {
			return nil, fmt.Errorf("%q is not in the package", path.Join(at.Path, part))
		}
		if next.Type != TypeLink {
			at = next
			continue
		}
		if hops++; hops > maxHops {
			return nil, fmt.Errorf("%q goes through more than %d links", p, maxHops)
		}
		if path.IsAbs(next.Target) {
			return nil, fmt.Errorf("link %q to %q leaves the package", next.Path, next.Target)
		}
		todo = append(strings.Split(next.Target, "/"), todo...)
	}
	return at, nil
}

// Resolve follows p through the links of the package as the kernel would and
// returns the file or folder it ends at. Leaving the package, even to come
// back, is an error, and so is a loop or a missing entry.
func (m *Manifest) Resolve(p string) (*File, error) { return m.resolve(p) }

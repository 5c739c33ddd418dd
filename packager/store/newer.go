package store

import (
	"cmp"
	"slices"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/version"
)

// Newer lists those of some packages that are newer than one of the same flavour: by their tags where these have an order,
// else by when they were installed. The newest comes first, of those with a tag before those without one.
func Newer(list []*Package, than *Package) []*Package {
	var out []*Package
	for _, p := range list {
		if p.Path != than.Path && p.Digest != than.Digest && p.Manifest.Flavour == than.Manifest.Flavour && compareAge(p, than) > 0 {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *Package) int {
		if (a.Manifest.Tag == "") != (b.Manifest.Tag == "") {
			return cmp.Compare(b.Manifest.Tag, a.Manifest.Tag)
		}
		return compareAge(b, a)
	})
	return out
}

// compareAge compares two packages of a flavour; the older one is less.
func compareAge(a, b *Package) int {
	if c, err := version.Compare(tag(a.Manifest), tag(b.Manifest)); err == nil && c != 0 {
		return c
	}
	return a.InstalledAt.Compare(b.InstalledAt)
}

func tag(m *packager.Manifest) version.Tag {
	t, _ := version.Parse(m.Tag) // what is no tag has no order
	return t.Of(m.Flavour)
}

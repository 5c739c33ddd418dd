package store

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/packager"
)

var digestPrefix = lazyregexp.New(`^[0-9a-f]{6,64}$`)

// Find returns the package that query names: by its name or its folder, its
// id, its version or tag, or at least 6 digits of its digest, with or without
// "sha256:". A name beats an id or version, and those beat a digest. Nothing
// found wraps [ErrNotInstalled], several [ErrAmbiguous]; both errors list
// names. Of a package that is in several stores the own one is found.
func (s *Store) Find(ctx context.Context, query string) (*Package, error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, err
	}
	version, _ := packager.ParseVersion(query)
	digest := strings.TrimPrefix(query, "sha256:")
	for _, fits := range []func(*Package) bool{
		func(p *Package) bool { return p.Path == query },
		func(p *Package) bool { return p.Name == query || p.Manifest.DirName() == query },
		func(p *Package) bool {
			return p.Manifest.ID == query || p.Manifest.Tag == query && query != "" ||
				version != "" && p.Manifest.Version == version
		},
		func(p *Package) bool {
			return digestPrefix().MatchString(digest) && strings.HasPrefix(p.Digest, "sha256:"+digest)
		},
	} {
		var found []*Package
		for _, p := range list {
			same := func(q *Package) bool { return q.Digest == p.Digest }
			if fits(p) && !slices.ContainsFunc(found, same) {
				found = append(found, p)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return nil, fmt.Errorf("find package %q among %s: %w", query, names(found), ErrAmbiguous)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("find package %q: %w: nothing is in %s", query, ErrNotInstalled, s.Dir)
	}
	return nil, fmt.Errorf("find package %q: %w: there are %s", query, ErrNotInstalled, names(list))
}

func names(list []*Package) string {
	var out []string
	for i, p := range list {
		name := p.Name
		twin := func(q *Package) bool { return q.Name == p.Name && q != p }
		if slices.ContainsFunc(list, twin) {
			if i > 0 && list[i-1].Name == p.Name && list[i-1].Digest == p.Digest {
				continue
			}
			name += " in " + filepath.Dir(p.Path)
		}
		if p.Manifest.Tag != "" {
			name += " (" + p.Manifest.Tag + ")"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

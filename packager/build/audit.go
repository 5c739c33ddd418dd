package build

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// audit does what the dynamic loader would do with the package and writes what
// it needs of a host into the manifest. What would not work elsewhere is an
// error that names every problem and wraps [ErrUnfit].
func audit(ctx context.Context, r *Recipe, m *packager.Manifest, c *content, tree string) error {
	objects, err := c.objects(ctx, m.Files)
	if err != nil {
		return err
	}
	forbidden, err := spellings(tree)
	if err != nil {
		return err
	}
	l := linkage.Resolve(m, objects, forbidden...)
	if len(l.Problems) > 0 {
		text := []string{fmt.Sprintf("check what the files of package %s are linked with", m.Name())}
		for _, p := range l.Problems {
			text = append(text, p.Path+" "+p.What)
		}
		if name := missing(l); name != "" {
			text = append(text, remedy(r, name))
		}
		return fmt.Errorf("%s: %w", strings.Join(text, "\n"), ErrUnfit)
	}
	m.Machine, m.GPUTargets, m.Glibc, m.HostLibraries = l.Machine, l.GPUTargets, l.Glibc, l.Host
	return nil
}

// missing is the first library that a file needs and that nobody provides, ""
// if there is none.
func missing(l *linkage.Linkage) string {
	for _, p := range l.Problems {
		if p.Library != "" && l.Inside[p.Path][p.Library] == "" && l.Elsewhere[p.Path][p.Library] == "" {
			return p.Library
		}
	}
	return ""
}

// remedy says what a recipe does about a library that is missing.
func remedy(r *Recipe, library string) string {
	declare := fmt.Sprintf("requires: - library: %s asks it of the host", library)
	if r.FixRunpath {
		return "in the recipe, " + declare + "; fix_runpath did not find it in the tree"
	}
	return "in the recipe, fix_runpath: true brings in what the tree has; " + declare
}

// spellings are the absolute paths of a build tree: as it was given and without
// links. Of the root folder there is none, as everything is inside of it.
func spellings(tree string) ([]string, error) {
	given, err := filepath.Abs(tree)
	if err != nil {
		return nil, fmt.Errorf("find tree: %w", err)
	}
	path, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, fmt.Errorf("find tree: %w", err)
	}
	if path == "/" {
		return nil, nil
	}
	return []string{given, path}, nil
}

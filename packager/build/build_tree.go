package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// buildTree is the tree a package is made of, as a place to find libraries in.
// Paths in it are relative, without links, with slashes.
type buildTree struct {
	given   string // absolute, as the caller spelled it
	path    string // absolute, without links
	root    *os.Root
	objects map[string]*linkage.Object // that were read; nil for no ELF file
	names   map[string][]string        // of all libraries, once they were asked for
}

func newBuildTree(dir string, root *os.Root) (*buildTree, error) {
	given, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(given)
	if err != nil {
		return nil, err
	}
	return &buildTree{given: given, path: path, root: root, objects: map[string]*linkage.Object{}}, nil
}

// inside returns where in the tree an absolute path is, by whatever links, or
// would be if it were there.
func (t *buildTree) inside(abs string) (rel string, ok bool) {
	if path, err := real(abs); err == nil {
		if rel, ok := below(t.path, path); ok {
			return rel, true
		}
	}
	if rel, ok := below(t.given, abs); ok {
		return rel, true
	}
	return below(t.path, abs)
}

// below returns the path relative to dir if it is dir or inside.
func below(dir, path string) (rel string, ok bool) {
	rel, err := filepath.Rel(dir, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// library returns the file that a loader which looks for a library of that
// machine at path p of the tree would load; "" if none of the tree's.
func (t *buildTree) library(p, machine string) (string, error) {
	at, err := filepath.EvalSymlinks(filepath.Join(t.path, filepath.FromSlash(p)))
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return "", err
		}
		return "", nil // not there, or a link to nowhere
	}
	rel, ok := below(t.path, at)
	if !ok {
		return "", nil
	}
	o, err := t.object(rel)
	if err != nil || o == nil || o.Machine != machine {
		return "", err
	}
	return rel, nil
}

// object reads an ELF file of the tree; nil is none.
func (t *buildTree) object(rel string) (*linkage.Object, error) {
	if o, ok := t.objects[rel]; ok {
		return o, nil
	}
	info, err := t.root.Stat(filepath.FromSlash(rel))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		t.objects[rel] = nil
		return nil, nil
	}
	f, err := t.root.Open(filepath.FromSlash(rel))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o, err := linkage.ReadFile(f, rel)
	if err != nil {
		return nil, err
	}
	t.objects[rel] = o
	return o, nil
}

// named returns the files of the tree that have a library's name, by links
// too, and are of the machine.
func (t *buildTree) named(ctx context.Context, name, machine string) ([]string, error) {
	if t.names == nil {
		if err := t.index(ctx); err != nil {
			return nil, fmt.Errorf("look for libraries in the tree: %w", err)
		}
	}
	var found []string
	for _, p := range t.names[name] {
		at, err := t.library(p, machine)
		if err != nil {
			return nil, err
		}
		if at != "" && !slices.Contains(found, at) {
			found = append(found, at)
		}
	}
	return found, nil
}

// same tells whether two files of the tree hold the same bytes.
func (t *buildTree) same(ctx context.Context, a, b string) (bool, error) {
	if a == b {
		return true, nil
	}
	var sizes [2]int64
	var sums [2]string
	for i, p := range []string{a, b} {
		info, err := t.root.Stat(filepath.FromSlash(p))
		if err != nil {
			return false, err
		}
		sizes[i] = info.Size()
	}
	if sizes[0] != sizes[1] {
		return false, nil
	}
	for i, p := range []string{a, b} {
		f, err := t.root.Open(filepath.FromSlash(p))
		if err != nil {
			return false, err
		}
		sums[i], err = packager.HashReader(ctx, f, nil)
		f.Close()
		if err != nil {
			return false, err
		}
	}
	return sums[0] == sums[1], nil
}

func (t *buildTree) index(ctx context.Context) error {
	names := map[string][]string{}
	err := fs.WalkDir(t.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		switch {
		case errors.Is(err, fs.ErrPermission) && p != ".":
			return fs.SkipDir // a folder that the build did not make
		case err != nil:
			return err
		case d.IsDir():
			if work, _ := filepath.Match(workPattern, d.Name()); work || d.Name() == ".git" {
				return fs.SkipDir
			}
		case strings.Contains(d.Name(), ".so"):
			names[d.Name()] = append(names[d.Name()], p)
		}
		return nil
	})
	t.names = names
	return err
}

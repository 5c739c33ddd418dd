package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// collect returns the entries of the tree that the recipe includes, sorted,
// without digests.
func collect(ctx context.Context, r *Recipe, tree *os.Root) ([]packager.File, error) {
	found := map[string]packager.File{}
	for _, include := range r.Include {
		key := "include " + include
		if err := addParents(found, tree, include); err != nil {
			return nil, r.wrong(key, err)
		}
		// The walk below follows no link, except one it is started at.
		if info, err := tree.Lstat(include); err != nil {
			return nil, r.wrong(key, notThere(err, "is not in the tree: build it or remove the line"))
		} else if !info.IsDir() {
			if err := add(found, tree, include, info); err != nil {
				return nil, r.wrong(key, err)
			}
			continue
		}
		err := fs.WalkDir(tree.FS(), include, func(p string, d fs.DirEntry, err error) error {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil || p == "." {
				return err
			}
			info, err := tree.Lstat(p)
			if err != nil {
				return err
			}
			return add(found, tree, p, info)
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, r.wrong(key, err)
		}
	}
	files := make([]packager.File, 0, len(found))
	for _, f := range found {
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b packager.File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

func notThere(err error, what string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(what)
	}
	return err
}

// addParents lists the folders above an included path. Each must be a real
// folder: what is behind a link is not the tree's.
func addParents(found map[string]packager.File, tree *os.Root, include string) error {
	for dir := path.Dir(include); dir != "."; dir = path.Dir(dir) {
		info, err := tree.Lstat(dir)
		if err != nil {
			return notThere(err, fmt.Sprintf("folder %q is not in the tree", dir))
		}
		if !info.IsDir() {
			return fmt.Errorf("%q is not a folder of the tree but a %s: include what it points at", dir, typeName(info.Mode()))
		}
		if err := add(found, tree, dir, info); err != nil {
			return err
		}
	}
	return nil
}

func add(found map[string]packager.File, tree *os.Root, p string, info fs.FileInfo) error {
	if err := packager.CheckPath(p); err != nil {
		return err
	}
	if base := path.Base(p); base == ".DS_Store" || strings.HasPrefix(base, "._") {
		return fmt.Errorf("%q is a leftover of another system: delete it", p)
	}
	f := packager.File{Path: p}
	switch mode := info.Mode(); {
	case mode.IsDir():
		f.Type, f.Mode = packager.TypeDir, 0o755
	case mode&fs.ModeSymlink != 0:
		target, err := tree.Readlink(p)
		if err != nil {
			return err
		}
		f.Type, f.Target = packager.TypeLink, target
	case !mode.IsRegular():
		return fmt.Errorf("%q is a %s, which no package can hold: remove it", p, typeName(mode))
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return fmt.Errorf("%q is setuid or setgid: chmod ug-s it", p)
	default:
		f.Type, f.Mode, f.Size = packager.TypeFile, 0o644, info.Size()
		if mode&0o111 != 0 {
			f.Mode = 0o755
		}
	}
	found[p] = f
	return nil
}

func typeName(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m.IsRegular():
		return "file"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	}
	return "device"
}

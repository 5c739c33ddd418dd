package build

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
	"golang.org/x/sync/errgroup"
)

// content is where the bytes of a package's files are: in the build tree under
// the same path, or where elsewhere says.
type content struct {
	tree      *os.Root
	elsewhere map[string]place // by path in the package
}

type place struct {
	root *os.Root
	name string
}

func (c *content) of(p string) place {
	if at, ok := c.elsewhere[p]; ok {
		return at
	}
	return place{c.tree, p}
}

func (c *content) open(p string) (*os.File, error) {
	at := c.of(p)
	return at.root.Open(filepath.FromSlash(at.name))
}

// hash fills in the digests of the regular files.
func (c *content) hash(ctx context.Context, files []packager.File) error {
	byRoot := map[*os.Root][]int{}
	for i := range files {
		root := c.of(files[i].Path).root
		byRoot[root] = append(byRoot[root], i)
	}
	for root, indices := range byRoot {
		part := make([]packager.File, len(indices))
		for k, i := range indices {
			part[k] = files[i]
			part[k].Path = c.of(files[i].Path).name
		}
		if err := packager.HashFiles(ctx, root, part); err != nil {
			return err
		}
		for k, i := range indices {
			files[i].SHA256 = part[k].SHA256
		}
	}
	return nil
}

// objects reads what a loader must know of the regular files, in their order.
// A damaged ELF file is an object with nothing but its path and Damage.
func (c *content) objects(ctx context.Context, files []packager.File) ([]*linkage.Object, error) {
	found := make([]*linkage.Object, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range files {
		f := &files[i]
		if f.Type != packager.TypeFile {
			continue
		}
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := c.open(f.Path)
			if err != nil {
				return err
			}
			defer r.Close()
			found[i], err = linkage.ReadFile(r, f.Path)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("read ELF files: %w", err)
	}
	objects := found[:0]
	for _, o := range found {
		if o != nil {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

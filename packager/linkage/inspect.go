package linkage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/packager"
)

// Inspect reads every regular file of a package whose folder is root and
// returns the ELF files and GPU code among them, sorted by path. A damaged ELF
// file is returned with Object.Damage; an error is for what could not be read.
func Inspect(ctx context.Context, root *os.Root, m *packager.Manifest) ([]*Object, error) {
	var mu sync.Mutex
	var found []*Object
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range m.Files {
		f := &m.Files[i]
		if f.Type != packager.TypeFile || f.Size == 0 {
			continue
		}
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := root.Open(filepath.FromSlash(f.Path))
			if err != nil {
				return err
			}
			defer r.Close()
			o, err := ReadFile(r, f.Path)
			if err != nil || o == nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, o)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("look at the ELF files of %s: %w", m.Name(), err)
	}
	SortObjects(found)
	return found, nil
}

// ReadFile is [Read] for an open file of a package: the object has its path,
// and damage is part of it, no error.
func ReadFile(f *os.File, path string) (*Object, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	o, err := Read(f, info.Size())
	switch {
	case errors.Is(err, ErrMalformed):
		o = &Object{Damage: strings.TrimSuffix(err.Error(), ": "+ErrMalformed.Error())}
		var cutOff *cutOffError
		o.CutOff = errors.As(err, &cutOff)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if o != nil {
		o.Path = path
	}
	return o, nil
}

// SortObjects sorts by path.
func SortObjects(objects []*Object) {
	slices.SortFunc(objects, func(a, b *Object) int { return strings.Compare(a.Path, b.Path) })
}

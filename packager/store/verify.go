package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
	"golang.org/x/sync/errgroup"
)

// Verification is the result of [Store.Verify].
type Verification struct {
	ID       string    `json:"id"` // the package's name
	OK       bool      `json:"ok"`
	Files    int       `json:"files"` // regular files looked at
	Bytes    int64     `json:"bytes"` // content read
	Problems []Problem `json:"problems"`
}

// Problem is one difference between a package and its manifest, or something
// that the package needs and this host lacks.
type Problem struct {
	Path string `json:"path"`
	What string `json:"what"`
	// Host is true where the package is right and the host is not.
	Host bool `json:"host,omitempty"`
}

// Verify compares every byte, mode and link of a package with the manifest
// that p holds, and that with the one on disk, and looks for the libraries
// that its programs need on this host. It finds every difference, not only the
// first; the error is for what kept it from looking, and wraps
// [ErrNotInstalled] if the package was removed meanwhile. progress may be nil;
// it is told the bytes read and their total, by one goroutine at a time.
func (s *Store) Verify(ctx context.Context, p *Package, progress func(done, total int64)) (*Verification, error) {
	v := &verifier{p: p, progress: progress, result: &Verification{ID: p.Name, Problems: []Problem{}}}
	if err := v.run(ctx, s); err != nil {
		return nil, fmt.Errorf("verify %s: %w", p.Name, err)
	}
	slices.SortFunc(v.result.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.What, b.What))
	})
	v.result.OK = len(v.result.Problems) == 0
	if _, err := os.Lstat(p.Path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("verify %s: %w any more: it was removed meanwhile", p.Name, ErrNotInstalled)
	}
	return v.result, nil
}

type verifier struct {
	p        *Package
	progress func(done, total int64)

	mu      sync.Mutex
	result  *Verification
	objects []*linkage.Object // of the files that are right
	dirs    []string          // that launchers name
}

func (v *verifier) problem(path, what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.result.Problems = append(v.result.Problems, Problem{Path: path, What: what})
}

func (v *verifier) run(ctx context.Context, s *Store) error {
	v.manifest(s)
	if what := topProblem(v.p); what != "" {
		v.problem(".", what)
	}
	extras, err := extraFiles(v.p)
	if err != nil {
		v.problem(".", err.Error())
	}
	for _, name := range extras {
		v.problem(name, "is not in the manifest")
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range v.p.Manifest.Files {
		group.Go(func() error { return v.file(ctx, &v.p.Manifest.Files[i]) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	v.host(s)
	return nil
}

// manifest compares the manifest on disk with the one in hand.
func (v *verifier) manifest(s *Store) {
	name := filepath.Join(v.p.Path, packager.ManifestName)
	if v.p.Imported {
		home := s.home(v.p)
		if home == nil {
			home = s
		}
		name = home.record(filepath.Base(v.p.Path))
	}
	raw, info, err := readSmall(name)
	if err != nil {
		v.problem(packager.ManifestName, err.Error())
		return
	}
	m, err := packager.DecodeManifest(raw)
	if err != nil {
		v.problem(packager.ManifestName, err.Error())
		return
	}
	if digest, err := m.Digest(); err != nil || digest != v.p.Digest {
		v.problem(packager.ManifestName, fmt.Sprintf("has digest %s, not %s", digest, v.p.Digest))
	}
	if !v.p.Imported {
		if what := modeDiffers(info, 0o444); what != "" {
			v.problem(packager.ManifestName, what)
		}
	}
}

func (v *verifier) file(ctx context.Context, f *packager.File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, what := entry(v.p, f)
	if what == "" {
		if mode := modeProblem(v.p, f, info); mode != "" {
			v.problem(f.Path, mode)
		}
	} else {
		v.problem(f.Path, what)
	}
	if f.Type != packager.TypeFile {
		return nil
	}
	v.mu.Lock()
	v.result.Files++
	v.mu.Unlock()
	if what != "" {
		return nil
	}
	r, err := os.Open(filepath.Join(v.p.Path, filepath.FromSlash(f.Path)))
	if err != nil {
		v.problem(f.Path, err.Error())
		return nil
	}
	defer r.Close()
	sum, err := packager.HashReader(ctx, r, v.count)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		v.problem(f.Path, err.Error())
	case sum != f.SHA256:
		v.problem(f.Path, fmt.Sprintf("has SHA-256 %s, not %s", sum, f.SHA256))
	default:
		v.inspect(r, f)
	}
	return nil
}

func (v *verifier) count(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.result.Bytes += int64(n)
	if v.progress != nil {
		v.progress(v.result.Bytes, v.p.Size)
	}
}

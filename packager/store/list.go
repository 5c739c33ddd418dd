package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"golang.org/x/sys/unix"
)

// List returns every package that is whole, those of the stores that are also
// seen too, sorted by name. It also sweeps what dead processes left, as far as
// it may.
func (s *Store) List(ctx context.Context) ([]*Package, error) {
	s.sweep(ctx)
	var list []*Package
	for _, one := range s.stores() {
		part, err := one.list(ctx)
		if one != s && errors.Is(err, fs.ErrPermission) {
			continue // what may not be read cannot be used either
		}
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	byName(list)
	return list, nil
}

// list returns the packages that lie in this store itself.
func (s *Store) list(ctx context.Context) ([]*Package, error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var list []*Package
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !e.IsDir() || !strings.HasPrefix(e.Name(), packager.DirPrefix) {
			continue
		}
		// What has no valid manifest is no package, whatever its name.
		if p, err := s.load(e.Name()); err == nil {
			list = append(list, p)
		}
	}
	return list, nil
}

// load reads the package in the directory of that base name and looks at it.
func (s *Store) load(base string) (*Package, error) {
	dir, err := os.Lstat(filepath.Join(s.Dir, base))
	if err != nil {
		return nil, err
	}
	p, err := s.read(base)
	if err != nil {
		return nil, err
	}
	p.State, p.Detail = look(p)
	// A package that goes while it is looked at lacks files, and then is none.
	if now, err := os.Lstat(p.Path); err != nil {
		return nil, err
	} else if !os.SameFile(dir, now) {
		return nil, fmt.Errorf("%s was replaced while it was read: try again", p.Path)
	}
	return p, nil
}

// read is load without the look: the package has no state.
func (s *Store) read(base string) (*Package, error) {
	p := &Package{Path: filepath.Join(s.Dir, base)}
	dir, err := os.Lstat(p.Path)
	if err != nil {
		return nil, err
	}
	if !dir.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", p.Path)
	}
	at := filepath.Join(p.Path, packager.ManifestName)
	raw, info, err := readSmall(at)
	if errors.Is(err, fs.ErrNotExist) {
		p.Imported = true
		at = s.record(base)
		raw, info, err = readSmall(at)
	}
	if err != nil {
		return nil, err
	}
	if p.Manifest, err = packager.DecodeManifest(raw); err != nil {
		return nil, fmt.Errorf("read %s: %w", at, err)
	}
	if p.Manifest.Imported != p.Imported || p.Manifest.DirName() != base {
		return nil, fmt.Errorf("%s is not the manifest of %s", at, p.Path)
	}
	if err := s.describe(p, raw, info); err != nil {
		return nil, err
	}
	return p, nil
}

// describe fills in what follows from a package's manifest and its file.
func (s *Store) describe(p *Package, raw []byte, info fs.FileInfo) error {
	if p.Imported {
		digest, err := p.Manifest.Digest()
		if err != nil {
			return err
		}
		p.Digest = digest
	} else {
		sum := sha256.Sum256(raw) // it has one spelling only
		p.Digest = "sha256:" + hex.EncodeToString(sum[:])
	}
	p.Name, p.Size, p.InstalledAt = p.Manifest.Name(), p.Manifest.Size(), info.ModTime()
	p.native = s.readNative(filepath.Base(p.Path))
	switch {
	case p.native != nil:
		p.InstalledBy, p.InstalledAt = p.native.format, p.native.since
	case p.Imported:
		p.InstalledBy = InstalledByImport
	default:
		p.InstalledBy = InstalledByUs
	}
	return nil
}

// record is where the manifest of an imported directory is kept.
func (s *Store) record(base string) string {
	return filepath.Join(s.StateDir, "imported", strings.TrimPrefix(base, packager.DirPrefix)+".json")
}

// readSmall reads a manifest file, which must be a regular file.
func readSmall(name string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > packager.MaxManifest {
		return nil, nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, int64(packager.MaxManifest))
	}
	b, err := io.ReadAll(io.LimitReader(f, packager.MaxManifest+1))
	return b, info, err
}

// AtPath returns the package whose directory contains path, which need not
// exist itself.
func (s *Store) AtPath(path string) (*Package, bool) {
	for _, one := range s.stores() {
		if p, ok := one.atPath(path); ok {
			return p, true
		}
	}
	return nil, false
}

func (s *Store) atPath(path string) (*Package, bool) {
	if !filepath.IsAbs(path) {
		return nil, false
	}
	dirs := []string{s.Dir}
	if real, err := filepath.EvalSymlinks(s.Dir); err == nil && real != s.Dir {
		dirs = append(dirs, real)
	}
	paths := []string{filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != paths[0] {
		paths = append(paths, real)
	}
	for _, p := range paths {
		for _, dir := range dirs {
			rest, ok := strings.CutPrefix(p, strings.TrimSuffix(dir, "/")+"/")
			if !ok {
				continue
			}
			base, _, _ := strings.Cut(rest, "/")
			if !strings.HasPrefix(base, packager.DirPrefix) {
				continue
			}
			if found, err := s.load(base); err == nil {
				return found, true
			}
		}
	}
	return nil, false
}

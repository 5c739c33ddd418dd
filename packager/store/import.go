package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/packager"
)

// Import takes in a package directory that has no manifest, as the old script
// made them: 1bit-<flavour>-<id> in the data home. Nothing in it is changed;
// its manifest is computed and kept in the state folder. The id, if it looks
// like one, is taken for the engine's commit and marked as declared; other
// pins are unknown. Programs are found by the layout.
//
// Importing it again is fine as long as its content is the same, else the
// error wraps [ErrChanged]. It wraps [ErrPlace] where the place or the name is
// wrong, and [ErrRefused] where the content is.
func (s *Store) Import(ctx context.Context, dir string) (*Package, error) {
	p, err := s.takeIn(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", dir, err)
	}
	return p, nil
}

func (s *Store) takeIn(ctx context.Context, dir string) (*Package, error) {
	s.sweep(ctx)
	base, err := s.own(dir)
	if err != nil {
		return nil, err
	}
	// An import and a removal of one directory must not meet.
	unlock, err := s.lock(ctx, false, "shared")
	if err != nil {
		return nil, err
	}
	defer unlock()
	m, err := compute(ctx, filepath.Join(s.Dir, base), base)
	if err != nil {
		return nil, err
	}
	digest, err := m.Digest()
	if err != nil {
		return nil, err
	}
	record := s.record(base)
	if old, err := s.load(base); err == nil && old.Digest != digest {
		return nil, fmt.Errorf("%w: it was imported with digest %s and has %s now (%s): restore it, or delete %s to take it in as it is", ErrChanged, old.Digest, digest, old.Detail, record)
	}
	// A record that cannot be read says nothing of what it knew, so it is not replaced.
	if _, _, err := readSmall(record); err == nil {
		if _, err := s.load(base); err != nil {
			return nil, fmt.Errorf("%w: its record is damaged (%w): restore it, or delete %s to take it in as it is", ErrChanged, err, record)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read its record: %w: make it readable, or delete it to take it in as it is", err)
	}
	b, err := m.Encode()
	if err != nil {
		return nil, err
	}
	if err := atomicfile.MkdirAll(filepath.Dir(record), 0o700); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(record, b, 0o644); err != nil {
		return nil, err
	}
	if err := s.show(); err != nil {
		return nil, fmt.Errorf("let every account read its manifest: %w", err)
	}
	return s.load(base)
}

// show lets every account read the manifests of what was imported into a
// store that all may use: they may pass through the state folder, not list
// it, nor open another file in it: a lock of theirs would hold up everybody.
func (s *Store) show() error {
	if !s.Shared {
		return nil
	}
	if err := os.Chmod(s.lockFile(), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for dir, mode := range map[string]fs.FileMode{s.StateDir: 0o111, filepath.Dir(s.record("")): 0o555} {
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm()&mode != mode {
			err = os.Chmod(dir, info.Mode().Perm()|mode)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// own returns the base name of a directory that may be imported.
func (s *Store) own(dir string) (string, error) {
	dir = absolute(dir)
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	base := filepath.Base(dir)
	if !info.IsDir() {
		return "", fmt.Errorf("%w: it is not a directory", ErrPlace)
	}
	parent, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return "", err
	}
	if home, err := os.Stat(s.Dir); err != nil || !os.SameFile(parent, home) {
		if _, _, err := split(base); err != nil {
			base = packager.DirPrefix + "FLAVOUR-ID"
		}
		return "", fmt.Errorf("%w: it is not in the data home: move it to %s", ErrPlace, filepath.Join(s.Dir, base))
	}
	if _, _, err := split(base); err != nil {
		return "", fmt.Errorf("%w: its %w", ErrPlace, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, packager.ManifestName)); err == nil {
		return "", fmt.Errorf("%w: it has a manifest of its own: it is installed, or broken, but not to be imported (1bit pkg verify tells)", ErrRefused)
	}
	return base, nil
}

// split takes a directory's name apart. The last hyphen ends the flavour.
func split(base string) (flavour, id string, err error) {
	name, ok := strings.CutPrefix(base, packager.DirPrefix)
	i := strings.LastIndexByte(name, '-')
	if !ok || i < 0 {
		return "", "", fmt.Errorf("name is not of the form %s<flavour>-<id>: rename it", packager.DirPrefix)
	}
	flavour, id = name[:i], name[i+1:]
	if err := packager.CheckWord(flavour); err != nil {
		return "", "", fmt.Errorf("flavour %w: rename it", err)
	}
	if err := packager.CheckWord(id); err != nil {
		return "", "", fmt.Errorf("id %w: rename it", err)
	}
	return flavour, id, nil
}

var commitID = lazyregexp.New(`^[0-9a-f]{7,40}$`)

// compute makes the manifest of a directory as it is.
func compute(ctx context.Context, dir, base string) (*packager.Manifest, error) {
	m := &packager.Manifest{Schema: packager.Schema, Imported: true}
	var err error
	if m.Flavour, m.ID, err = split(base); err != nil {
		return nil, err
	}
	if commitID().MatchString(m.ID) {
		m.Components = []packager.Component{{Name: "engine", Commit: m.ID, Declared: true}}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || p == "." {
			return err
		}
		f, err := scan(root, p)
		if err != nil {
			return err
		}
		m.Files = append(m.Files, f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(m.Files, func(a, b packager.File) int { return strings.Compare(a.Path, b.Path) })
	if err := packager.HashFiles(ctx, root, m.Files); err != nil {
		return nil, err
	}
	if m.EntryPoints = programs(root, m); len(m.EntryPoints) == 0 {
		if p := unexecutable(m); p != "" {
			return nil, fmt.Errorf("%w: %s is not executable: chmod +x it", ErrRefused, p)
		}
		return nil, fmt.Errorf("%w: it holds neither a program 1bit nor programs in %s/llama/bin: not an engine", ErrRefused, m.Flavour)
	}
	return m, nil
}

// unexecutable is a file that would be an entry point if it were executable,
// "" if there is none.
func unexecutable(m *packager.Manifest) string {
	for i := range m.Files {
		f := &m.Files[i]
		server := path.Base(f.Path) == "llama-server" && strings.HasSuffix(path.Dir(f.Path), "/llama/bin")
		if f.Type == packager.TypeFile && f.Mode&0o100 == 0 && (server || f.Path == packager.FrontDoorEntry) {
			return f.Path
		}
	}
	return ""
}

func scan(root *os.Root, p string) (packager.File, error) {
	f := packager.File{Path: p}
	if err := packager.CheckPath(p); err != nil {
		return f, fmt.Errorf("%w: %w: rename it", ErrRefused, err)
	}
	info, err := root.Lstat(p)
	if err != nil {
		return f, err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		f.Type, f.Mode = packager.TypeDir, packager.Mode(mode.Perm())
	case mode&fs.ModeSymlink != 0:
		f.Type = packager.TypeLink
		f.Target, err = root.Readlink(p)
	case !mode.IsRegular():
		err = fmt.Errorf("%w: %q is neither file, folder nor link: remove it", ErrRefused, p)
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		err = fmt.Errorf("%w: %q is setuid or setgid, which no engine needs: chmod -R u-s,g-s %s", ErrRefused, p, root.Name())
	default:
		f.Type, f.Mode = packager.TypeFile, packager.Mode(mode.Perm())
		f.Size, f.MTime = info.Size(), info.ModTime().UnixNano()
	}
	return f, err
}

// programs finds the entry points: 1bit at the root and whatever is
// executable, and no library, in the flavour's llama/bin, or else in the first
// backend's that has one.
func programs(root *os.Root, m *packager.Manifest) map[string]string {
	found := map[string]string{}
	take := func(p string) {
		info, err := root.Stat(p) // through links, but not out of the directory
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o100 != 0 && !strings.Contains(path.Base(p), ".so") {
			found[path.Base(p)] = p
		}
	}
	bins := []string{}
	for i := range m.Files {
		switch f := &m.Files[i]; {
		case f.Path == packager.FrontDoorEntry:
			take(f.Path)
		case f.Type == packager.TypeDir && strings.HasSuffix(f.Path, "/llama/bin") && strings.Count(f.Path, "/") == 2:
			bins = append(bins, f.Path)
		}
	}
	if len(bins) == 0 {
		return found
	}
	bin := bins[0]
	if own := m.Flavour + "/llama/bin"; slices.Contains(bins, own) {
		bin = own
	}
	for i := range m.Files {
		if f := &m.Files[i]; path.Dir(f.Path) == bin {
			take(f.Path)
		}
	}
	return found
}

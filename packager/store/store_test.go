package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
)

// sample is a package of a few files. vary changes one file's content.
func sample(id, vary string) (*packager.Manifest, map[string]string) {
	contents := map[string]string{
		"1bit":                         "#!/bin/sh\necho " + vary + "\n",
		"hrx/llama/bin/llama-server":   strings.Repeat("server "+vary, 4000),
		"hrx/llama/bin/libx.so.1":      strings.Repeat("library", 1000),
		"hrx/llama/bin/deep/empty.txt": "",
	}
	m := &packager.Manifest{
		Schema: packager.Schema, Flavour: "hrx", ID: id, SourceDateEpoch: 1793000000,
		Components:  []packager.Component{{Name: "engine", Commit: "3092596c1a", Declared: true}},
		EntryPoints: map[string]string{"1bit": "1bit", "llama-server": "hrx/llama/bin/llama-server"},
	}
	for name, content := range contents {
		sum := sha256.Sum256([]byte(content))
		f := packager.File{Path: name, Type: packager.TypeFile, Mode: 0o644, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
		if !strings.Contains(path.Base(name), ".") {
			f.Mode = 0o755
		}
		m.Files = append(m.Files, f)
	}
	for _, name := range []string{"hrx", "hrx/llama", "hrx/llama/bin", "hrx/llama/bin/deep"} {
		m.Files = append(m.Files, packager.File{Path: name, Type: packager.TypeDir, Mode: 0o755})
	}
	m.Files = append(m.Files, packager.File{Path: "hrx/llama/bin/libx.so", Type: packager.TypeLink, Target: "libx.so.1"})
	slices.SortFunc(m.Files, func(a, b packager.File) int { return strings.Compare(a.Path, b.Path) })
	return m, contents
}

// archive writes a package's archive to a file and returns its name.
func archive(t testing.TB, m *packager.Manifest, contents map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	err := packager.WriteArchive(context.Background(), &buf, m, func(f *packager.File) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(contents[f.Path])), nil
	}, packager.ArchiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, filepath.Join(t.TempDir(), m.DirName()+".tar.zst"), buf.String())
}

func write(t testing.TB, name, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// newStore is an empty store in a folder that does not exist yet, with an
// empty proc folder.
func newStore(t testing.TB) *Store {
	t.Helper()
	base := t.TempDir()
	s := Open(filepath.Join(base, "share"), filepath.Join(base, "state", "1bit"))
	s.Proc = filepath.Join(base, "proc")
	if err := os.Mkdir(s.Proc, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { writable(s.Dir) })
	return s
}

// writable makes the folders below dir writable.
func writable(dir string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(p, 0o755)
		}
		return err
	})
}

func install(t testing.TB, s *Store, id, vary string) *Package {
	t.Helper()
	p, already, err := s.Install(context.Background(), sampleArchive(t, id, vary), nil)
	if err != nil {
		t.Fatal(err)
	}
	if already {
		t.Fatal("already there")
	}
	return p
}

func sampleArchive(t testing.TB, id, vary string) string {
	m, contents := sample(id, vary)
	return archive(t, m, contents)
}

func list(t testing.TB, s *Store) []string {
	t.Helper()
	packages, err := s.List(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, p := range packages {
		out = append(out, p.Name+" "+p.State)
	}
	return out
}

func wantList(t testing.TB, s *Store, want ...string) {
	t.Helper()
	if got := list(t, s); !slices.Equal(got, want) {
		t.Errorf("list is %q, want %q", got, want)
	}
}

// wantEmptyStaging fails if something is left in staging.
func wantEmptyStaging(t testing.TB, s *Store) {
	t.Helper()
	entries, err := os.ReadDir(s.staging())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, e := range entries {
		t.Errorf("staging holds %s", e.Name())
	}
}

func TestProgram(t *testing.T) {
	s := newStore(t)
	p := install(t, s, "3092596", "a")
	got, err := p.Program("llama-server")
	if want := filepath.Join(s.Dir, "1bit-hrx-3092596/hrx/llama/bin/llama-server"); got != want || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := p.Program("llama-bench"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "it has 1bit, llama-server") {
		t.Errorf("got %v", err)
	}
}

func TestListOfNothing(t *testing.T) {
	s := newStore(t)
	wantList(t, s)
	if _, err := os.Stat(s.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("listing made the data home: %v", err)
	}
}

// Only what is whole and ours is listed.
func TestListLeavesOut(t *testing.T) {
	s := newStore(t)
	p := install(t, s, "good", "a")
	manifest, err := os.ReadFile(filepath.Join(p.Path, packager.ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(s.Dir, name) }
	for _, dir := range []string{"1bit-hrx-none", "1bit-hrx-empty", "other"} {
		if err := os.Mkdir(in(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, in("1bit-hrx-empty/"+packager.ManifestName), "")
	write(t, in("1bit-hrx-renamed/"+packager.ManifestName), string(manifest))
	write(t, in("1bit-hrx-cut/"+packager.ManifestName), string(manifest[:len(manifest)-2]))
	write(t, in("other/"+packager.ManifestName), string(manifest))
	write(t, in("1bit-hrx-file"), "")
	write(t, in(".1bit-staging/x/1bit-hrx-good/"+packager.ManifestName), string(manifest))
	if err := os.Symlink("1bit-hrx-good", in("1bit-hrx-link")); err != nil {
		t.Fatal(err)
	}
	m, _ := sample("imported", "a")
	m.Imported = true
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, in("1bit-hrx-imported/"+packager.ManifestName), string(b))
	write(t, s.record("1bit-hrx-gone"), string(b))
	write(t, s.record("1bit-hrx-none"), "{")
	wantList(t, s, "hrx-good ok")
}

func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"untouched":     {func(dir string) error { return nil }, StateOK},
		"file missing":  {func(dir string) error { return os.Remove(dir + "/1bit") }, StateBroken},
		"file longer":   {func(dir string) error { return appendTo(dir+"/1bit", "x") }, StateBroken},
		"file a folder": {func(dir string) error { return errors.Join(os.Remove(dir+"/1bit"), os.Mkdir(dir+"/1bit", 0o555)) }, StateBroken},
		"file a link":   {func(dir string) error { return errors.Join(os.Remove(dir+"/1bit"), os.Symlink("hrx", dir+"/1bit")) }, StateBroken},
		"link moved": {func(dir string) error {
			l := dir + "/hrx/llama/bin/libx.so"
			return errors.Join(os.Remove(l), os.Symlink("llama-server", l))
		}, StateBroken},
		"folder missing":     {func(dir string) error { return os.RemoveAll(dir + "/hrx/llama/bin/deep") }, StateBroken},
		"mode":               {func(dir string) error { return os.Chmod(dir+"/1bit", 0o755) }, StateTouched},
		"folder's mode":      {func(dir string) error { return os.Chmod(dir+"/hrx/llama", 0o777) }, StateTouched},
		"same size, written": {func(dir string) error { return os.Chtimes(dir+"/1bit", time.Time{}, time.Unix(1, 0)) }, StateTouched},
		"extra file":         {func(dir string) error { return os.WriteFile(dir+"/hrx/extra", nil, 0o444) }, StateTouched},
		"extra at the top":   {func(dir string) error { return os.WriteFile(dir+"/extra", nil, 0o444) }, StateTouched},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			p := install(t, s, "x", "a")
			modes := map[string]fs.FileMode{}
			_ = filepath.WalkDir(p.Path, func(name string, d fs.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					modes[name] = 0o555
					err = os.Chmod(name, 0o755)
				}
				return err
			})
			if err := c.change(p.Path); err != nil {
				t.Fatal(err)
			}
			for name, mode := range modes {
				if info, err := os.Lstat(name); err == nil && info.Mode().Perm() == 0o755 {
					if err := os.Chmod(name, mode); err != nil {
						t.Fatal(err)
					}
				}
			}
			wantList(t, s, "hrx-x "+c.want)
			v, err := s.Verify(context.Background(), p, nil)
			if err != nil {
				t.Fatal(err)
			}
			// A moved time stamp alone is no difference in content.
			if v.OK != (c.want == StateOK || name == "same size, written") {
				t.Errorf("verify says %+v", v)
			}
		})
	}
}

func appendTo(name, content string) error {
	if err := os.Chmod(name, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}

func TestFind(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	if _, err := s.Find(ctx, "x"); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("in an empty store: %v", err)
	}
	add := func(flavour, id, tag string) *Package {
		m, contents := sample(id, flavour)
		m.Flavour, m.Tag = flavour, tag
		if tag != "" {
			var err error
			if m.Version, err = packager.ParseVersion(tag); err != nil {
				t.Fatal(err)
			}
		}
		p, _, err := s.Install(ctx, archive(t, m, contents), nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a := add("hrx", "3092596", "v2026.44")
	add("vulkan", "3092596", "v2026.44")
	c := add("hrx", "aaaaaaa", "v2026.04.1")
	d := add("hrx", "bbbbbbb", "")
	hex := strings.TrimPrefix(a.Digest, "sha256:")
	for query, want := range map[string]string{
		"hrx-3092596": a.Name, "1bit-hrx-3092596": a.Name, "aaaaaaa": c.Name, "v2026.04.1": c.Name, "2026.4.1": c.Name, "v2026.4.1": c.Name,
		hex[:6]: a.Name, hex: a.Name, a.Digest: a.Name, "sha256:" + hex[:10]: a.Name, "bbbbbbb": d.Name,
	} {
		if p, err := s.Find(ctx, query); err != nil || p.Name != want {
			t.Errorf("Find(%q) = %v, %v, want %s", query, p, err, want)
		}
	}
	for query, want := range map[string]error{
		"3092596": ErrAmbiguous, "v2026.44": ErrAmbiguous, "2026.44.0": ErrAmbiguous, "": ErrNotInstalled, "hrx": ErrNotInstalled,
		hex[:5]: ErrNotInstalled, "sha256:": ErrNotInstalled, "v2026.45": ErrNotInstalled, "../x": ErrNotInstalled,
	} {
		p, err := s.Find(ctx, query)
		if !errors.Is(err, want) {
			t.Errorf("Find(%q) = %v, %v, want %v", query, p, err, want)
			continue
		}
		if !strings.Contains(err.Error(), "hrx-3092596 (v2026.44)") {
			t.Errorf("Find(%q) does not say what there is: %v", query, err)
		}
	}
}

func TestAtPath(t *testing.T) {
	s := newStore(t)
	p := install(t, s, "3092596", "a")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(s.Dir, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		p.Path:                              true,
		p.Path + "/hrx/llama/bin/no-such":   true,
		link + "/1bit-hrx-3092596/1bit":     true,
		p.Path + "0/1bit":                   false,
		s.Dir:                               false,
		s.Dir + "/other":                    false,
		p.Path + "/../1bit-hrx-other/1bit":  false,
		p.Path + "/../1bit-hrx-3092596/hrx": true,
		"1bit-hrx-3092596/1bit":             false,
		"":                                  false,
	} {
		if got, ok := s.AtPath(path); ok != want || ok && got.Digest != p.Digest {
			t.Errorf("AtPath(%q) = %v, %v", path, got, ok)
		}
	}
	viaLink := Open(link, s.StateDir)
	if _, ok := viaLink.AtPath(p.Path + "/1bit"); !ok {
		t.Error("a store behind a link does not know the real path")
	}
}

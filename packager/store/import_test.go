package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
	"github.com/google/go-cmp/cmp"
)

// oldScript makes a directory as the old script does.
func oldScript(t *testing.T, s *Store, base string) string {
	t.Helper()
	dir := filepath.Join(s.Dir, base)
	for name, mode := range map[string]fs.FileMode{
		"1bit": 0o755, "hrx/llama/bin/llama-server": 0o775, "hrx/llama/bin/llama-bench": 0o755, "hrx/llama/bin/libx.so.1": 0o755, "hrx/llama/bin/README": 0o600,
		"vulkan/llama/bin/llama-server": 0o755,
	} {
		write(t, filepath.Join(dir, name), "content of "+name)
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/opt/rocm-therock/lib", filepath.Join(dir, "hrx/rocm")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestImport(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	dir := oldScript(t, s, "1bit-hrx-3092596")
	when := time.Unix(1700000000, 123456789)
	if err := os.Chtimes(filepath.Join(dir, "1bit"), when, when); err != nil {
		t.Fatal(err)
	}
	wantList(t, s)
	p, err := s.Import(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "hrx-3092596" || !p.Imported || p.State != StateOK || p.Path != dir {
		t.Errorf("package %+v", p)
	}
	wantEntries := map[string]string{"1bit": "1bit", "llama-server": "hrx/llama/bin/llama-server", "llama-bench": "hrx/llama/bin/llama-bench"}
	if diff := cmp.Diff(wantEntries, p.Manifest.EntryPoints); diff != "" {
		t.Error(diff)
	}
	wantPins := []packager.Component{{Name: "engine", Commit: "3092596", Declared: true}}
	if diff := cmp.Diff(wantPins, p.Manifest.Components); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(dir, "1bit")); err != nil || !info.ModTime().Equal(when) || info.Mode() != 0o755 {
		t.Errorf("the directory was touched: %v, %v", info, err)
	}
	wantList(t, s, "hrx-3092596 ok")
	if v, err := s.Verify(ctx, p, nil); err != nil || !v.OK || v.Files != 6 {
		t.Errorf("verify: %+v, %v", v, err)
	}
	if again, err := s.Import(ctx, dir); err != nil || again.Digest != p.Digest {
		t.Errorf("again: %+v, %v", again, err)
	}
	// Its time alone is no other content.
	if err := os.Chtimes(filepath.Join(dir, "1bit"), when, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	wantList(t, s, "hrx-3092596 touched")
	if again, err := s.Import(ctx, dir); err != nil || again.Digest != p.Digest || again.State != StateOK {
		t.Errorf("after a touch: %+v, %v", again, err)
	}
	write(t, filepath.Join(dir, "1bit"), "other content!!!")
	if _, err := s.Import(ctx, dir); !errors.Is(err, ErrChanged) {
		t.Errorf("with other content: %v", err)
	}
	// Without its record it is a directory like any other.
	if err := os.Remove(s.record("1bit-hrx-3092596")); err != nil {
		t.Fatal(err)
	}
	wantList(t, s)
	if other, err := s.Import(ctx, dir); err != nil || other.Digest == p.Digest {
		t.Errorf("anew: %+v, %v", other, err)
	}
}

func TestImportThenInstallAndRemove(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	dir := oldScript(t, s, "1bit-hrx-x")
	p, err := s.Import(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Install(ctx, sampleArchive(t, "x", "a"), nil); !errors.Is(err, ErrDifferent) {
		t.Errorf("install over it: %v", err)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, p, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, s.record("1bit-hrx-x")} {
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	wantEmptyStaging(t, s)
}

// A removal that died after the rename is finished by the next command.
func TestSweepFinishesRemovalOfImported(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	dir := oldScript(t, s, "1bit-hrx-x")
	if _, err := s.Import(ctx, dir); err != nil {
		t.Fatal(err)
	}
	trash := filepath.Join(s.staging(), "remove-1")
	if err := os.MkdirAll(trash, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, filepath.Join(trash, "1bit-hrx-x")); err != nil {
		t.Fatal(err)
	}
	wantList(t, s)
	wantEmptyStaging(t, s)
	if _, err := os.Lstat(s.record("1bit-hrx-x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record is left: %v", err)
	}
}

func TestImportRefuses(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		dir  func(s *Store) (string, error)
		want string
	}{ // "no folder to import" is its place or name, "refused" what is in it
		"elsewhere": {func(s *Store) (string, error) {
			dir := filepath.Join(t.TempDir(), "1bit-hrx-x")
			return dir, errors.Join(os.Mkdir(dir, 0o755), os.MkdirAll(s.Dir, 0o755))
		}, "no folder to import: it is not in the data home: move it to "},
		"elsewhere by another name": {func(s *Store) (string, error) {
			return t.TempDir(), os.MkdirAll(s.Dir, 0o755)
		}, "/1bit-FLAVOUR-ID"},
		"not executable": {func(s *Store) (string, error) {
			dir := filepath.Join(s.Dir, "1bit-hrx-x")
			write(t, filepath.Join(dir, "hrx/llama/bin/llama-server"), "x")
			return dir, os.Chmod(filepath.Join(dir, "hrx/llama/bin/llama-server"), 0o644)
		}, "refused: hrx/llama/bin/llama-server is not executable: chmod +x it"},
		"below": {func(s *Store) (string, error) {
			dir := filepath.Join(s.Dir, "deeper", "1bit-hrx-x")
			return dir, os.MkdirAll(dir, 0o755)
		}, "no folder to import: it is not in the data home: move it to "},
		"no prefix": {func(s *Store) (string, error) {
			return filepath.Join(s.Dir, "hrx-x"), os.MkdirAll(s.Dir+"/hrx-x", 0o755)
		}, "rename it"},
		"no id": {func(s *Store) (string, error) {
			return filepath.Join(s.Dir, "1bit-hrx"), os.MkdirAll(s.Dir+"/1bit-hrx", 0o755)
		}, "rename it"},
		"bad name": {func(s *Store) (string, error) {
			return filepath.Join(s.Dir, "1bit-hrx-A"), os.MkdirAll(s.Dir+"/1bit-hrx-A", 0o755)
		}, "no folder to import: its id "},
		"a link": {func(s *Store) (string, error) {
			oldScript(t, s, "1bit-hrx-x")
			return filepath.Join(s.Dir, "1bit-hrx-y"), os.Symlink("1bit-hrx-x", s.Dir+"/1bit-hrx-y")
		}, "no folder to import: it is not a directory"},
		"no engine": {func(s *Store) (string, error) {
			write(t, filepath.Join(s.Dir, "1bit-hrx-x/README"), "x")
			return filepath.Join(s.Dir, "1bit-hrx-x"), nil
		}, "not an engine"},
		"own manifest": {func(s *Store) (string, error) {
			dir := oldScript(t, s, "1bit-hrx-x")
			write(t, filepath.Join(dir, packager.ManifestName), "{}")
			return dir, nil
		}, "refused: it has a manifest of its own"},
		"pipe": {func(s *Store) (string, error) {
			dir := oldScript(t, s, "1bit-hrx-x")
			return dir, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644)
		}, `refused: "pipe" is neither`},
		"setuid": {func(s *Store) (string, error) {
			dir := oldScript(t, s, "1bit-hrx-x")
			return dir, os.Chmod(filepath.Join(dir, "1bit"), 0o755|fs.ModeSetuid)
		}, `refused: "1bit" is setuid or setgid, which no engine needs: chmod -R u-s,g-s /`},
		"newline": {func(s *Store) (string, error) {
			dir := oldScript(t, s, "1bit-hrx-x")
			write(t, filepath.Join(dir, "a\nb"), "x")
			return dir, nil
		}, "control or invisible character U+000A: rename it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			dir, err := c.dir(s)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Import(ctx, dir); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if entries, _ := os.ReadDir(filepath.Join(s.StateDir, "imported")); len(entries) != 0 {
				t.Errorf("recorded %v", entries)
			}
		})
	}
	s := newStore(t)
	if _, err := s.Import(ctx, filepath.Join(s.Dir, "1bit-hrx-x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("not there: %v", err)
	}
}

func TestImportKeepsARecordItCannotRead(t *testing.T) {
	for name, damage := range map[string]func(record string) error{
		"damaged": func(record string) error { return os.WriteFile(record, []byte("{"), 0o644) },
		"cut":     func(record string) error { return os.Truncate(record, 100) },
		"empty":   func(record string) error { return os.Truncate(record, 0) },
		"a link": func(record string) error {
			return errors.Join(os.Rename(record, record+"x"), os.Symlink(record+"x", record))
		},
		"a folder": func(record string) error { return errors.Join(os.Remove(record), os.Mkdir(record, 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			dir := oldScript(t, s, "1bit-hrx-x")
			if _, err := s.Import(context.Background(), dir); err != nil {
				t.Fatal(err)
			}
			record := s.record("1bit-hrx-x")
			if err := damage(record); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(record)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Import(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "delete") {
				t.Errorf("got %v", err)
			}
			if after, err := os.Lstat(record); err != nil || !os.SameFile(before, after) {
				t.Errorf("the record was replaced: %v", err)
			}
		})
	}
}

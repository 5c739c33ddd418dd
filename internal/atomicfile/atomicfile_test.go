package atomicfile_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func wantEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("entries %v, want %v", got, want)
	}
}

func TestWriteReplacesBytesAndMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.conf")
	for i, perm := range []fs.FileMode{0o600, 0o644} {
		if err := atomicfile.Write(path, fmt.Appendf(nil, "%d", i), perm); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != fmt.Sprint(i) || info.Mode().Perm() != perm {
			t.Errorf("got %q with mode %v, want %d with %v", got, info.Mode().Perm(), i, perm)
		}
	}
	wantEntries(t, filepath.Dir(path), "a.conf")
}

func TestWriteRefusesWhatIsNotAFile(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, folder} {
		for name, err := range map[string]error{
			"Write":    atomicfile.Write(path, []byte("new"), 0o644),
			"Append":   atomicfile.Append(path, []byte("new"), 0o644),
			"Remove":   atomicfile.Remove(path),
			"Move":     atomicfile.Move(path, filepath.Join(dir, "other")),
			"Exchange": atomicfile.Exchange(target, path),
		} {
			if !errors.Is(err, atomicfile.ErrNotRegular) {
				t.Errorf("%s(%s) = %v, want a refusal", name, filepath.Base(path), err)
			}
		}
	}
	if got := read(t, target); got != "kept" {
		t.Errorf("target holds %q", got)
	}
	wantEntries(t, dir, "folder", "link", "target")
}

func TestRenameNewKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for path, text := range map[string]string{a: "one", b: "two"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.RenameNew(b, a); !errors.Is(err, fs.ErrExist) {
		t.Errorf("RenameNew over a file = %v, want fs.ErrExist", err)
	}
	if got := read(t, a); got != "one" {
		t.Errorf("file holds %q", got)
	}
	wantEntries(t, dir, "a", "b")
}

func TestExchangeAndMove(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for path, text := range map[string]string{a: "A", b: "B"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.Exchange(a, b); err != nil {
		t.Fatal(err)
	}
	if read(t, a) != "B" || read(t, b) != "A" {
		t.Errorf("after Exchange a=%q b=%q", read(t, a), read(t, b))
	}
	if err := atomicfile.Move(a, b); err != nil {
		t.Fatal(err)
	}
	wantEntries(t, dir, "b")
	if got := read(t, b); got != "B" {
		t.Errorf("after Move b=%q", got)
	}
	if err := atomicfile.Remove(a); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Remove of nothing = %v, want fs.ErrNotExist", err)
	}
}

func TestAppendClosesATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for _, record := range []string{"one", "two\n"} {
		if err := atomicfile.Append(path, []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("thr"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := atomicfile.Append(path, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != "one\ntwo\nthr\nfour\n" {
		t.Errorf("journal holds %q", got)
	}
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b")
	for range 2 {
		if err := atomicfile.MkdirAll(deep, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(deep); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("deep: %v, %v", info, err)
	}
	file := filepath.Join(dir, "file")
	if err := atomicfile.Write(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if err := atomicfile.MkdirAll(path, 0o700); err == nil {
			t.Errorf("MkdirAll(%s) passed over a file", path)
		}
	}
}

func TestTempNames(t *testing.T) {
	for name, want := range map[string]bool{".a.conf.123.tmp": true, "a.conf": false, ".a.conf": false, "a.tmp": false} {
		if got := atomicfile.IsTemp(name); got != want {
			t.Errorf("IsTemp(%q) = %v", name, got)
		}
	}
	// A name that systemd would read as a drop-in must never be used.
	f, err := os.CreateTemp(t.TempDir(), ".x.conf.*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if strings.HasSuffix(f.Name(), ".conf") || !atomicfile.IsTemp(filepath.Base(f.Name())) {
		t.Errorf("temporary name %q", f.Name())
	}
}

func TestRemoveThese(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "stays"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.RemoveThese(dir, "a", "missing", "b"); err != nil {
		t.Error(err)
	}
	if err := atomicfile.RemoveThese(dir, "folder"); !errors.Is(err, atomicfile.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 {
		t.Errorf("left %q, %v", left, err)
	}
}

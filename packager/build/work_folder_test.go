package build

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestWorkFolder(t *testing.T) {
	above := filepath.Join(t.TempDir(), "a*[b]")
	out := filepath.Join(above, "out")
	w, err := newWorkFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	inside, err := w.sub("trial")
	if err != nil {
		t.Fatal(err)
	}
	// What a package looks like when it is unpacked.
	if err := os.WriteFile(filepath.Join(inside, "file"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(inside, 0o555); err != nil {
		t.Fatal(err)
	}

	// A second build beside it leaves it alone and takes what nobody holds.
	stale := filepath.Join(out, ".1bit-build.123.tmp")
	if err := os.MkdirAll(filepath.Join(stale, "trial"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(stale, "trial"), 0o555); err != nil {
		t.Fatal(err)
	}
	staleFile := filepath.Join(out, ".1bit-build.file.tmp")
	foreign := filepath.Join(out, ".1bit-build.notes")
	for _, path := range []string{staleFile, foreign} {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	second, err := newWorkFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	for path, there := range map[string]bool{inside: true, second.dir: true, stale: false, staleFile: false, foreign: true} {
		if _, err := os.Lstat(path); (err == nil) != there {
			t.Errorf("%s: %v, want it there: %v", path, err, there)
		}
	}
	for _, f := range []*workFolder{second, w} {
		dir := f.dir
		if err := f.remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", dir, err)
		}
	}
	if _, err := os.Lstat(foreign); err != nil {
		t.Error(err)
	}
}

// The folders that were made for it go with it, those before it and what holds
// an output stay.
func TestWorkFolderRemovesWhatItMade(t *testing.T) {
	above := t.TempDir()
	for name, keep := range map[string]bool{"empty": false, "full": true} {
		out := filepath.Join(above, name, "deep", "out")
		w, err := newWorkFolder(out)
		if err != nil {
			t.Fatal(err)
		}
		if keep {
			if err := os.WriteFile(filepath.Join(out, "archive"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(above, name)); (err == nil) != keep {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(above); err != nil {
		t.Error(err)
	}
}

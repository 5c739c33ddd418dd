package build

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
)

// makeTree writes a small engine tree.
func makeTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	write := func(name, content string, mode fs.FileMode) {
		p := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	const server = "#!/bin/sh\necho version: 7 >&2\nexit\n"
	write("1bit", "#!/bin/sh\n", 0o755)
	write("hrx/llama/bin/llama-server", server+strings.Repeat("#", 7000-len(server)), 0o755)
	write("hrx/llama/bin/libx.so.1", strings.Repeat("library ", 5000), 0o644)
	write("src/not-included.c", "int main;", 0o644)
	if err := os.Symlink("libx.so.1", filepath.Join(tree, "hrx/llama/bin/libx.so")); err != nil {
		t.Fatal(err)
	}
	return tree
}

func options(t *testing.T, tree, recipe string) Options {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "recipe.yaml")
	if err := os.WriteFile(path, []byte(recipe), 0o644); err != nil {
		t.Fatal(err)
	}
	return Options{RecipePath: path, Tree: tree, Out: filepath.Join(dir, "out"), Version: "v2026.44"}
}

func mustBuild(t *testing.T, o Options) *Result {
	t.Helper()
	r, err := Build(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBuild(t *testing.T) {
	o := options(t, makeTree(t), goodRecipe)
	var last, total int64
	o.Progress = func(d, n int64) { last, total = d, n }
	r := mustBuild(t, o)
	if want := filepath.Join(o.Out, "1bit-hrx-3092596-linux-x86_64.tar.zst"); r.Path != want {
		t.Errorf("path %s, want %s", r.Path, want)
	}
	b := read(t, r.Path)
	if int64(len(b)) != r.Size || len(r.SHA256) != 64 {
		t.Errorf("size %d of %d, sha256 %s", r.Size, len(b), r.SHA256)
	}
	if want := int64(10 + 7000 + 40000); r.InstalledSize != want || last != want || total != want {
		t.Errorf("installed size %d, progress %d/%d, want %d", r.InstalledSize, last, total, want)
	}
	m, err := packager.ReadManifest(context.Background(), r.Path, packager.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	digest, err := m.Digest()
	if err != nil || digest != r.Digest {
		t.Errorf("digest %s, %v, want %s", digest, err, r.Digest)
	}
	if m.Version != "2026.44.0" || m.Tag != "v2026.44" || m.ID != "3092596" || m.SourceDateEpoch != DefaultEpoch {
		t.Errorf("manifest %+v", m)
	}
	if m.Lookup("src") != nil || m.Lookup("hrx/llama/bin/libx.so") == nil {
		t.Error("the wrong things are included")
	}
	entries, err := os.ReadDir(o.Out)
	if err != nil || len(entries) != 1 {
		t.Errorf("output folder holds %v, %v", entries, err)
	}
}

// The same tree gives the same bytes: from a copy with other times and modes
// that mean the same, in another place, with another number of processors.
func TestBuildIsReproducible(t *testing.T) {
	first := mustBuild(t, options(t, makeTree(t), goodRecipe))
	tree := makeTree(t)
	for name, mode := range map[string]fs.FileMode{"1bit": 0o700, "hrx/llama/bin/libx.so.1": 0o600, "hrx/llama": 0o700, "hrx": 0o2750} {
		if err := os.Chmod(filepath.Join(tree, name), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(tree, name), time.Unix(1, 0), time.Unix(2, 0)); err != nil {
			t.Fatal(err)
		}
	}
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	second := mustBuild(t, options(t, tree, goodRecipe))
	if !bytes.Equal(read(t, first.Path), read(t, second.Path)) || first.SHA256 != second.SHA256 {
		t.Error("the archives differ")
	}
	if first.Digest != second.Digest {
		t.Errorf("digests %s and %s", first.Digest, second.Digest)
	}
	o := options(t, tree, goodRecipe)
	o.SourceDateEpoch = 1793000000
	if other := mustBuild(t, o); other.SHA256 == first.SHA256 || other.Manifest.SourceDateEpoch != 1793000000 {
		t.Error("SourceDateEpoch has no effect")
	}
}

func TestBuildOverExisting(t *testing.T) {
	o := options(t, makeTree(t), goodRecipe)
	first := mustBuild(t, o)
	if first.AlreadyThere {
		t.Error("a new archive was already there")
	}
	if again := mustBuild(t, o); !again.AlreadyThere || again.SHA256 != first.SHA256 {
		t.Errorf("again: %+v", again)
	}
	before := read(t, first.Path)
	o.Version = "v2026.45"
	if _, err := Build(context.Background(), o); !errors.Is(err, fs.ErrExist) || !errors.Is(err, ErrDifferent) || !strings.Contains(err.Error(), "--id") {
		t.Errorf("another build of that name: %v", err)
	}
	if !bytes.Equal(before, read(t, first.Path)) {
		t.Error("the archive was touched")
	}
	o.ID = "other"
	if r := mustBuild(t, o); filepath.Base(r.Path) != "1bit-hrx-other-linux-x86_64.tar.zst" {
		t.Errorf("path %s", r.Path)
	}
}

func TestBuildStopsWithContext(t *testing.T) {
	o := options(t, makeTree(t), goodRecipe)
	ctx, cancel := context.WithCancel(context.Background())
	o.Progress = func(done, total int64) { cancel() }
	if _, err := Build(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(o.Out); len(entries) != 0 {
		t.Errorf("left behind %v", entries)
	}
}

func TestBuildNoticesChange(t *testing.T) {
	tree := makeTree(t)
	o := options(t, tree, goodRecipe)
	o.Progress = func(done, total int64) {
		if err := os.WriteFile(filepath.Join(tree, "hrx/llama/bin/llama-server"), []byte("newer"), 0o755); err != nil {
			t.Error(err)
		}
	}
	if _, err := Build(context.Background(), o); !errors.Is(err, packager.ErrChanged) || !strings.Contains(err.Error(), "llama-server changed") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(o.Out); len(entries) != 0 {
		t.Errorf("left behind %v", entries)
	}
}

func TestBuildRefuses(t *testing.T) {
	in := func(tree, name string) string { return filepath.Join(tree, name) }
	const bin = "hrx/llama/bin/"
	for name, c := range map[string]struct {
		change func(tree string, o *Options) error
		want   string
	}{
		"include missing":     {func(tree string, o *Options) error { return os.Remove(in(tree, "1bit")) }, `recipe\.yaml:4: include 1bit: is not in the tree`},
		"entry point missing": {func(tree string, o *Options) error { return os.Remove(in(tree, bin+"llama-server")) }, `recipe\.yaml:8: entry_points\.llama-server: .*not among what is included`},
		"entry point no exec": {func(tree string, o *Options) error { return os.Chmod(in(tree, bin+"llama-server"), 0o644) }, `recipe\.yaml:8: entry_points\.llama-server: .* is not executable: chmod \+x it`},
		"link out":            {func(tree string, o *Options) error { return os.Symlink("../../../../etc", in(tree, bin+"x")) }, `link "hrx/llama/bin/x" to .* leaves the package`},
		"link absolute":       {func(tree string, o *Options) error { return os.Symlink(in(tree, "1bit"), in(tree, bin+"x")) }, `link "hrx/llama/bin/x" to .* leaves the package`},
		"link to not included": {func(tree string, o *Options) error {
			return os.Symlink("../../../src/not-included.c", in(tree, bin+"x"))
		}, `"src" is not in the package`},
		"folder is a link": {func(tree string, o *Options) error {
			if err := os.Rename(in(tree, "hrx"), in(tree, "real")); err != nil {
				return err
			}
			return os.Symlink("real", in(tree, "hrx"))
		}, `link "hrx" to "real": "real" is not in the package`},
		"pipe":         {func(tree string, o *Options) error { return syscall.Mkfifo(in(tree, bin+"x"), 0o644) }, `recipe\.yaml:5: include hrx: "hrx/llama/bin/x" is a pipe`},
		"setuid":       {func(tree string, o *Options) error { return os.Chmod(in(tree, "1bit"), 0o755|fs.ModeSetuid) }, `include 1bit: "1bit" is setuid`},
		"mac leftover": {func(tree string, o *Options) error { return os.WriteFile(in(tree, bin+"._x"), nil, 0o644) }, `"hrx/llama/bin/\._x" is a leftover`},
		"DS_Store":     {func(tree string, o *Options) error { return os.WriteFile(in(tree, bin+".DS_Store"), nil, 0o644) }, `is a leftover`},
		"newline":      {func(tree string, o *Options) error { return os.WriteFile(in(tree, bin+"a\nb"), nil, 0o644) }, `"hrx/llama/bin/a\\nb" has the control or invisible character U\+000A`},
		"not UTF-8":    {func(tree string, o *Options) error { return os.WriteFile(in(tree, bin+"a\xff"), nil, 0o644) }, `is not valid UTF-8`},
		"case twins":   {func(tree string, o *Options) error { return os.WriteFile(in(tree, bin+"LIBX.so"), nil, 0o644) }, `differ only in case`},
		"composition twins": {func(tree string, o *Options) error {
			return errors.Join(os.WriteFile(in(tree, bin+"e\u0301"), nil, 0o644), os.WriteFile(in(tree, bin+"\u00e9"), nil, 0o644))
		}, `differ only in case or in how a letter is composed`},
		"bidi override": {func(tree string, o *Options) error { return os.WriteFile(in(tree, bin+"a\u202eb"), nil, 0o644) }, `"hrx/llama/bin/a\\u202eb" has the control or invisible character U\+202E`},
		"manifest in tree": {func(tree string, o *Options) error {
			if err := os.WriteFile(in(tree, packager.ManifestName), nil, 0o644); err != nil {
				return err
			}
			return os.WriteFile(o.RecipePath, []byte(strings.Replace(goodRecipe, "  - hrx\n", "  - .\n", 1)), 0o644)
		}, `is reserved for the manifest`},
		"output inside": {func(tree string, o *Options) error { o.Out = in(tree, "hrx/out"); return nil }, `recipe\.yaml:5: include hrx: takes in the output folder`},
		"output inside by a link": {func(tree string, o *Options) error {
			o.Out = filepath.Join(filepath.Dir(o.RecipePath), "link", "out")
			return os.Symlink(in(tree, "hrx"), filepath.Dir(o.Out))
		}, `recipe\.yaml:5: include hrx: takes in the output folder`},
		"output inside a linked tree": {func(tree string, o *Options) error {
			o.Out, o.Tree = in(tree, "hrx/llama/out/deeper"), filepath.Join(filepath.Dir(o.RecipePath), "link")
			return os.Symlink(tree, o.Tree)
		}, `recipe\.yaml:5: include hrx: takes in the output folder`},
		"recipe a pipe": {func(tree string, o *Options) error {
			o.RecipePath += ".pipe"
			return syscall.Mkfifo(o.RecipePath, 0o644)
		}, `read recipe .*: it is a pipe, not a file`},
		"recipe a folder": {func(tree string, o *Options) error { o.RecipePath = tree; return nil }, `it is a folder, not a file`},
		"recipe a device": {func(tree string, o *Options) error { o.RecipePath = "/dev/zero"; return nil }, `it is a device, not a file`},
		"id bad":          {func(tree string, o *Options) error { o.ID = "a b"; return nil }, `id "a b" is not`},
		"id unknown": {func(tree string, o *Options) error {
			return os.WriteFile(o.RecipePath, []byte(strings.Replace(goodRecipe, "  engine:", "  motor:", 1)), 0o644)
		}, `has no engine to take the id from`},
		"version bad": {func(tree string, o *Options) error { o.Version = "nightly"; return nil }, `version "nightly"`},
	} {
		t.Run(name, func(t *testing.T) {
			tree := makeTree(t)
			o := options(t, tree, goodRecipe)
			if err := c.change(tree, &o); err != nil {
				t.Fatal(err)
			}
			_, err := Build(context.Background(), o)
			if !errors.Is(err, ErrRecipe) || errors.Is(err, packager.ErrIntegrity) {
				t.Fatalf("got %v", err)
			}
			if !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Errorf("got %q, want it to match %q", err, c.want)
			}
			if _, err := os.Stat(o.Out); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the output folder was made: %v", err)
			}
		})
	}
}

func TestBuildPassesOnPathErrors(t *testing.T) {
	good := options(t, makeTree(t), goodRecipe)
	for name, change := range map[string]func(*Options){
		"no recipe": func(o *Options) { o.RecipePath += "x" },
		"no tree":   func(o *Options) { o.Tree += "x" },
	} {
		o := good
		change(&o)
		if _, err := Build(context.Background(), o); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrRecipe) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	o := good
	o.Out = filepath.Join(o.RecipePath, "out")
	if _, err := Build(context.Background(), o); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("output below a file: got %v", err)
	}
}

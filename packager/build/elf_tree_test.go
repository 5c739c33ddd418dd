package build

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// elfTree is a build tree of real ELF files: the program patchelf, which knows
// --version, and a library of the system, both made to need and to be what a
// test wants.
type elfTree struct {
	t                 *testing.T
	dir               string
	patchelf, library string
}

// newElfTree skips the test where the parts are not there, and fails it in CI.
func newElfTree(t *testing.T) *elfTree {
	t.Helper()
	missing := t.Skipf
	if os.Getenv("ONEBIT_CI") != "" {
		missing = t.Fatalf
	}
	program, err := exec.LookPath("patchelf")
	if err != nil {
		missing("no patchelf: %v", err)
	}
	for _, pattern := range []string{"/lib/*/libgcc_s.so.1", "/usr/lib/*/libgcc_s.so.1", "/usr/lib64/libgcc_s.so.1"} {
		for _, library := range must(filepath.Glob(pattern)) {
			if f, err := os.Open(library); err == nil {
				o, err := linkage.ReadFile(f, library)
				f.Close()
				if err == nil && o != nil && o.Machine != "i386" && o.Machine != "x32" {
					return &elfTree{t: t, dir: t.TempDir(), patchelf: program, library: library}
				}
			}
		}
	}
	missing("no libgcc_s.so.1")
	return nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // a test's own mistake
	}
	return v
}

func (e *elfTree) path(name string) string { return filepath.Join(e.dir, name) }

// make copies an ELF file and changes it by patchelf's options.
func (e *elfTree) make(from, name string, mode fs.FileMode, options ...string) {
	e.t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		e.t.Fatal(err)
	}
	e.write(name, string(content), mode)
	// One at a time: patchelf mixes up what it is told at once.
	for len(options) > 0 {
		n := 2
		if options[0] == "--force-rpath" {
			n = 3
		}
		if out, err := exec.Command(e.patchelf, append(options[:n:n], e.path(name))...).CombinedOutput(); err != nil {
			e.t.Fatalf("patchelf %v: %v\n%s", options[:n], err, out)
		}
		options = options[n:]
	}
}

// program makes a program with that RUNPATH; "" is none.
func (e *elfTree) program(name, runpath string, needed ...string) {
	e.t.Helper()
	e.make(e.patchelf, name, 0o755, elfOptions(runpath, needed)...)
}

func (e *elfTree) lib(name, soname, runpath string, needed ...string) {
	e.t.Helper()
	e.make(e.library, name, 0o644, append([]string{"--set-soname", soname}, elfOptions(runpath, needed)...)...)
}

func elfOptions(runpath string, needed []string) (options []string) {
	if runpath != "" {
		options = append(options, "--set-rpath", runpath)
	}
	for _, n := range needed {
		options = append(options, "--add-needed", n)
	}
	return options
}

func (e *elfTree) write(name, content string, mode fs.FileMode) {
	e.t.Helper()
	if err := os.MkdirAll(filepath.Dir(e.path(name)), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.WriteFile(e.path(name), []byte(content), mode); err != nil {
		e.t.Fatal(err)
	}
}

func (e *elfTree) link(target, name string) {
	e.t.Helper()
	if err := os.MkdirAll(filepath.Dir(e.path(name)), 0o755); err != nil {
		e.t.Fatal(err)
	}
	if err := os.Symlink(target, e.path(name)); err != nil {
		e.t.Fatal(err)
	}
}

// snapshot is the tree's content, by which a change of it shows.
func (e *elfTree) snapshot() string {
	e.t.Helper()
	sum := sha256.New()
	err := filepath.WalkDir(e.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(sum, p, info.Mode(), info.ModTime().UnixNano())
		if d.Type().IsRegular() {
			sum.Write(must(os.ReadFile(p)))
		}
		return nil
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return string(sum.Sum(nil))
}

// recipe includes folder hrx, with entry points by the names of their files.
func elfRecipe(further string, programs ...string) string {
	text := "flavour: hrx\ninclude: [hrx]\ncomponents: {engine: {commit: 3092596c1a}}\n" + further + "\nentry_points:\n"
	for i, p := range programs {
		text += fmt.Sprintf("  program%d: %s\n", i, p)
	}
	if len(programs) == 0 {
		text += "  {}\n"
	}
	return text
}

// built is a package, unpacked.
type built struct {
	*Result
	dir     string
	objects map[string]*linkage.Object
}

// mustUnpack unpacks a built package and reads its ELF files.
func mustUnpack(t *testing.T, r *Result) *built {
	t.Helper()
	f, err := os.Open(r.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := filepath.Join(t.TempDir(), "other place")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeTree(dir); err != nil {
			t.Error(err)
		}
	})
	if err := unpack(context.Background(), f, dir); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	b := &built{Result: r, dir: dir, objects: map[string]*linkage.Object{}}
	objects, err := linkage.Inspect(context.Background(), root, r.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		b.objects[o.Path] = o
	}
	return b
}

// runpath is a file's, joined; what it has of RPATH is marked.
func (b *built) runpath(name string) string {
	o := b.objects[name]
	switch {
	case o == nil:
		return "no ELF file"
	case len(o.Rpath) > 0:
		return "RPATH " + strings.Join(o.Rpath, ":")
	}
	return strings.Join(o.Runpath, ":")
}

// same tells whether a file of the package is that of the tree, byte for byte.
func (b *built) same(t *testing.T, e *elfTree, name string) bool {
	t.Helper()
	f := b.Manifest.Lookup(name)
	if f == nil {
		t.Fatalf("%s is not in the package", name)
	}
	return f.SHA256 == fmt.Sprintf("%x", sha256.Sum256(must(os.ReadFile(e.path(name))))) && f.Type == packager.TypeFile
}

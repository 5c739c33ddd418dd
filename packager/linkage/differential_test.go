package linkage

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/internal/testelf"
	"github.com/1bit-systems/pkg/packager"
)

// skip leaves a test out with the reason; in CI that is a failure.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("ONEBIT_CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// loaderOf finds the machine's loader; the tests here ask it what it would do.
func loaderOf(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(testelf.Interp); err != nil || thisMachine() != "x86_64" {
		skip(t, "no glibc for x86-64 to compare with: %v", err)
	}
	return testelf.Interp
}

// answer is what a loader would load for a program.
type answer struct {
	Files   []string // links followed, without the program and the loader
	Missing []string
}

func ask(t *testing.T, loader, program string) answer {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), loader, program)
	cmd.Env = []string{"LD_TRACE_LOADED_OBJECTS=1"} // as --list, but it goes on when something is missing
	out, _ := cmd.CombinedOutput()                  // it fails where a version is missing
	var a answer
	for line := range strings.Lines(string(out)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok || !strings.HasPrefix(line, "\t") {
			continue
		}
		if rest == "not found" {
			a.Missing = append(a.Missing, name)
			continue
		}
		file, _, _ := strings.Cut(rest, " (0x")
		if real, err := filepath.EvalSymlinks(file); err == nil {
			file = real
		}
		if !isLoader(filepath.Base(file)) {
			a.Files = append(a.Files, file)
		}
	}
	return a.sorted()
}

func (a answer) sorted() answer {
	slices.Sort(a.Files)
	slices.Sort(a.Missing)
	return answer{slices.Compact(a.Files), slices.Compact(a.Missing)}
}

// manifestOf lists a folder as a package.
func manifestOf(t testing.TB, dir string) (*os.Root, *packager.Manifest) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	m := &packager.Manifest{Flavour: "test", ID: "x"}
	err = fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return err
		}
		f := packager.File{Path: p, Type: packager.TypeFile}
		switch {
		case d.IsDir():
			f.Type = packager.TypeDir
		case d.Type() == fs.ModeSymlink:
			f.Type = packager.TypeLink
			f.Target, err = root.Readlink(p)
		default:
			info, err := d.Info()
			if err != nil {
				return err
			}
			f.Size, f.Mode = info.Size(), packager.Mode(info.Mode().Perm())
		}
		m.Files = append(m.Files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(m.Files, func(a, b packager.File) int { return strings.Compare(a.Path, b.Path) })
	return root, m
}

func inspect(t testing.TB, dir string) (*packager.Manifest, []*Object) {
	t.Helper()
	root, m := manifestOf(t, dir)
	objects, err := Inspect(context.Background(), root, m)
	if err != nil {
		t.Fatal(err)
	}
	return m, objects
}

// ours is what we say about a program in dir: the same shape, with what the
// host has to give found on this host.
func ours(t testing.TB, dir, program string) answer {
	t.Helper()
	m, objects := inspect(t, dir)
	r := newResolver(m)
	r.take(objects)
	p := r.load(r.objects[program])
	host := Host{}.finder(&packager.Manifest{}, "")
	var a answer
	for _, n := range p.list[1:] {
		a.Files = append(a.Files, filepath.Join(dir, n.object.Path))
	}
	// What is loaded from the package serves the host's libraries too.
	for name := range p.names {
		host.own[name] = true
	}
	for _, n := range p.unmet {
		if host.look(n.name, n.dirs, nil).object == nil {
			a.Missing = append(a.Missing, n.name)
		}
	}
	for _, l := range host.found {
		a.Files = append(a.Files, l.object.Path)
		for _, need := range l.object.Needed {
			if host.found[need] == nil && !host.own[need] {
				a.Missing = append(a.Missing, need)
			}
		}
	}
	for i, file := range a.Files {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			t.Fatal(err)
		}
		a.Files[i] = real
	}
	a.Files = slices.DeleteFunc(a.Files, func(name string) bool { return isLoader(filepath.Base(name)) })
	return a.sorted()
}

func write(t testing.TB, dir, name string, f testelf.File) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, f.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Trees of chance: libraries in several folders under several names, with and
// without sonames, links to files and folders, both kinds of path, in all
// spellings.
func TestAgreesWithLoaderOnTreesOfChance(t *testing.T) {
	loader := loaderOf(t)
	entries := []string{
		"$ORIGIN", "${ORIGIN}", "$ORIGIN/../lib", "$ORIGIN/../lib/", "$ORIGIN/deep", "$ORIGIN/../link", "$ORIGIN/..//lib/./deep/..", "/nowhere/at/all",
		"$ORIGIN/../lib/$PLATFORM", "$ORIGIN/../none", "$ORIGINAL/lib", "$NOTHING/lib",
	}
	folders := []string{"bin", "lib", "lib/deep", "more"}
	found, missing := 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 1))
		pick := func(from []string, n int) []string {
			var out []string
			for range n {
				out = append(out, from[rng.IntN(len(from))])
			}
			return out
		}
		dir := t.TempDir()
		var names []string
		for i := range 7 {
			names = append(names, fmt.Sprintf("libt%d.so.1", i))
		}
		some := func(f testelf.File) testelf.File {
			f.Needed = pick(names, rng.IntN(4))
			if rng.IntN(2) == 0 {
				f.Runpath = pick(entries, rng.IntN(3))
			}
			if rng.IntN(2) == 0 {
				f.Rpath = pick(entries, 1+rng.IntN(3))
			}
			return f
		}
		for _, name := range names {
			for range 1 + rng.IntN(2) {
				f := some(testelf.File{})
				if rng.IntN(3) > 0 {
					f.Soname = pick(names, 1)[0]
				}
				if rng.IntN(8) == 0 {
					f.Machine = 183 // of another machine: passed over
				}
				write(t, dir, pick(folders, 1)[0]+"/"+name, f)
			}
		}
		program := some(testelf.File{Interp: testelf.Interp})
		program.Needed = append(program.Needed, "libc.so.6", names[0], names[1])
		write(t, dir, "bin/program", program)
		_ = os.MkdirAll(filepath.Join(dir, "lib"), 0o755)
		for from, to := range map[string]string{"link": "lib/deep", "lib/libt6.so.1": "../more/libt2.so.1", "lib/libt5.so.1": "libt4.so.1"} {
			_ = os.Symlink(to, filepath.Join(dir, from)) // or the name is taken
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := ask(t, loader, filepath.Join(real, "bin/program"))
		if diff := cmp.Diff(want, ours(t, real, "bin/program")); diff != "" {
			t.Errorf("seed %d: (-loader +ours)\n%s", seed, diff)
			return
		}
		found, missing = found+len(want.Files), missing+len(want.Missing)
	}
	if found < 150 || missing < 50 {
		t.Errorf("the trees had %d found and %d missing libraries: too few to say anything", found, missing)
	}
}

// The machine's own programs: all is found on the host.
func TestAgreesWithLoaderOnSystemPrograms(t *testing.T) {
	loader := loaderOf(t)
	seen := 0
	for _, name := range []string{"bash", "tar", "perl", "python3", "gcc", "systemctl", "journalctl", "apt-get", "gpg", "git", "ssh", "curl", "dbus-daemon", "zstd"} {
		file, err := filepath.EvalSymlinks("/usr/bin/" + name)
		if err != nil {
			continue
		}
		dir := t.TempDir()
		b, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(b), "\x7fELF") {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
		seen++
		if diff := cmp.Diff(ask(t, loader, file), ours(t, dir, name)); diff != "" {
			t.Errorf("%s: (-loader +ours)\n%s", file, diff)
		}
	}
	if seen < 3 {
		skip(t, "only %d programs to compare", seen)
	}
}

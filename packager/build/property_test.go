package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
)

// assetName is what a release page keeps as it is.
var assetName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// TestBuildEmitsWhatIsInstalled builds random trees of odd names. Each is
// refused as a tree, or makes a package that the reader takes without any
// option and whose name survives a release page.
func TestBuildEmitsWhatIsInstalled(t *testing.T) {
	built, refused := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		tree := randomTree(t, r)
		o := options(t, tree, "flavour: "+randomWord(r)+"\ninclude: [x]\nentry_points: {run: x/run}\ncomponents:\n  engine: {commit: 3092596c1a}\n")
		o.ID, o.Version, o.NoRun = randomWord(r), []string{"", "v2026.44", "b6123", "v2026.44-rc.1", "v2026.44+rocm7", "v2026.40.1.2"}[r.IntN(6)], true
		out, err := Build(context.Background(), o)
		if err != nil {
			if !errors.Is(err, ErrRecipe) {
				t.Errorf("seed %d: %v", seed, err)
			}
			refused++
			continue
		}
		built++
		if name := filepath.Base(out.Path); !assetName.MatchString(name) || len(name) > 255 {
			t.Errorf("seed %d: the asset is named %q", seed, name)
		}
		if err := readPackage(out.Path); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if built < 15 || refused < 5 {
		t.Errorf("%d built, %d refused: the trees are too much alike", built, refused)
	}
}

func readPackage(name string) error {
	f, err := packager.OpenArchive(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := packager.NewReader(f, packager.Limits{})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		if _, err := r.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
	}
}

// oddNames are of files that exist; the later ones make a tree unfit.
var oddNames = []string{
	"a", "run.sh", "-rf", " ", "a b", `back\slash`, "naïve", "名前", "a:b", "~", "a%2Bb", "+", "#", "..a", "con", "a'b\"c", "$HOME",
	strings.Repeat("n", 255), strings.Repeat("é", 127), "1bit-package.json", "libx.so.1",
	"._x", ".DS_Store", "a\nb", "a\x1b[31m", "a\xff", "A", "nai\u0308ve", "zero\u200bwidth",
}

func randomTree(t *testing.T, r *rand.Rand) string {
	t.Helper()
	tree := t.TempDir()
	write := func(name, content string, mode os.FileMode) {
		p := filepath.Join(tree, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		// A name may be taken by a folder.
		if err := os.WriteFile(p, []byte(content), mode); err == nil {
			_ = os.Chmod(p, mode)
		}
	}
	write("x/run", "#!/bin/sh\n", 0o755)
	names, bad := oddNames[:len(oddNames)-8], r.IntN(3) == 0
	if bad {
		names = oddNames
	}
	dirs := []string{"x"}
	for range r.IntN(60) {
		dir, name := dirs[r.IntN(len(dirs))], names[r.IntN(len(names))]
		p := filepath.Join(dir, name)
		if len(p) > 1500 || len(p) > 900 && !bad {
			continue
		}
		switch r.IntN(6) {
		case 0, 1:
			if os.Mkdir(filepath.Join(tree, p), 0o755) == nil {
				dirs = append(dirs, p)
			}
		case 2:
			to, err := filepath.Rel(dir, dirs[r.IntN(len(dirs))])
			if err == nil {
				_ = os.Symlink(to, filepath.Join(tree, p))
			}
		case 3:
			write(p, "", 0o600)
		default:
			write(p, strings.Repeat(fmt.Sprint(r.Uint64()), r.IntN(300)), []os.FileMode{0o644, 0o755, 0o700, 0o444}[r.IntN(4)])
		}
	}
	return tree
}

func randomWord(r *rand.Rand) string {
	return []string{"hrx", "a", "9", "a.b-c", "vulkan", strings.Repeat("w", 60), "7871c71", "rocm-7.14"}[r.IntN(8)]
}

// TestBuildKeepsToLimits refuses what could only be installed with an option,
// before anything is written.
func TestBuildKeepsToLimits(t *testing.T) {
	tree := t.TempDir()
	deep := filepath.Join(tree, "x", strings.Repeat(strings.Repeat("d", 200)+"/", 5), strings.Repeat("e", 30))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tree, "x", "run"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := options(t, tree, "flavour: hrx\ninclude: [x]\nentry_points: {run: x/run}\ncomponents:\n  engine: {commit: 3092596c1a}\n")
	o.NoRun = true
	if _, err := Build(context.Background(), o); !errors.Is(err, ErrRecipe) || !strings.Contains(err.Error(), "needs a path of 1037 bytes") {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(o.Out); err == nil && len(entries) > 0 {
		t.Errorf("the output folder has %v", entries)
	}
}

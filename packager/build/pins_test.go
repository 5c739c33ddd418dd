package build

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/packager"
	"github.com/google/go-cmp/cmp"
)

// gitRepo makes a real repository.
type gitRepo struct {
	t   *testing.T
	dir string
}

func newGitRepo(t *testing.T) *gitRepo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatalf("git is needed: %v", err)
		}
		t.Skipf("git is needed: %v", err)
	}
	r := &gitRepo{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

func (r *gitRepo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.org", "GIT_AUTHOR_DATE=1790000000 +0000", "GIT_COMMITTER_DATE=1790000000 +0000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *gitRepo) write(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *gitRepo) commit(name, content, message string) string {
	r.t.Helper()
	r.write(name, content)
	r.git("add", "-A")
	r.git("commit", "-q", "-m", message)
	return r.git("rev-parse", "HEAD")
}

const sourcesRecipe = `flavour: hrx
include: [1bit]
entry_points: {1bit: 1bit}
components:
  engine:
  llama.cpp: {url: "https://example.org/llama.cpp.git"}
  kernels: {commit: 1234567}
`

func TestBuildWithSources(t *testing.T) {
	engine, llama := newGitRepo(t), newGitRepo(t)
	head, llamaHead := engine.commit("e", "e\n", "engine"), llama.commit("l", "l\n", "llama")
	o := options(t, makeTree(t), sourcesRecipe)
	o.Sources = map[string]string{"engine": engine.dir, "llama.cpp": llama.dir}
	r := mustBuild(t, o)
	want := []packager.Component{
		{Name: "engine", Commit: head},
		{Name: "kernels", Commit: "1234567", Declared: true},
		{Name: "llama.cpp", Commit: llamaHead, URL: "https://example.org/llama.cpp.git"},
	}
	if diff := cmp.Diff(want, r.Manifest.Components); diff != "" || r.Manifest.ID != head[:7] {
		t.Errorf("id %s\n%s", r.Manifest.ID, diff)
	}

	// A tracked change is refused; an untracked file is none.
	engine.write("untracked", "x\n")
	if again := mustBuild(t, o); again.Digest != r.Digest {
		t.Error("an untracked file changed the package")
	}
	llama.write("l", "changed\n")
	_, err := Build(context.Background(), o)
	if !errors.Is(err, ErrDirty) || !strings.Contains(err.Error(), `source llama.cpp: `+llama.dir+`: "l": commit them`) {
		t.Errorf("dirty: %v", err)
	}
	o.AllowDirty = true
	dirty := mustBuild(t, o)
	if m := dirty.Manifest; m.ID != head[:7]+"-dirty" || m.Components[0].Dirty || !m.Components[2].Dirty {
		t.Errorf("dirty and allowed: %s, %+v", m.ID, m.Components)
	}
	o.ID = "mine"
	if m := mustBuild(t, o).Manifest; m.ID != "mine" {
		t.Errorf("id given: %s", m.ID)
	}
}

func TestBuildRefusesSources(t *testing.T) {
	engine := newGitRepo(t)
	head := engine.commit("e", "e\n", "engine")
	many := newGitRepo(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many.write(name, "1\n")
	}
	many.commit("h", "1\n", "many")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		many.write(name, "2\n")
	}
	agreed := strings.Replace(sourcesRecipe, "  engine:\n", "  engine: {commit: "+head[:9]+"}\n", 1)
	for name, c := range map[string]struct {
		recipe  string
		sources map[string]string
		is      error
		want    string
	}{
		"no commit":         {sourcesRecipe, nil, ErrRecipe, `recipe\.yaml:5: components\.engine: has no commit: .*--source engine=DIR`},
		"another no commit": {agreed, map[string]string{"engine": engine.dir}, ErrRecipe, `recipe\.yaml:6: components\.llama\.cpp: has no commit`},
		"unknown":           {agreed, map[string]string{"motor": engine.dir}, ErrRecipe, `source motor=.*: .*has no component of that name, it has engine, kernels, llama\.cpp`},
		"disagreeing":       {agreed, map[string]string{"kernels": engine.dir}, ErrRecipe, `recipe\.yaml:7: components\.kernels: the recipe says commit 1234567, and the checkout .* is at ` + head},
		"no folder":         {agreed, map[string]string{"engine": engine.dir + "x"}, fs.ErrNotExist, `source engine: open checkout`},
		"no checkout":       {agreed, map[string]string{"engine": t.TempDir()}, nil, `source engine: .*not a git repository.*name the folder of a checkout`},
		"many files":        {agreed, map[string]string{"engine": many.dir}, ErrDirty, `"a", "b", "c", "d", "e" and 2 more`},
	} {
		o := options(t, makeTree(t), c.recipe)
		o.Sources = c.sources
		_, err := Build(context.Background(), o)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !regexp.MustCompile(c.want).MatchString(err.Error()) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if _, err := os.Stat(o.Out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the output folder was made", name)
		}
	}
}

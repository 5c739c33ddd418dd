package source_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/engine/source"
	"github.com/google/go-cmp/cmp"
)

func TestHead(t *testing.T) {
	r := newRepo(t)
	r.write("gone", "x\n")
	r.write("mode", "x\n")
	r.write("same", "x\n")
	r.write("a \"b\" ä\n c", "x\n")
	_, fix := begin(r)
	sub := newRepo(t)
	sub.commit("s", "s\n", "in the submodule")
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub.dir, "sub")
	head := r.commitAll("submodule")
	if head == fix {
		t.Fatal("nothing was committed")
	}
	look := func(want ...string) {
		t.Helper()
		commit, dirty, err := r.open().Head(context.Background())
		if err != nil || commit != head {
			t.Fatalf("commit %s, %v, want %s", commit, err, head)
		}
		if diff := cmp.Diff(want, dirty); diff != "" {
			t.Error(diff)
		}
	}
	look()
	r.write("untracked", "x\n")
	r.write("sub/untracked", "x\n")
	look()
	r.write("a \"b\" ä\n c", "changed\n")
	look("a \"b\" ä\n c")
	r.write("staged", "x\n")
	r.git("add", "staged")
	if err := os.Remove(filepath.Join(r.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(r.dir, "mode"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("sub/s", "changed\n")
	look("a \"b\" ä\n c", "gone", "mode", "staged", "sub")
	r.git("reset", "-q", "--hard")
	r.at(filepath.Join(r.dir, "sub")).git("commit", "-qam", "another commit")
	look("sub")
	r.git("config", "submodule.sub.ignore", "all")
	look("sub")
	// A submodule is a checkout of its own.
	s := r.at(filepath.Join(r.dir, "sub"))
	if commit, dirty, err := s.open().Head(context.Background()); err != nil || commit != s.head() || len(dirty) > 0 {
		t.Errorf("submodule: %s, %q, %v", commit, dirty, err)
	}
}

// Files that git was told to overlook are no way around.
func TestHeadUnwatched(t *testing.T) {
	r := newRepo(t)
	for _, name := range []string{"assumed", "skipped", "sparse", "x"} {
		r.write(name, "1\n")
	}
	head := r.commitAll("files")
	r.git("update-index", "--assume-unchanged", "assumed")
	r.git("update-index", "--skip-worktree", "skipped", "sparse")
	r.write("assumed", "2\n")
	r.write("skipped", "2\n")
	if err := os.Remove(filepath.Join(r.dir, "sparse")); err != nil {
		t.Fatal(err)
	}
	commit, dirty, err := r.open().Head(context.Background())
	if err != nil || commit != head || !cmp.Equal(dirty, []string{"assumed", "skipped"}) {
		t.Errorf("got %s, %q, %v", commit, dirty, err)
	}
}

func TestHeadDetachedAndWorktree(t *testing.T) {
	r := newRepo(t)
	base, fix := begin(r)
	r.git("checkout", "-q", "--detach", base)
	if commit, _, err := r.open().Head(context.Background()); err != nil || commit != base {
		t.Errorf("detached: %s, %v", commit, err)
	}
	tree := filepath.Join(t.TempDir(), "tree with space")
	r.git("worktree", "add", "-q", tree, "main")
	w := r.at(tree)
	if commit, dirty, err := w.open().Head(context.Background()); err != nil || commit != fix || len(dirty) > 0 {
		t.Errorf("work tree: %s, %q, %v", commit, dirty, err)
	}
	check(t, w, map[string]string{}, fix, fix, yes, "the pin itself")
}

func TestHeadSHA256(t *testing.T) {
	r := newRepo(t, "--object-format=sha256")
	_, fix := begin(r)
	if commit, _, err := r.open().Head(context.Background()); err != nil || commit != fix || len(commit) != 64 {
		t.Errorf("got %s, %v", commit, err)
	}
}

// The variables of a hook that called us lead elsewhere and are left out.
func TestHeadIgnoresSurroundings(t *testing.T) {
	r, other := newRepo(t), newRepo(t)
	_, fix := begin(r)
	other.commit("x", "x\n", "other")
	t.Setenv("GIT_DIR", filepath.Join(other.dir, ".git"))
	t.Setenv("GIT_WORK_TREE", other.dir)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other.dir, ".git", "index"))
	t.Setenv("GIT_CONFIG_COUNT", "none")
	t.Setenv("GIT_EXTERNAL_DIFF", "false")
	c, err := source.Open(context.Background(), r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if commit, dirty, err := c.Head(context.Background()); err != nil || commit != fix || len(dirty) > 0 {
		t.Errorf("got %s, %q, %v", commit, dirty, err)
	}
}

// Neither hooks nor monitors of the repository run, and its index stays as it is.
func TestHeadRunsAndWritesNothing(t *testing.T) {
	r := newRepo(t)
	_, fix := begin(r)
	ran := filepath.Join(t.TempDir(), "ran")
	hook := filepath.Join(r.dir, ".git", "hooks", "post-index-change")
	script := "#!/bin/sh\ntouch " + ran + "\n"
	for _, name := range []string{hook, filepath.Join(r.dir, ".git", "monitor")} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r.git("config", "diff.external", filepath.Join(r.dir, ".git", "monitor"))
	r.git("config", "core.fsmonitor", filepath.Join(r.dir, ".git", "monitor"))
	index := filepath.Join(r.dir, ".git", "index")
	before, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	r.write("kernel.c", text("one", "TWO", "three")) // the same, with another time
	if err := os.Remove(ran); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	c := r.open()
	if _, dirty, err := c.Head(context.Background()); err != nil || len(dirty) > 0 {
		t.Errorf("got %q, %v", dirty, err)
	}
	if _, err := c.Carries(context.Background(), fix, fix); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository ran")
	}
	if after, err := os.ReadFile(index); err != nil || string(after) != string(before) {
		t.Errorf("the index was written: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	r := newRepo(t)
	ctx := context.Background()
	sub := filepath.Join(r.dir, "unpacked", "tarball")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.dir, "file")
	r.write("file", "x\n")
	for name, c := range map[string]struct{ dir, want string }{
		"no repository":       {t.TempDir(), "not a git repository (or any of the parent directories): .git: name the folder of a checkout"},
		"below another":       {sub, "it is no checkout of its own but lies in that of " + r.dir},
		"a file":              {file, "it is not a folder"},
		"inside of git's own": {filepath.Join(r.dir, ".git", "refs"), "must be run in a work tree"},
	} {
		if _, err := source.Open(ctx, c.dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, c.want)
		}
	}
	if _, err := source.Open(ctx, filepath.Join(r.dir, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if _, _, err := r.open().Head(ctx); err == nil || !strings.Contains(err.Error(), "nothing is committed there yet") {
		t.Errorf("without a commit: %v", err)
	}
	begin(r)
	bare := filepath.Join(t.TempDir(), "bare")
	r.git("clone", "-q", "--bare", r.dir, bare)
	if _, _, err := r.at(bare).open().Head(ctx); err == nil || !strings.Contains(err.Error(), "bare repository") {
		t.Errorf("bare: %v", err)
	}
}

func TestOpenOfAnotherOwner(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("ONEBIT_CI") != "" {
			t.Fatal("only root can give a folder away")
		}
		t.Skip("only root can give a folder away")
	}
	r := newRepo(t)
	begin(r)
	for _, dir := range []string{r.dir, filepath.Join(r.dir, ".git")} {
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	_, err := source.Open(context.Background(), r.dir)
	want := "dubious ownership in repository at '" + r.dir + "': if you trust it: git config --global --add safe.directory " + r.dir
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

func TestOpenWithoutGit(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if _, err := source.Open(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "git is not installed: install it") {
		t.Errorf("got %v", err)
	}
}

func TestOpenWithOldGit(t *testing.T) {
	for says, want := range map[string]string{
		"git version 2.34.1":    "git is version 2.34, and 2.39 is needed",
		"git version 1.99":      "git is version 1.99, and 2.39 is needed",
		"hub version 2.14":      "which is not understood",
		"git version 3.0.windo": "not a git answer", // new enough: the next question is asked
	} {
		dir := t.TempDir()
		script := "#!/bin/sh\ncase \"$*\" in *\\ version) echo '" + says + "';; *) echo 'fatal: not a git answer' >&2; exit 128;; esac\n"
		if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir)
		if _, err := source.Open(context.Background(), dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", says, err, want)
		}
	}
}

func TestBetween(t *testing.T) {
	r := newRepo(t)
	ctx := context.Background()
	base := r.commit("x", "0", "first")
	r.git("switch", "-q", "-c", "side")
	aside := r.commit("y", "1", "aside")
	r.git("switch", "-q", "main")
	second := r.commit("x", "1", "second: \x1b[31mä\n on two lines\n\nbody")
	third := r.commit("x", "2", "third")
	c := r.open()
	got, err := c.Between(ctx, base[:10], third)
	if err != nil {
		t.Fatal(err)
	}
	want := []source.Commit{
		{ID: third, Subject: "third", Date: r.git("show", "-s", "--format=%aI", third)},
		{ID: second, Subject: "second: \x1b[31mä on two lines", Date: r.git("show", "-s", "--format=%aI", second)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if back, err := c.Between(ctx, third, base); err != nil || len(back) != 0 {
		t.Errorf("backwards: %v, %v", back, err)
	}
	if across, err := c.Between(ctx, third, aside); err != nil || len(across) != 1 || across[0].ID != aside {
		t.Errorf("across: %v, %v", across, err)
	}
	if _, err := c.Between(ctx, base, strings.Repeat("ab", 20)); !errors.Is(err, source.ErrIncomplete) {
		t.Errorf("a commit that is not there: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "clone")
	r.git("clone", "-q", "--depth", "1", "file://"+r.dir, dir)
	s := r.at(dir)
	s.git("fetch", "-q", "--depth", "1", "origin", second)
	if _, err := s.open().Between(ctx, second, third); !errors.Is(err, source.ErrIncomplete) || !strings.Contains(err.Error(), "shallow") {
		t.Errorf("shallow: %v", err)
	}
}

package source_test

import (
	"os"
	"path/filepath"
	"testing"
)

// The three answers that a shallow clone can give, by what it lacks.
func TestCarriesShallow(t *testing.T) {
	r := newRepo(t)
	names := map[string]string{}
	_, fix := begin(r)
	names["revert"] = r.revert(fix)
	names["again"] = r.revert(names["revert"])
	r.commit("x", "x\n", "more")
	pin := r.commit("y", "y\n", "more still")
	clone := func(t *testing.T, depth string) *repo {
		dir := filepath.Join(t.TempDir(), "clone")
		r.git("clone", "-q", "--depth", depth, "file://"+r.dir, dir)
		return r.at(dir)
	}
	t.Run("whole", func(t *testing.T) {
		check(t, r, names, pin, fix, yes, "reverted by {revert}, applied again: same patch as {again}")
	})
	t.Run("the fix is the pin", func(t *testing.T) {
		check(t, clone(t, "1"), names, pin, pin, yes, "the pin itself")
	})
	t.Run("the fix is missing", func(t *testing.T) {
		check(t, clone(t, "2"), names, pin, fix, dunn, fix+" is not in this checkout, whose history is shallow: git fetch --unshallow")
	})
	t.Run("the fix is the edge", func(t *testing.T) {
		check(t, clone(t, "5"), names, pin, fix, dunn, "the history is shallow: "+fix[:7]+" is at its edge: git fetch --unshallow")
	})
	t.Run("all that follows the fix is there", func(t *testing.T) {
		check(t, clone(t, "6"), names, pin, fix, yes, "reverted by {revert}, applied again: same patch as {again}")
	})
	t.Run("the revert is there, all that follows too", func(t *testing.T) {
		c := clone(t, "6")
		c.git("reset", "-q", "--hard", names["revert"])
		check(t, c, names, names["revert"], fix, no, "reverted by {revert}")
	})
	t.Run("the fix is there and not in this history, as far as it goes", func(t *testing.T) {
		c := clone(t, "2")
		c.git("fetch", "-q", "--depth", "2", "origin", fix)
		check(t, c, names, pin, fix, dunn, "the history is shallow: the fix may be in what is missing: git fetch --unshallow")
	})
}

// A branch whose beginning is cut off may hold a revert of the fix.
func TestCarriesShallowBranch(t *testing.T) {
	r := newRepo(t)
	_, fix := begin(r)
	r.git("switch", "-q", "-c", "side")
	r.revert(fix)
	for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
		r.commit("side", n, "side "+n)
	}
	r.git("switch", "-q", "main")
	r.commit("x", "x\n", "more")
	r.git("merge", "-q", "--no-edit", "side")
	dir := filepath.Join(t.TempDir(), "clone")
	r.git("clone", "-q", "--depth", "4", "file://"+r.dir, dir)
	c := r.at(dir)
	check(t, c, map[string]string{}, r.head(), fix, dunn, "the history is shallow: ancestor of the pin could be followed by more: git fetch --unshallow")
	c.git("fetch", "-q", "--unshallow")
	check(t, c, map[string]string{"revert": r.git("rev-parse", "side~6")}, r.head(), fix, no, "reverted by {revert}")
}

// A commit at the edge looks as if it had made every file, which is no patch.
func TestCarriesShallowEdgeIsNoPatch(t *testing.T) {
	r := newRepo(t)
	fix := r.commit("kernel.c", text("one"), "kernel")
	r.commit("kernel.c", text("two"), "another")
	pin := r.commit("kernel.c", text("one"), "back")
	dir := filepath.Join(t.TempDir(), "clone")
	r.git("clone", "-q", "--depth", "1", "file://"+r.dir, dir)
	c := r.at(dir)
	c.git("fetch", "-q", "origin", fix)
	check(t, c, map[string]string{}, pin, fix, dunn, "the history is shallow: the fix may be in what is missing: git fetch --unshallow")
}

// A partial clone has all commits and none of the files; nothing is fetched to answer.
func TestCarriesPartial(t *testing.T) {
	r := newRepo(t)
	_, fix := begin(r)
	plain := r.commit("x", "x\n", "more")
	r.commit("kernel.c", text("one", "two", "three"), "silently back")
	r.git("config", "uploadpack.allowFilter", "true")
	dir := filepath.Join(t.TempDir(), "clone")
	r.git("clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+r.dir, dir)
	c := r.at(dir)
	count := func() string { return c.git("count-objects", "-v") }
	before := count()
	check(t, c, map[string]string{}, plain, fix, yes, "ancestor of the pin")
	check(t, c, map[string]string{}, r.head(), fix, dunn, "this checkout is a partial clone without the files to compare: use a whole one")
	if after := count(); after != before {
		t.Errorf("objects were fetched: %s, before %s", after, before)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git", "FETCH_HEAD")); err == nil {
		t.Error("something was fetched")
	}
}

package source_test

import "testing"

const dropped = "ancestor of the pin, but the merge {merge} has not its files as the side with it had them, nor as git merges them"

// beginTwo makes a fix of two files on main and a branch side from before it.
func beginTwo(r *repo) (fix string) {
	r.write("b.c", text("one", "two", "three"))
	base := r.commit("a.c", text("one", "two", "three"), "kernels")
	r.git("branch", "side", base)
	r.write("b.c", text("one", "TWO", "three"))
	return r.commit("a.c", text("one", "TWO", "three"), "close both races")
}

func (r *repo) mergeWith(files map[string]string, branches ...string) string {
	r.t.Helper()
	r.git(append([]string{"merge", "-q", "--no-commit", "--no-ff"}, branches...)...)
	for name, content := range files {
		r.write(name, content)
	}
	return r.commitAll("merge " + branches[0])
}

var mergeStories = []story{
	{"octopus that kept its own side", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		r.git("branch", "third", "main~1")
		r.git("switch", "-q", "third")
		r.commit("third", "x\n", "third")
		r.git("switch", "-q", "release")
		r.git("merge", "-q", "-s", "ours", "-m", "three", "main", "third")
		names["merge"] = r.head()
		return r.commit("z", "z\n", "more"), fix
	}, dunn, dropped},
	{"octopus", func(r *repo, _ map[string]string) (string, string) {
		fix := onRelease(r)
		r.git("branch", "third", "main~1")
		r.git("switch", "-q", "third")
		r.commit("third", "x\n", "third")
		r.git("switch", "-q", "release")
		r.git("merge", "-q", "-m", "three", "main", "third")
		return r.commit("z", "z\n", "more"), fix
	}, yes, "ancestor of the pin"},
	{"applied again and lost to a side of the revert", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.revert(fix)
		r.git("branch", "side")
		names["again"] = r.pick(fix)
		r.git("switch", "-q", "side")
		r.commit("x", "x\n", "aside")
		r.git("switch", "-q", "main")
		names["merge"] = r.mergeWith(map[string]string{"kernel.c": text("one", "two", "three")}, "side")
		return names["merge"], fix
	}, dunn, "reverted by {revert}, applied again: same patch as {again}, but the merge {merge} has not its files as the side with it had them, nor as git merges them"},
	{"a merge as the fix, lost in another", func(r *repo, names map[string]string) (string, string) {
		onRelease(r)
		r.git("branch", "old", "release")
		r.git("merge", "-q", "--no-edit", "main")
		fix := r.head()
		r.git("switch", "-q", "old")
		r.commit("y", "y\n", "old")
		r.git("merge", "-q", "-s", "ours", "--no-edit", "release")
		names["merge"] = r.head()
		return names["merge"], fix
	}, dunn, dropped},
	{"half of it lost in a merge", func(r *repo, names map[string]string) (string, string) {
		fix := beginTwo(r)
		r.git("switch", "-q", "side")
		r.commit("x", "x\n", "aside")
		names["merge"] = r.mergeWith(map[string]string{"a.c": text("one", "two", "three")}, "main")
		return names["merge"], fix
	}, dunn, dropped},
	{"lost in a merge that edits the file besides", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		names["merge"] = r.mergeWith(map[string]string{"kernel.c": text("one", "two", "THREE")}, "main")
		return names["merge"], fix
	}, dunn, dropped},
	{"both sides changed the file, merged as git does, and another by hand", func(r *repo, _ map[string]string) (string, string) {
		fix := onRelease(r)
		r.commit("kernel.c", text("one", "two", "THREE"), "another line")
		return r.mergeWith(map[string]string{"notes": "by hand\n"}, "main"), fix
	}, yes, "ancestor of the pin"},
	{"renamed on the other side, merged as git does", func(r *repo, _ map[string]string) (string, string) {
		fix := onRelease(r)
		r.git("mv", "kernel.c", "core.c")
		r.commitAll("rename")
		r.git("merge", "-q", "--no-edit", "main")
		return r.head(), fix
	}, yes, "ancestor of the pin"},
	{"renamed on the other side and lost", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		r.git("mv", "kernel.c", "core.c")
		r.commitAll("rename")
		r.git("merge", "-q", "-s", "ours", "--no-edit", "main")
		names["merge"] = r.head()
		return names["merge"], fix
	}, dunn, dropped},
	{"the version of the side with it", func(r *repo, _ map[string]string) (string, string) {
		fix := beginTwo(r)
		r.git("switch", "-q", "side")
		r.commit("x", "x\n", "aside")
		r.commit("a.c", text("ONE", "two", "three"), "another line")
		return r.mergeWith(map[string]string{"a.c": text("one", "TWO", "three")}, "main"), fix
	}, yes, "ancestor of the pin"},
}

func TestCarriesAfterMerges(t *testing.T) {
	runStories(t, mergeStories)
}

func runStories(t *testing.T, stories []story) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t)
			names := map[string]string{}
			pin, fix := s.make(r, names)
			check(t, r, names, pin, fix, s.want, s.how)
		})
	}
}

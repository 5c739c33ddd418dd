package source_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/engine/source"
)

const (
	yes  = "yes"
	no   = "no"
	dunn = "unknown"
)

func word(c source.Carriage) string {
	switch {
	case c.Carried == nil:
		return dunn
	case *c.Carried:
		return yes
	}
	return no
}

// A story makes a history and returns the pin, the fix, and what the answer says, in which {name} stands for a
// commit that the story put into names.
type story struct {
	name string
	make func(r *repo, names map[string]string) (pin, fix string)
	want string
	how  string
}

// begin makes a first commit and the fix on top.
func begin(r *repo) (base, fix string) {
	base = r.commit("kernel.c", text("one", "two", "three"), "kernel")
	return base, r.commit("kernel.c", text("one", "TWO", "three"), "kernel: close the race (#123)")
}

// onRelease leaves main with the fix and makes a branch from before it with another commit.
func onRelease(r *repo) (fix string) {
	base, fix := begin(r)
	r.git("switch", "-q", "-c", "release", base)
	r.commit("notes", "release\n", "notes")
	return fix
}

var stories = []story{
	{"the fix itself", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		return fix, fix
	}, yes, "the pin itself"},
	{"ancestor", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		return r.commit("kernel.c", text("one", "TWO", "THREE"), "more"), fix
	}, yes, "ancestor of the pin"},
	{"abbreviated", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		return r.commit("x", "x\n", "more")[:9], fix[:7]
	}, yes, "ancestor of the pin"},
	{"not yet", func(r *repo, _ map[string]string) (string, string) {
		base, fix := begin(r)
		return base, fix
	}, no, "not in the history of the pin"},
	{"cherry-pick", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		names["copy"] = r.pick(fix)
		return names["copy"], fix
	}, yes, "same patch as {copy}"},
	{"rebase among other lines", func(r *repo, names map[string]string) (string, string) {
		base, fix := begin(r)
		r.git("switch", "-q", "-c", "release", base)
		r.commit("kernel.c", "new\nlines\nabove\nmoved\nall\n"+text("one", "two", "three"), "move")
		names["copy"] = r.pick(fix)
		return r.commit("x", "x\n", "more"), fix
	}, yes, "same patch as {copy}"},
	{"revert", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.revert(fix)
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"before the revert", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		next := r.commit("x", "x\n", "more")
		r.revert(fix)
		return next, fix
	}, yes, "ancestor of the pin"},
	{"revert that says nothing", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.commit("kernel.c", text("one", "two", "three"), "back to what worked")
		return r.commit("x", "x\n", "more"), fix
	}, no, "reverted by {revert}"},
	{"revert by message, with other changes", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.commit("kernel.c", text("one", "two", "3"), "kernel: out again\n\nThis reverts commit "+fix[:9]+".")
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"revert of the revert", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.revert(fix)
		names["again"] = r.revert(names["revert"])
		return names["again"], fix
	}, yes, "reverted by {revert}, applied again: same patch as {again}"},
	{"revert of the revert, by message", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.revert(fix)
		names["again"] = r.commit("kernel.c", text("one", "TWO!", "three"), "try again\n\nThis reverts commit "+names["revert"]+".")
		return names["again"], fix
	}, yes, "reverted by {revert}, applied again: {again} reverts the revert {revert}"},
	{"revert of revert of revert", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["last"] = r.revert(r.revert(r.revert(fix)))
		return r.commit("x", "x\n", "more"), fix
	}, no, "reverted by {last}"},
	{"picked again after a revert", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.revert(fix)
		names["again"] = r.pick(fix)
		return names["again"], fix
	}, yes, "reverted by {revert}, applied again: same patch as {again}"},
	{"picked, then the copy reverted", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		names["revert"] = r.revert(r.pick(fix))
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"revert picked with a conflict, naming what is elsewhere", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		r.pick(fix)
		r.git("switch", "-q", "main")
		there := r.revert(fix)
		r.git("switch", "-q", "release")
		names["revert"] = r.commit("kernel.c", text("one", "2", "three"), "Revert it here too\n\nThis reverts commit "+fix+".\n\n(cherry picked from commit "+there+")")
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"revert of a revert that is elsewhere", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		r.git("switch", "-q", "-c", "other")
		r.commit("y", "y\n", "aside")
		there := r.revert(fix)
		r.git("switch", "-q", "main")
		names["revert"] = r.pick(there)
		names["again"] = r.commit("kernel.c", text("one", "TWO!", "three"), "again\n\nThis reverts commit "+there+".")
		return names["again"], fix
	}, yes, "reverted by {revert}, applied again: {again} reverts the revert {there}"},
	{"revert on a branch that was not merged", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		r.git("switch", "-q", "-c", "side")
		r.revert(fix)
		r.git("switch", "-q", "main")
		return r.commit("x", "x\n", "more"), fix
	}, yes, "ancestor of the pin"},
	{"revert on a branch that was merged", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		r.git("switch", "-q", "-c", "side")
		names["revert"] = r.revert(fix)
		r.git("switch", "-q", "main")
		r.commit("x", "x\n", "more")
		r.git("merge", "-q", "--no-edit", "side")
		return r.head(), fix
	}, no, "reverted by {revert}"},
	{"picked for a release that main then takes back, reverted on main", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		names["copy"] = r.pick(fix)
		r.git("switch", "-q", "main")
		names["revert"] = r.revert(fix)
		r.git("merge", "-q", "--no-edit", "release")
		return r.head(), fix
	}, dunn, "applied in {copy} and reverted in {revert} on different branches"},
	{"picked for a release that main then takes back", func(r *repo, _ map[string]string) (string, string) {
		fix := onRelease(r)
		r.pick(fix)
		r.git("switch", "-q", "main")
		r.git("merge", "-q", "--no-edit", "release")
		return r.head(), fix
	}, yes, "ancestor of the pin"},
	{"merged from a branch", func(r *repo, _ map[string]string) (string, string) {
		fix := onRelease(r)
		r.git("merge", "-q", "--no-edit", "main")
		return r.head(), fix
	}, yes, "ancestor of the pin"},
	{"revert of the merge that brought it", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		r.git("switch", "-q", "main")
		r.commit("x", "x\n", "with it")
		r.git("switch", "-q", "release")
		r.git("merge", "-q", "--no-edit", "main")
		names["revert"] = r.revert("HEAD", "-m", "1")
		return r.commit("z", "z\n", "more"), fix
	}, no, "reverted by {revert}"},
	{"revert of a merge that came later", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		r.git("switch", "-q", "-c", "side")
		r.commit("x", "x\n", "aside")
		r.git("switch", "-q", "main")
		r.git("merge", "-q", "--no-ff", "--no-edit", "side")
		r.revert("HEAD", "-m", "1")
		return r.head(), fix
	}, yes, "ancestor of the pin"},
	{"merge that kept its own side", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		r.git("merge", "-q", "-s", "ours", "--no-edit", "main")
		names["merge"] = r.head()
		return r.commit("z", "z\n", "more"), fix
	}, dunn, dropped},
	{"merge that kept its own side, picked afterwards", func(r *repo, _ map[string]string) (string, string) {
		fix := onRelease(r)
		r.git("merge", "-q", "-s", "ours", "--no-edit", "main")
		return r.pick(fix), fix
	}, yes, "same patch as {pin}"},
	{"branches from before the fix merged after it", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		r.git("switch", "-q", "-c", "side", "main~1")
		r.commit("x", "x\n", "aside")
		r.git("switch", "-q", "main")
		r.git("merge", "-q", "--no-edit", "side")
		return r.head(), fix
	}, yes, "ancestor of the pin"},
	{"merge as the fix", func(r *repo, _ map[string]string) (string, string) {
		onRelease(r)
		r.git("merge", "-q", "--no-edit", "main")
		fix := r.head()
		return r.commit("z", "z\n", "more"), fix
	}, yes, "ancestor of the pin"},
	{"merge as the fix, reverted", func(r *repo, names map[string]string) (string, string) {
		onRelease(r)
		r.git("merge", "-q", "--no-edit", "main")
		fix := r.head()
		names["revert"] = r.revert(fix, "-m", "1")
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"merge as the fix, picked as one patch", func(r *repo, names map[string]string) (string, string) {
		onRelease(r)
		r.git("merge", "-q", "--no-edit", "main")
		fix := r.head()
		r.git("switch", "-q", "-c", "old", "release~1")
		names["copy"] = r.pick(fix, "-m", "1")
		return names["copy"], fix
	}, yes, "same patch as {copy}"},
	{"empty commit", func(r *repo, _ map[string]string) (string, string) {
		begin(r)
		fix := r.commitAll("nothing")
		r.commitAll("nothing else")
		return r.commit("z", "z\n", "more"), fix
	}, yes, "ancestor of the pin"},
	{"empty commit elsewhere", func(r *repo, _ map[string]string) (string, string) {
		base, _ := begin(r)
		fix := r.commitAll("nothing")
		r.git("switch", "-q", "-c", "old", base)
		return r.commitAll("nothing else"), fix
	}, no, "not in the history of the pin"},
	{"first commit reverted", func(r *repo, names map[string]string) (string, string) {
		fix, _ := begin(r)
		r.git("reset", "-q", "--hard", fix)
		names["revert"] = r.revert(fix)
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"the fix is a revert, not there", func(r *repo, _ map[string]string) (string, string) {
		_, bad := begin(r)
		r.git("branch", "release")
		fix := r.revert(bad)
		r.git("switch", "-q", "release")
		return r.commit("x", "x\n", "more"), fix
	}, no, "not in the history of the pin"},
	{"the fix is a revert, picked", func(r *repo, names map[string]string) (string, string) {
		_, bad := begin(r)
		r.git("branch", "release")
		fix := r.revert(bad)
		r.git("switch", "-q", "release")
		r.commit("x", "x\n", "more")
		names["copy"] = r.pick(fix)
		return names["copy"], fix
	}, yes, "same patch as {copy}"},
	{"the fix is a revert, and the bad one is back", func(r *repo, names map[string]string) (string, string) {
		_, bad := begin(r)
		fix := r.revert(bad)
		names["again"] = r.pick(bad)
		return names["again"], fix
	}, no, "reverted by {again}"},
	{"same patch with another file", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		r.pick(fix, "--no-commit")
		return r.commit("more", "more\n", "like it"), fix
	}, no, "not in the history of the pin"},
	{"picked with a conflict", func(r *repo, names map[string]string) (string, string) {
		fix := onRelease(r)
		names["copy"] = r.commit("kernel.c", text("one", "TWO, differently", "three"), "close the race\n\n(cherry picked from commit "+fix+")")
		return names["copy"], fix
	}, dunn, "not in the history of the pin, but {copy} says that it was picked from the fix, with another patch"},
	{"revert by title alone", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["revert"] = r.commit("kernel.c", text("one", "2", "three"), "Revert \"kernel: close the race\" (#130)")
		return names["revert"], fix
	}, dunn, `ancestor of the pin, but {revert} has the title Revert "kernel: close the race" (#130) and names no commit of this history`},
	{"revert by title, of another commit so titled", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		other := r.commit("x", "x\n", "kernel: close the race (#124)")
		r.revert(other)
		return r.head(), fix
	}, yes, "ancestor of the pin"},
	{"reverted in part", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["part"] = r.commit("kernel.c", text("one", "two or so", "three"), "weaken\n\nThis partially reverts commit "+fix+".")
		return names["part"], fix
	}, dunn, "ancestor of the pin, but {part} says that it reverts it in part or in other words"},
	{"white space alone", func(r *repo, names map[string]string) (string, string) {
		base := r.commit("Makefile", "all:\n        true\n", "make")
		fix := r.commit("Makefile", "all:\n\ttrue\n", "make: a tab")
		r.git("switch", "-q", "-c", "release", base)
		r.commit("x", "x\n", "more")
		names["copy"] = r.pick(fix)
		return names["copy"], fix
	}, yes, "same patch as {copy}"},
	{"white space alone, reverted", func(r *repo, names map[string]string) (string, string) {
		r.commit("Makefile", "all:\n        true\n", "make")
		fix := r.commit("Makefile", "all:\n\ttrue\n", "make: a tab")
		names["revert"] = r.commit("Makefile", "all:\n        true\n", "eight spaces")
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"mode alone, reverted", func(r *repo, names map[string]string) (string, string) {
		r.commit("run", "#!/bin/sh\n", "run")
		r.git("update-index", "--chmod=+x", "run")
		r.git("commit", "-q", "-m", "executable")
		fix := r.head()
		r.git("update-index", "--chmod=-x", "run")
		r.git("commit", "-q", "-m", "not so")
		names["revert"] = r.head()
		return names["revert"], fix
	}, no, "reverted by {revert}"},
	{"binary", func(r *repo, names map[string]string) (string, string) {
		base := r.commit("k.bin", "\x00\x01", "binary")
		fix := r.commit("k.bin", "\x00\x02", "binary, better")
		r.git("switch", "-q", "-c", "release", base)
		r.commit("x", "x\n", "more")
		names["copy"] = r.pick(fix)
		return names["copy"], fix
	}, yes, "same patch as {copy}"},
	{"another binary", func(r *repo, _ map[string]string) (string, string) {
		base := r.commit("k.bin", "\x00\x01", "binary")
		fix := r.commit("k.bin", "\x00\x02", "binary, better")
		r.git("switch", "-q", "-c", "release", base)
		return r.commit("k.bin", "\x00\x03", "binary, better"), fix
	}, no, "not in the history of the pin"},
	{"odd file names", func(r *repo, names map[string]string) (string, string) {
		odd := "-p\n\"ä\" :(top)*\t\\"
		base := r.commit(odd, text("one"), "odd")
		fix := r.commit(odd, text("ONE"), "odd too")
		r.git("switch", "-q", "-c", "release", base)
		r.commit("x", "x\n", "more")
		names["copy"] = r.pick(fix)
		return names["copy"], fix
	}, yes, "same patch as {copy}"},
	{"a branch of the name of the abbreviation", func(r *repo, _ map[string]string) (string, string) {
		base, fix := begin(r)
		r.git("branch", fix[:7], base)
		return base, fix[:7]
	}, no, "not in the history of the pin"},
	{"replaced and grafted", func(r *repo, _ map[string]string) (string, string) {
		base, fix := begin(r)
		pin := r.commit("x", "x\n", "more")
		r.git("replace", "--graft", pin, base)
		r.write(".git/info/grafts", pin+" "+base+"\n")
		return pin, fix
	}, yes, "ancestor of the pin"},
	{"not there", func(r *repo, _ map[string]string) (string, string) {
		_, fix := begin(r)
		return fix, "ababababa"
	}, dunn, "ababababa is not in this checkout: fetch it"},
	{"a file's id, no commit's", func(r *repo, names map[string]string) (string, string) {
		_, fix := begin(r)
		names["blob"] = r.git("rev-parse", "HEAD:kernel.c")
		return fix, names["blob"][:7]
	}, dunn, "{blob} is not in this checkout: fetch it"},
}

func TestCarries(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		for _, s := range stories {
			if format == "sha256" && !slices.Contains([]string{"abbreviated", "cherry-pick", "revert", "revert of the revert", "binary", "not there"}, s.name) {
				continue
			}
			t.Run(format+"/"+s.name, func(t *testing.T) {
				t.Parallel()
				r := newRepo(t, "--object-format="+format)
				names := map[string]string{}
				pin, fix := s.make(r, names)
				check(t, r, names, pin, fix, s.want, s.how)
			})
		}
	}
}

func check(t *testing.T, r *repo, names map[string]string, pin, fix, want, how string) {
	t.Helper()
	got, err := r.open().Carries(context.Background(), pin, fix)
	if err != nil {
		t.Fatal(err)
	}
	names["pin"] = pin
	if there, err := r.try("rev-parse", "--verify", "-q", "other"); err == nil {
		names["there"] = there
	}
	for name, id := range names {
		how = strings.ReplaceAll(how, "{"+name+"}", id[:7])
	}
	if word(got) != want || got.How != how {
		log := r.git("log", "--graph", "--oneline", "--all")
		t.Errorf("got %s, %q\nwant %s, %q\n%s", word(got), got.How, want, how, log)
	}
}

func TestCarriesRefuses(t *testing.T) {
	r := newRepo(t)
	_, fix := begin(r)
	c := r.open()
	for _, bad := range []string{"", "main", "--all", "HEAD", "abc", strings.Repeat("a", 65), "ABCDEF0"} {
		if got, err := c.Carries(context.Background(), fix, bad); err == nil {
			t.Errorf("Carries of %q: %v", bad, got)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := c.Carries(ctx, fix, fix); err == nil {
		t.Error("an ended context gives an answer")
	}
}

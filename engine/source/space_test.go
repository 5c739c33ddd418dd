package source_test

import "testing"

const (
	looped    = "for x in y:\n    a(x)\n    b(x)\n"
	inLoop    = "for x in y:\n    a(x)\n    b(x)\n    close(x)\n"
	afterLoop = "for x in y:\n    a(x)\n    b(x)\nclose(x)\n"
)

var spaceStories = []story{
	{"the same line in another block", func(r *repo, names map[string]string) (string, string) {
		base := r.commit("k.py", looped, "loop")
		fix := r.commit("k.py", inLoop, "close each")
		r.git("switch", "-q", "-c", "release", base)
		names["like"] = r.commit("k.py", afterLoop, "close it")
		return r.commit("x", "x\n", "more"), fix
	}, dunn, "not in the history of the pin, but {like} is the same patch but for white space"},
	{"taken out of another block", func(r *repo, names map[string]string) (string, string) {
		r.commit("k.py", looped, "loop")
		fix := r.commit("k.py", inLoop, "close each")
		r.commit("k.py", afterLoop, "close it once")
		names["like"] = r.commit("k.py", looped, "no more")
		return names["like"], fix
	}, dunn, "ancestor of the pin, but {like} is the same patch backwards but for white space"},
	{"and picked as it is afterwards", func(r *repo, names map[string]string) (string, string) {
		base := r.commit("k.py", looped, "loop")
		fix := r.commit("k.py", inLoop, "close each")
		r.git("switch", "-q", "-c", "release", base)
		r.commit("k.py", afterLoop, "close it")
		r.commit("k.py", looped, "no more")
		return r.pick(fix), fix
	}, yes, "same patch as {pin}"},
	{"put there twice", func(r *repo, _ map[string]string) (string, string) {
		r.commit("k.py", looped, "loop")
		fix := r.commit("k.py", inLoop, "close each")
		r.commit("k.py", "a\nb\nc\nd\n"+inLoop, "move it")
		r.revert(r.head())
		return r.commit("x", "x\n", "more"), fix
	}, yes, "ancestor of the pin"},
}

func TestCarriesSeesWhiteSpace(t *testing.T) { runStories(t, spaceStories) }

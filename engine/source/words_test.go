package source_test

import (
	"strings"
	"testing"
)

// Reverts in the words of people: never a yes, and no sure no either.
func TestCarriesRevertInOtherWords(t *testing.T) {
	var words []story
	for _, message := range []string{
		"Revert {short}", "out\n\nThis reverts {fix}.", "out\n\nThis reverts commit `{fix}`", "out\n\nThis reverts commit {FIX}.",
		"revert: kernel: close the race", "kernel : revert kernel: close the race", "Reverting #123", "Reverts org/repo#123",
		"[release] Revert \"kernel: close the race\"", "several things\n\n* Revert \"kernel: close the race\" (#7)\n* other",
		"Back out {short}",
	} {
		words = append(words, story{message, func(r *repo, names map[string]string) (string, string) {
			_, fix := begin(r)
			text := strings.NewReplacer("{short}", fix[:10], "{fix}", fix, "{FIX}", strings.ToUpper(fix)).Replace(message)
			names["fix"] = fix
			names["revert"] = r.commit("kernel.c", text1, text)
			return r.commit("x", "x\n", "more"), fix
		}, dunn, "ancestor of the pin, but {revert} seems to revert {fix}"})
	}
	words = append(words,
		story{"a range", func(r *repo, names map[string]string) (string, string) {
			_, fix := begin(r)
			names["revert"] = r.commit("kernel.c", text1, "Undo\n\nThis reverts commits "+fix[:8]+"..HEAD")
			return names["revert"], fix
		}, dunn, "ancestor of the pin, but {revert} says that it reverts it in part or in other words"},
		story{"shortened title", func(r *repo, names map[string]string) (string, string) {
			begin(r)
			names["fix"] = r.commit("kernel.c", text("one", "TWO", "THREE"), "kernel: a title that is long enough for GitHub to shorten it where it is reverted")
			names["revert"] = r.commit("kernel.c", text1, "Revert \"kernel: a title that is long enough for GitHub to…\" (#7)\n\n…shorten it where it is reverted\"")
			return names["revert"], names["fix"]
		}, dunn, "ancestor of the pin, but {revert} seems to revert {fix}"},
		story{"a copy is reverted so", func(r *repo, names map[string]string) (string, string) {
			fix := onRelease(r)
			names["copy"] = r.pick(fix)
			names["revert"] = r.commit("kernel.c", text1, "Revert "+names["copy"][:8])
			return names["revert"], fix
		}, dunn, "same patch as {copy}, but {revert} seems to revert {copy}"},
		story{"before the fix came", func(r *repo, _ map[string]string) (string, string) {
			fix := onRelease(r)
			r.commit("y", "y\n", "revert: kernel: close the race")
			return r.pick(fix), fix
		}, yes, "same patch as {pin}"},
		story{"another one with that beginning, by its hash", func(r *repo, _ map[string]string) (string, string) {
			begin(r)
			fix := r.commit("kernel.c", text("one", "TWO", "THREE"), "kernel: close the race on this side")
			r.revert(r.commit("x", "x\n", "kernel: close the race on that side"))
			return r.head(), fix
		}, yes, "ancestor of the pin"},
		story{"and the fix too, after another one by its hash", func(r *repo, names map[string]string) (string, string) {
			_, names["fix"] = begin(r)
			other := r.commit("x", "x\n", "another thing")
			names["revert"] = r.commit("kernel.c", text1, "Revert \"another thing\"\n\nThis reverts commit "+other+".\n\n* Revert \"kernel: close the race\"")
			return names["revert"], names["fix"]
		}, dunn, "ancestor of the pin, but {revert} seems to revert {fix}"},
	)
	runStories(t, words)
}

// text1 is neither as before the fix nor as after it.
var text1 = text("one", "2", "three")

package doctor

import (
	"slices"
	"testing"

	"github.com/1bit-systems/pkg/packager"
)

func TestGainedFixes(t *testing.T) {
	yes, no := true, false
	fix := func(id, title string, carried *bool) packager.Fix {
		return packager.Fix{ID: id, Title: title, Component: "engine", Carried: carried}
	}
	from := &packager.Manifest{Fixes: []packager.Fix{fix("both", "", &yes), fix("lacking", "", &no), fix("unknown", "", nil), fix("lost", "", &yes)}}
	to := &packager.Manifest{Fixes: []packager.Fix{
		fix("both", "", &yes), fix("lacking", "a race", &yes), fix("unknown", "", &yes), fix("lost", "", &no), fix("new", "", &yes), fix("doubtful", "", nil),
	}}
	if got, want := gained(from, to), []string{"lacking (a race)", "unknown (engine)", "new (engine)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

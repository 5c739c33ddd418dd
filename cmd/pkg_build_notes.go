package cmd

import (
	"fmt"
	"io"
	"slices"

	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/packager/build"
)

// sayNotes tells people what a new package is not: what it does not carry, and what nobody looked at or looks after.
func sayNotes(w io.Writer, r *build.Result) {
	says := func(t build.Trial) bool { return len(t.Commits) > 0 }
	if len(r.Trials) > 0 && !slices.ContainsFunc(r.Trials, says) {
		fmt.Fprintln(w, "no program says which commit it is of")
	}
	for _, f := range r.Manifest.Fixes {
		switch {
		case f.Carried == nil:
			fmt.Fprintf(w, "fix %s is unknown: %s\n", f.ID, ui.Clean(f.How))
		case !*f.Carried:
			fmt.Fprintf(w, "fix %s is NOT carried: %s\n", f.ID, ui.Clean(f.How))
		}
	}
	for _, p := range r.Packages {
		if len(p.Undeclared) > 0 {
			fmt.Fprintf(w, "the %s package has no dependency that says: %s; 1bit pkg verify looks for that\n", p.Format, ui.Clean(join(p.Undeclared)))
		}
	}
}

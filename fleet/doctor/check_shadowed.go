package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/1bit-systems/pkg/fleet"
)

// shadowed looks for lines that our drop-in wins over, but for those that adopt took over.
func shadowed() Check {
	return Check{
		Name:   "shadowed",
		Reason: "Whoever edits such a line believes that it decides which package starts, and it has no effect.",
		Remedy: "Take the line out, or take it over: 1bit pkg adopt UNIT",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				for _, p := range s.Shadowed {
					adopted := slices.ContainsFunc(s.Adopted, func(a fleet.AdoptedLine) bool { return a.File == p.File })
					if adopted || p.Setting == "ExecStart" {
						continue
					}
					add(fmt.Sprintf("%s:%d", p.File, p.Line), s.typed("take the line out, since 1bit pkg switch UNIT decides"),
						"%s: it sets %s=%s, and the drop-in of 1bit wins over it", s.where, p.Setting, p.Value)
				}
			}
			return err
		},
	}
}

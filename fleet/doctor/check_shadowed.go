package doctor

import (
	"context"
	"fmt"
	"slices"

	"github.com/1bit-systems/pkg/fleet"
)

// shadowed looks for lines that are in force neither with our drop-in nor without it. One that adopt took over, and the
// one that decides where ours is gone, is what a first rollback and unswitch go back to.
func shadowed() Check {
	return Check{
		Name:   "shadowed",
		Reason: "Whoever edits such a line believes that it decides which package starts, and it has no effect, not even after a rollback.",
		Remedy: "Take the line out.",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				back := map[string]fleet.Place{} // the line of each variable that decides without ours: the last one
				for _, p := range s.Shadowed {
					back[p.Setting] = p
				}
				for _, p := range s.Shadowed {
					if p == back[p.Setting] {
						continue
					}
					adopted := slices.ContainsFunc(s.Adopted, func(a fleet.AdoptedLine) bool { return a.File == p.File })
					if adopted || p.Setting == "ExecStart" {
						continue
					}
					add(fmt.Sprintf("%s:%d", p.File, p.Line), s.typed("take the line out, then: systemctl --user daemon-reload"),
						"%s: it sets %s=%s, and other lines win over it, with the drop-in of 1bit and without", s.where, p.Setting, p.Value)
				}
			}
			return err
		},
	}
}

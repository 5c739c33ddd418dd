package doctor

import (
	"cmp"
	"context"
	"errors"
	"strings"
)

// fixOff looks for variables that turn a fix off which the armed package carries. Before a package has the fix, the same
// variable is how people live without it.
func fixOff() Check {
	return Check{
		Name:   "fix-off",
		Reason: "The package carries the fix and the unit turns it off, most often since the days before the fix: it works around what is solved, and is slower or wrong for it.",
		Remedy: "Take the variable out of the unit, reload, and restart the service",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				if !s.loaded() || s.Package == nil {
					continue
				}
				for _, fix := range s.Package.Manifest.Fixes {
					key, value, _ := strings.Cut(fix.Off, "=")
					if fix.Off == "" || fix.Carried == nil || !*fix.Carried {
						continue
					}
					set, is := s.Given(key)
					if !is || set.Value != value || set.Process != 0 && s.RestartPending { // which runs another package
						continue
					}
					add(cmp.Or(set.Where, s.where), s.typed(set.Cure("UNIT")),
						"%s turns %s (%s) off: %s %s, and %s carries that fix", s.where, fix.ID, fix.Title, fix.Off, set.By, s.Package.Name)
				}
			}
			return errors.Join(err, unreadable(l))
		},
	}
}

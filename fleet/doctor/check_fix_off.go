package doctor

import (
	"context"
	"fmt"
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
				environment := s.Settings.Environment()
				for _, fix := range s.Package.Manifest.Fixes {
					key, value, _ := strings.Cut(fix.Off, "=")
					set, is := environment[key]
					if fix.Off == "" || fix.Carried == nil || !*fix.Carried || !is || set.Value != value {
						continue
					}
					from := fmt.Sprintf("%s:%d", set.File, set.Line)
					add(from, s.typed(fmt.Sprintf("take %s out of %s, then: systemctl --user daemon-reload && 1bit pkg restart UNIT", fix.Off, from)),
						"%s turns %s (%s) off with %s, and %s carries that fix", s.where, fix.ID, fix.Title, fix.Off, s.Package.Name)
				}
			}
			return err
		},
	}
}

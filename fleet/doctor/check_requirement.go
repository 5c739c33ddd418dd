package doctor

import (
	"context"
	"slices"

	"github.com/1bit-systems/pkg/packager"
)

// requirement looks whether the host has the files and libraries that the armed packages want of it. Devices and kernel
// parameters have checks of their own.
func requirement() Check {
	return Check{
		Name:   "requirement",
		Reason: "A package that wants something of the host which is not there fails at its next start, or runs without its GPU or with faults that are known.",
		Remedy: "Install or set what is missing; 1bit pkg verify ID looks again",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			seen := map[string]bool{}
			for _, s := range services {
				if s.Package == nil || seen[s.Package.Path] {
					continue
				}
				seen[s.Package.Path] = true
				m := *s.Package.Manifest
				m.Requires = slices.DeleteFunc(slices.Clone(m.Requires), func(r packager.Requirement) bool {
					return r.Kind == packager.RequireDevice || r.Kind == packager.RequireKernelParameter
				})
				for _, missing := range s.host.Missing(&m) {
					add(s.Package.Path, "see that the host has it, then look again: 1bit pkg verify "+s.Package.Name,
						"%s, which %s runs: %s", s.Package.Name, s.where, missing)
				}
			}
			return err
		},
	}
}

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// newerFix looks for fixes that the newest installed package of a flavour carries and the one that a service runs does
// not, as far as their manifests say.
func newerFix() Check {
	return Check{
		Name:   "newer-fix",
		Reason: "The fault is solved in a package that is installed already, and the service can still die of it.",
		Remedy: "1bit pkg switch UNIT ID takes the newer package when it suits; 1bit pkg diff FROM TO shows what else changes",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			packages, perr := l.packages()
			for _, s := range services {
				has := s.Package
				if running := s.running(packages); running != nil {
					has = running
				}
				if has == nil || !s.meant() || s.Held != nil { // where it is held, its owner wants it where it is
					continue
				}
				newer := store.Newer(slices.DeleteFunc(slices.Clone(packages), func(p *store.Package) bool {
					return p.State != store.StateOK || slices.ContainsFunc(s.Blocked, func(b fleet.Refused) bool { return b.Package == p.Name })
				}), has)
				if len(newer) == 0 {
					continue
				}
				fixes := gained(has.Manifest, newer[0].Manifest)
				if len(fixes) == 0 {
					continue
				}
				remedy := "1bit pkg switch UNIT " + newer[0].Name
				if s.Package != nil && s.Package.Path == newer[0].Path {
					remedy = "1bit pkg restart UNIT"
				}
				add(s.where, s.typed(fmt.Sprintf("%s, when it suits; 1bit pkg diff %s %s shows what else changes", remedy, has.Name, newer[0].Name)),
					"it has %s; %s is installed and carries %s", has.Name, newer[0].Name, strings.Join(fixes, ", "))
			}
			return errors.Join(err, perr)
		},
	}
}

// running is the installed package that the service's server runs from, nil where that is not known.
func (s service) running(packages []*store.Package) *store.Package {
	if s.Live == nil {
		return nil
	}
	for _, p := range []*fleet.Process{s.Live.Child, s.Live.Main} {
		if p == nil || p.Package == "" {
			continue
		}
		if i := slices.IndexFunc(packages, func(one *store.Package) bool { return one.Path == p.Path }); i >= 0 {
			return packages[i]
		}
	}
	return nil
}

// gained names the fixes that one package carries for sure and another does not say to carry.
func gained(from, to *packager.Manifest) []string {
	var out []string
	for _, f := range to.Fixes {
		if f.Carried == nil || !*f.Carried {
			continue
		}
		i := slices.IndexFunc(from.Fixes, func(g packager.Fix) bool { return g.ID == f.ID })
		if i >= 0 && from.Fixes[i].Carried != nil && *from.Fixes[i].Carried {
			continue
		}
		out = append(out, fmt.Sprintf("%s (%s)", f.ID, cmp.Or(f.Title, f.Component)))
	}
	return out
}

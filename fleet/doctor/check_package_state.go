package doctor

import (
	"context"
	"errors"

	"github.com/1bit-systems/pkg/packager/store"
)

// packageState looks for packages that are no longer as they were installed, whether a service is armed with them or not.
func packageState() Check {
	return Check{
		Name:   "package-state",
		Reason: "A package that was touched, lost files or was rebuilt in place is not what its name, its digest and its tests speak of, and nobody can go back to it.",
		Remedy: "1bit pkg verify ID tells which files; let what runs it run another package with 1bit pkg switch UNIT OTHER --restart, then 1bit pkg remove ID and install it again",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			told := map[string]bool{}
			for _, s := range services {
				if s.told("package-state", "1bit pkg verify "+armedName(s)+" tells which files", add) > 0 && s.Package != nil {
					told[s.Package.Path] = true
				}
			}
			packages, perr := l.packages()
			for _, p := range packages {
				if p.State != store.StateOK && !told[p.Path] {
					add(p.Path, l.keeper(p).typed("1bit pkg verify "+p.Name+" tells which files; then 1bit pkg remove "+p.Name+", which names the services that have to be switched to another package first, and install it again where it is needed"), "%s is %s: %s", p.Name, p.State, p.Detail)
				}
			}
			return errors.Join(err, perr)
		},
	}
}

// keeper stands for who acts on a package: the account whose store it lies in.
func (l *look) keeper(p *store.Package) (s service) {
	for i, h := range l.Hosts {
		if within(p.Path, h.Store.Dir) {
			s.Scope, s.User, s.acts = h.Scope, h.Owner, i == 0
			return s
		}
	}
	s.acts = true
	return s
}

// armedName is the name of the package that a service is armed with, "" where there is none.
func armedName(s service) string {
	if s.Armed == nil {
		return ""
	}
	return s.Armed.Package
}

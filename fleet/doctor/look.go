package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// look is what the checks look at, read once.
type look struct {
	Options

	// services are those of every host that have anything to do with a package. The error says which managers could
	// not be asked; the services of the others are there all the same.
	services func() ([]service, error)
	// lookalikes are the units that look like engines and run no package; the error is that of services.
	lookalikes func() ([]fleet.Lookalike, error)
	// packages are the installed ones of every host's stores, each once. The error says which stores could not be read.
	packages func() ([]*store.Package, error)
}

// service is one service and the host that it belongs to.
type service struct {
	fleet.Inspection
	host  *fleet.Host
	where string // its unit; with whose it is, where it is not of the host that acts are for
	acts  bool   // it is of the host that acts are for
}

func newLook(ctx context.Context, opts Options) *look {
	l := &look{Options: opts}
	if l.Journal == nil && l.Root == "" {
		l.Journal = systemd.ReadJournal
	}
	examined := sync.OnceValues(func() ([]*fleet.Examination, error) { return l.examine(ctx) })
	l.services = sync.OnceValues(func() ([]service, error) { return l.servicesOf(examined()) })
	l.lookalikes = func() (all []fleet.Lookalike, err error) {
		found, err := examined()
		for _, x := range found {
			if x != nil {
				all = append(all, x.Lookalikes...)
			}
		}
		return all, err
	}
	l.packages = sync.OnceValues(func() ([]*store.Package, error) { return l.readPackages(ctx) })
	return l
}

// path is a path of the machine below Root.
func (l *look) path(parts ...string) string {
	return filepath.Join(cmp.Or(l.Root, "/"), filepath.Join(parts...))
}

// examine looks at the services of all hosts, in their order; nil stands for one that could not be asked.
func (l *look) examine(ctx context.Context) ([]*fleet.Examination, error) {
	var unseen []error
	for _, why := range l.Unseen {
		unseen = append(unseen, errors.New(why))
	}
	if err := seesProcesses("/proc"); err != nil {
		return make([]*fleet.Examination, len(l.Hosts)), errors.Join(append(unseen, err)...)
	}
	found, errs := make([]*fleet.Examination, len(l.Hosts)), make([]error, len(l.Hosts))
	var group sync.WaitGroup
	for i, h := range l.Hosts {
		group.Go(func() { found[i], errs[i] = h.Examine(ctx) })
	}
	group.Wait()
	return found, errors.Join(append(unseen, errs...)...)
}

// seesProcesses tells whether there is a /proc. Without one neither processes nor files, which are opened through it, say
// what a service is: it would look as if they were not there.
func seesProcesses(proc string) error {
	for _, path := range []string{"self/fd", "self/stat"} {
		if _, err := os.Stat(filepath.Join(proc, path)); err != nil {
			return fmt.Errorf("services cannot be looked at: %w", err)
		}
	}
	return nil
}

func (l *look) servicesOf(found []*fleet.Examination, err error) (all []service, _ error) {
	for i, x := range found {
		if x == nil {
			continue
		}
		for _, one := range x.Services {
			if one.Loaded != nil && strings.Contains(one.Loaded.FragmentPath, "/systemd/transient/") {
				continue // a soak, or what else somebody runs for a while: it is gone when it has ended
			}
			s := service{Inspection: one, host: l.Hosts[i], where: one.Unit, acts: i == 0}
			if i > 0 {
				s.where = fmt.Sprintf("%s (%s)", one.Unit, cmp.Or(one.User, string(one.Scope)))
			}
			all = append(all, s)
		}
	}
	return all, err
}

func (l *look) readPackages(ctx context.Context) (all []*store.Package, err error) {
	var unread []error
	for _, h := range l.Hosts {
		list, err := h.Store.List(ctx)
		if err != nil {
			unread = append(unread, err)
		}
		for _, p := range list {
			if !slices.ContainsFunc(all, func(have *store.Package) bool { return have.Path == p.Path }) {
				all = append(all, p)
			}
		}
	}
	return all, errors.Join(unread...)
}

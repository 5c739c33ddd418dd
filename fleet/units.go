package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/systemd"
)

// units reads every service that there is, sorted by name: loaded, with a file, or, as a stopped instance of a
// template, only named by a folder.
func (h *Host) units(ctx context.Context, m *systemd.Manager) ([]*systemd.Unit, error) {
	names, err := m.Services(ctx)
	if err != nil {
		return nil, err
	}
	units, err := ask(ctx, m, names)
	if err != nil {
		return nil, err
	}
	dirs := []string{h.UnitDir}
	if len(units) > 0 {
		dirs = append(dirs, units[0].SearchPath...)
	}
	more, err := ask(ctx, m, slices.DeleteFunc(namedUnits(dirs), func(name string) bool {
		_, asked := slices.BinarySearch(names, name)
		return asked
	}))
	if err != nil {
		return nil, err
	}
	units = append(units, more...)
	slices.SortFunc(units, func(a, b *systemd.Unit) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(units, func(a, b *systemd.Unit) bool { return a.ID == b.ID }), nil
}

// ask reads units, less those that the manager does not find.
func ask(ctx context.Context, m *systemd.Manager, names []string) ([]*systemd.Unit, error) {
	units := make([]*systemd.Unit, len(names))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(asking)
	for i, name := range names {
		group.Go(func() error {
			u, err := m.Unit(gctx, name)
			if errors.Is(err, systemd.ErrNoUnit) {
				return nil
			}
			units[i] = u
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(units, func(u *systemd.Unit) bool { return u == nil }), nil
}

// needs tells whether a unit has anything to do with a package.
func (h *Host) needs(u *systemd.Unit, pl *place) bool {
	if h.exists(u.ID) || len(inEnvironment(loadedEnvironment(u), pl)) > 0 {
		return true
	}
	if _, bound := boundCommand(u, pl); bound {
		return true
	}
	live, _, err := h.live(u, pl, nil)
	if err != nil || live == nil {
		return false
	}
	_, ok := live.runs()
	return ok
}

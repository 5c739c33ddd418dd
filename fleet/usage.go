package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// UsedBy lists why a package is needed by services: armed, live, gone back to, or named by a unit file or by what a
// unit file has read. An empty list is a proof for the services of this scope, and for those of the other one as far
// as their files may be read. Without a manager the files alone are read. Where something would have to be read and
// cannot be, that is an error.
func (h *Host) UsedBy(ctx context.Context, pkg *store.Package) ([]string, error) {
	u, err := h.Usage(ctx)
	if err != nil {
		return nil, err
	}
	if len(u.unread) > 0 {
		return nil, fmt.Errorf("read what the services use: %w", errors.Join(u.unread...))
	}
	return u.Of(pkg), nil
}

// Usage is what the services of this host need, at one moment.
type Usage struct {
	uses   []use
	files  []unitFile
	unread []error
}

type use struct {
	ref PackageRef
	how string
}

// Usage reads every service once, for questions about several packages. The files are read first and from disk,
// whatever a manager has loaded: a service that is stopped needs its package too.
func (h *Host) Usage(ctx context.Context) (*Usage, error) {
	t, pl := h.unitTree(), h.place()
	instances := namedUnits(h.unitFolders(t.homes))
	m, err := h.Connect(ctx)
	switch {
	case err == nil:
		defer m.Close()
		units, err := h.units(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("ask what the services use: %w", err)
		}
		for _, unit := range units {
			instances = append(instances, unit.ID)
			for _, path := range append(slices.Clone(unit.DropInPaths), unit.FragmentPath) {
				if path != "" {
					t.readFile(path)
				}
			}
			if err := h.uses(t, unit, pl); err != nil {
				return nil, fmt.Errorf("ask what %s uses: %w", unit.ID, err)
			}
		}
	case !errors.Is(err, systemd.ErrNoBus):
		return nil, fmt.Errorf("ask what the services use: %w", err)
	}
	h.usesProposals(t)
	t.instantiate(instances)
	return &Usage{t.uses, t.files, t.unread}, nil
}

// uses adds what one unit needs by what is loaded and what runs.
func (h *Host) uses(t *unitTree, unit *systemd.Unit, pl *place) error {
	if !h.needs(unit, pl) {
		return nil
	}
	for _, ref := range inEnvironment(loadedEnvironment(unit), pl).packages(pl) {
		t.use(ref, "armed in "+unit.ID)
	}
	for _, command := range unit.ExecStart {
		for _, path := range append([]string{command.Path}, command.Argv...) {
			if ref, ok := pl.inValue(path); ok {
				t.use(ref, "armed in "+unit.ID)
			}
		}
	}
	live, _, err := h.live(unit, pl, nil)
	if err != nil {
		return err
	}
	if live != nil {
		for _, p := range append([]*Process{live.Main, live.Child}, live.others...) {
			if p != nil && p.Package != "" {
				t.use(PackageRef{p.Package, p.digest, p.Path}, "live in "+serviceOf(h.proc(), p.PID, unit.ID))
			}
		}
	}
	return nil
}

// serviceOf names the service of a process: a user's manager is one of the system's, and has services of its own.
func serviceOf(proc string, pid int, unit string) string {
	owner, ok := strings.CutPrefix(unit, "user@")
	if !ok {
		return unit
	}
	data, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return unit
	}
	for _, part := range slices.Backward(strings.FieldsFunc(string(data), func(r rune) bool { return r == '/' || r == '\n' })) {
		if strings.HasSuffix(part, ".service") && part != unit {
			return fmt.Sprintf("%s of user %s", part, strings.TrimSuffix(owner, ".service"))
		}
	}
	return unit
}

// Of lists the reasons for one package. What could not be read may need any package.
func (u *Usage) Of(pkg *store.Package) []string {
	var out []string
	for _, one := range u.uses {
		if one.ref.needs(pkg) && !slices.Contains(out, one.how) {
			out = append(out, one.how)
		}
	}
	for _, f := range u.files {
		if f.but != filepath.Base(pkg.Path) && mentions(f.data, pkg.Path) {
			out = append(out, "named in "+f.path)
		}
	}
	for _, err := range u.unread {
		out = append(out, fmt.Sprintf("perhaps: %v", err))
	}
	return out
}

// needs tells whether what is known as p may be pkg. Its digest does not count: what stands in the folder now is what
// the service would run.
func (p PackageRef) needs(pkg *store.Package) bool {
	return (p.Name == pkg.Name || filepath.Base(p.Path) == filepath.Base(pkg.Path)) && !elsewhere(p.Path, pkg.Path)
}

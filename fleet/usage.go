package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// UsedBy lists why a package is needed by services of this scope: armed, live, gone back to, or named by a unit
// file. An empty list is a proof only for this scope. Without a manager the files alone are read.
func (h *Host) UsedBy(ctx context.Context, pkg *store.Package) ([]string, error) {
	u, err := h.Usage(ctx)
	if err != nil {
		return nil, err
	}
	return u.Of(pkg), nil
}

// Usage is what the services of this host need, at one moment.
type Usage struct {
	uses  []use
	files []unitFile
}

type use struct {
	ref PackageRef
	how string
}

type unitFile struct {
	path string
	data []byte
}

// Usage reads every service once, for questions about several packages.
func (h *Host) Usage(ctx context.Context) (*Usage, error) {
	u, pl := &Usage{}, h.place()
	u.scan(h.UnitDir)
	m, err := h.Connect(ctx)
	if errors.Is(err, systemd.ErrNoBus) {
		return u, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask what the services use: %w", err)
	}
	defer m.Close()
	names, err := m.Services(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask what the services use: %w", err)
	}
	for _, name := range names {
		unit, err := m.Unit(ctx, name)
		if errors.Is(err, systemd.ErrNoUnit) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask what %s uses: %w", name, err)
		}
		for _, path := range append(slices.Clone(unit.DropInPaths), unit.FragmentPath) {
			u.add(path)
		}
		if h.concerns(unit, pl) {
			if err := h.uses(u, unit, pl); err != nil {
				return nil, fmt.Errorf("ask what %s uses: %w", name, err)
			}
		}
	}
	return u, nil
}

// uses adds what one unit needs.
func (h *Host) uses(u *Usage, unit *systemd.Unit, pl *place) error {
	add := func(ref PackageRef, how string) {
		if !ref.isZero() {
			u.uses = append(u.uses, use{ref, how + " " + unit.ID})
		}
	}
	v := &view{place: pl}
	for _, ref := range inEnvironment(loadedEnvironment(unit), v.place).packages(v.place) {
		add(ref, "armed in")
	}
	live, _, err := h.live(unit, v.place, nil)
	if err != nil {
		return err
	}
	if live != nil {
		for _, p := range []*Process{live.Main, live.Child} {
			if p != nil && p.Package != "" {
				add(PackageRef{p.Package, p.digest, p.Path}, "live in")
			}
		}
	}
	if err := v.readPair(pair{h.dropInDir(unit.ID)}); err != nil {
		return err
	}
	if v.active != nil {
		add(v.active.Package, "on disk for")
		add(v.active.ServedBefore, "served before in")
	}
	if d := v.rollbackFile(); d != nil {
		add(d.Package, "what a rollback goes to in")
	}
	return nil
}

// scan adds the unit files and drop-ins of a folder, also those that no manager has loaded.
func (u *Usage) scan(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.Contains(entry.Name(), ".") {
			u.add(path)
		}
		return nil
	})
}

func (u *Usage) add(path string) {
	if path == "" || slices.ContainsFunc(u.files, func(f unitFile) bool { return f.path == path }) {
		return
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxDropIn {
		return
	}
	if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(packager.DirPrefix)) {
		u.files = append(u.files, unitFile{path, data})
	}
}

// Of lists the reasons for one package.
func (u *Usage) Of(pkg *store.Package) []string {
	var out []string
	ref := refOf(pkg)
	for _, one := range u.uses {
		if one.ref.same(ref) && !slices.Contains(out, one.how) {
			out = append(out, one.how)
		}
	}
	name := []byte(filepath.Base(pkg.Path))
	for _, f := range u.files {
		if filepath.Base(f.path) == prevName || filepath.Base(f.path) == dropInName {
			continue // ours: told apart above, and a blocked package in them is not needed
		}
		if names(f.data, name) {
			out = append(out, "named in "+f.path)
		}
	}
	return out
}

// names tells whether text holds a folder's name as a whole path element.
func names(text, folder []byte) bool {
	for {
		at := bytes.Index(text, folder)
		if at < 0 {
			return false
		}
		before, rest := byte('/'), text[at+len(folder):]
		if at > 0 {
			before = text[at-1]
		}
		if before == '/' && (len(rest) == 0 || strings.IndexByte("/ \t\r\n\":';", rest[0]) >= 0) {
			return true
		}
		text = text[at+1:]
	}
}

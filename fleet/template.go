package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// serviceName completes a name as unitName does. The error about a template lists the instances of it: those that are
// loaded, enabled or have a drop-in folder.
func (h *Host) serviceName(ctx context.Context, name string) (string, error) {
	full := strings.TrimSuffix(name, ".service") + ".service"
	if !systemd.IsTemplate(full) {
		return unitName(name)
	}
	if _, err := unitName(strings.Replace(full, "@.", "@x.", 1)); err != nil {
		return unitName(name)
	}
	names := namedUnits(h.unitFolders(h.homes()))
	if m, err := h.Connect(ctx); err == nil {
		defer m.Close()
		if loaded, err := m.Loaded(ctx); err == nil {
			for _, one := range loaded {
				names = append(names, one.Name)
			}
		}
	}
	slices.Sort(names)
	instances := systemd.Instances(full, slices.Compact(names))
	if len(instances) == 0 {
		return "", fmt.Errorf("%w: %s is a template and has no instance yet: name one, such as %s", systemd.ErrNoUnit, full,
			strings.Replace(full, "@.", "@NAME.", 1))
	}
	return "", fmt.Errorf("%w: %s is a template: name one of its instances: %s", systemd.ErrNoUnit, full, strings.Join(instances, ", "))
}

// noUnit adds to an error about a unit that is not there where there is one of this name.
func (h *Host) noUnit(err error, unit string) error {
	if !errors.Is(err, systemd.ErrNoUnit) {
		return err
	}
	other, folders := "system", systemUnitFolders[:]
	if h.Scope == systemd.ScopeSystem {
		other, folders = "user", userUnitFolders[:]
	}
	dirs := make([]string, len(folders))
	for i, dir := range folders {
		dirs[i] = h.below(dir)
	}
	if other == "user" {
		for _, home := range h.homes() {
			for _, dir := range homeUnitFolders {
				dirs = append(dirs, filepath.Join(home, dir))
			}
		}
	}
	for _, dir := range dirs {
		for _, name := range []string{unit, template(unit)} {
			path := filepath.Join(dir, name)
			if _, serr := os.Lstat(path); serr == nil && name != "" {
				return fmt.Errorf("%w; there is %s, which is a unit of the %s scope: --scope %s", err, path, other, other)
			}
		}
	}
	return err
}

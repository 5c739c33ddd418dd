package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
)

// Services lists the services of the manager: those that are loaded and those that have a file in
// its search path, sorted, without templates. An alias that is not loaded is listed under its own
// name; Unit resolves it. (systemd's own list of unit files would also say which are enabled, and
// takes ten times as long for it.)
func (m *Manager) Services(ctx context.Context) ([]string, error) {
	loaded, err := m.list(ctx, "ListUnitsByPatterns", []string{}, []string{"*.service"})
	if err != nil {
		return nil, fmt.Errorf("list the loaded services: %w", err)
	}
	var names []string
	for _, unit := range loaded {
		if unit.LoadState != "not-found" {
			names = append(names, unit.Name)
		}
	}
	for _, dir := range m.searchPath {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("list the installed services: %w", err)
		}
		for _, entry := range entries {
			if name := entry.Name(); strings.HasSuffix(name, ".service") && validUnitName(name) && !entry.IsDir() {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// list calls a method of the manager that answers with a list of units.
func (m *Manager) list(ctx context.Context, method string, args ...any) ([]sdbus.UnitStatus, error) {
	var units []sdbus.UnitStatus
	err := m.call(ctx, method, args, &units)
	return units, err
}

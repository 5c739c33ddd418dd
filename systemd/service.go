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
	"golang.org/x/sync/errgroup"
)

// concurrentCalls limits how many D-Bus calls are on their way at a time.
const concurrentCalls = 16

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

// Pending lists the loaded units, of any kind, whose files have changed since: what a reload
// would take up besides our own edit. systemd does not see the first drop-in of a unit that had
// none, so an empty answer is no proof.
func (m *Manager) Pending(ctx context.Context) ([]string, error) {
	units, err := m.list(ctx, "ListUnits")
	if err != nil {
		return nil, fmt.Errorf("list the loaded units: %w", err)
	}
	pending := make([]bool, len(units))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentCalls)
	for i, unit := range units {
		group.Go(func() error {
			value, err := m.property(ctx, unit.Path, unitInterface, "NeedDaemonReload")
			if isNoUnit(err) {
				return nil // unloaded since
			}
			pending[i], _ = value.(bool)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("ask the loaded units for pending edits: %w", err)
	}
	var names []string
	for i, unit := range units {
		if pending[i] {
			names = append(names, unit.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

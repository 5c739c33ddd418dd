package systemd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	godbus "github.com/godbus/dbus/v5"
)

// Listed is a loaded service as the manager lists it.
type Listed struct {
	Name        string
	Description string
	LoadState   string // also not-found: its file is gone, or never was
	ActiveState string
	SubState    string
}

// Loaded lists the loaded services, sorted by name, in one call. An alias is not listed.
func (m *Manager) Loaded(ctx context.Context) ([]Listed, error) {
	units, err := m.list(ctx, "ListUnitsByPatterns", []string{}, []string{"*.service"})
	if err != nil {
		return nil, fmt.Errorf("list the loaded services: %w", err)
	}
	listed := make([]Listed, 0, len(units))
	for _, u := range units {
		if strings.HasSuffix(u.Name, ".service") {
			listed = append(listed, Listed{u.Name, u.Description, u.LoadState, u.ActiveState, u.SubState})
		}
	}
	slices.SortFunc(listed, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	return listed, nil
}

// SearchPath is the manager's list of unit folders, the strongest first.
func (m *Manager) SearchPath() []string { return m.searchPath }

// ControlGroup is the manager's own control group, below which those of its units lie.
func (m *Manager) ControlGroup() string { return get[string](m.about, "ControlGroup") }

// properties reads some properties of a service at once, fewer than Unit and much cheaper: the
// calls are on their way together. Those of the unit are named with a leading "Unit.". A property
// that the manager does not have is missing in the answer; the error wraps ErrNoUnit.
func (m *Manager) properties(ctx context.Context, unit string, names ...string) (map[string]godbus.Variant, error) {
	object := m.calls.Object(destination, unitPath(unit))
	calls := make([]*godbus.Call, len(names))
	for i, name := range names {
		iface := serviceInterface
		if rest, ok := strings.CutPrefix(name, "Unit."); ok {
			iface, name = unitInterface, rest
		}
		calls[i] = object.GoWithContext(ctx, getProperty, 0, make(chan *godbus.Call, 1), iface, name)
	}
	values := map[string]godbus.Variant{}
	for i, call := range calls {
		var value godbus.Variant
		err := (<-call.Done).Store(&value)
		if isNoUnit(err) {
			return nil, fmt.Errorf("%w: %s: %v", ErrNoUnit, unit, err)
		} else if err != nil {
			return nil, fmt.Errorf("read %s of %s: %w", names[i], unit, err)
		}
		values[strings.TrimPrefix(names[i], "Unit.")] = value
	}
	return values, nil
}

// Refresh asks for what no file says of a service that is loaded: its main process, its restarts
// and its Environment= as it was loaded. It is much cheaper than Unit. same is false where other
// drop-ins are loaded than those of u. The error wraps ErrNoUnit.
func (m *Manager) Refresh(ctx context.Context, u *Unit) (same bool, err error) {
	names := []string{"NRestarts", "Environment", "Unit.DropInPaths"}
	if u.ActiveState != "inactive" && u.ActiveState != "failed" {
		names = append(names, "MainPID")
	}
	values, err := m.properties(ctx, u.ID, names...)
	if err != nil {
		return false, err
	}
	some := decodeUnit(values, values)
	u.MainPID, u.NRestarts, u.Environment = some.MainPID, some.NRestarts, some.Environment
	return slices.Equal(some.DropInPaths, u.DropInPaths), nil
}

package systemd

import (
	"context"
	"fmt"
	"slices"
)

// maxDependants bounds how many units are followed.
const maxDependants = 100

// Dependants lists the active units that systemd stops together with a unit, sorted: those that require it, are
// bound to it or are part of it, and in turn what depends on them. One that was stopped because the unit failed is
// not started again when the unit is.
func (m *Manager) Dependants(ctx context.Context, unit string) ([]string, error) {
	seen, found := []string{unitName(unit)}, []string(nil)
	for at := 0; at < len(seen) && at < maxDependants; at++ {
		values, err := m.all(ctx, unitPath(seen[at]), unitInterface)
		if isNoUnit(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("ask what depends on %s: %w", unitName(unit), err)
		}
		if at > 0 {
			if !isUp(get[string](values, "ActiveState")) {
				continue
			}
			found = append(found, seen[at])
		}
		for _, property := range []string{"RequiredBy", "BoundBy", "ConsistsOf"} {
			for _, name := range get[[]string](values, property) {
				if !slices.Contains(seen, name) {
					seen = append(seen, name)
				}
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// IsUp says whether a unit is active or on its way there.
func (m *Manager) IsUp(ctx context.Context, unit string) (bool, error) {
	value, err := m.property(ctx, unitPath(unitName(unit)), unitInterface, "ActiveState")
	if isNoUnit(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("ask for the state of %s: %w", unitName(unit), err)
	}
	state, _ := value.(string)
	return isUp(state), nil
}

func isUp(state string) bool {
	return state == "active" || state == "activating" || state == "reloading"
}

// RemainsAfterExit says whether a service counts as active when its processes have ended.
func (m *Manager) RemainsAfterExit(ctx context.Context, unit string) (bool, error) {
	value, err := m.property(ctx, unitPath(unitName(unit)), serviceInterface, "RemainAfterExit")
	if err != nil {
		return false, fmt.Errorf("ask for the kind of %s: %w", unitName(unit), err)
	}
	remains, _ := value.(bool)
	return remains, nil
}

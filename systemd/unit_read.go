package systemd

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	godbus "github.com/godbus/dbus/v5"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
)

const (
	unitInterface    = "org.freedesktop.systemd1.Unit"
	serviceInterface = "org.freedesktop.systemd1.Service"
)

// The kinds of unit that systemd has, by the end of the name.
var unitSuffixes = [...]string{".service", ".socket", ".target", ".device", ".mount", ".automount",
	".swap", ".timer", ".path", ".slice", ".scope"}

// unitName completes a name as systemctl does: "llm" is llm.service.
func unitName(name string) string {
	for _, suffix := range unitSuffixes {
		if strings.HasSuffix(name, suffix) {
			return name
		}
	}
	return name + ".service"
}

// unitPath is the object of a unit.
func unitPath(name string) godbus.ObjectPath {
	return managerPath + "/unit/" + godbus.ObjectPath(sdbus.PathBusEscape(name))
}

// Unit asks systemd for a service and has it loaded when it is not. A name without a suffix
// means a service. The error wraps ErrNoUnit when there is no file for it; a unit that cannot be
// loaded for another reason is returned, with its LoadState.
func (m *Manager) Unit(ctx context.Context, name string) (*Unit, error) {
	full := unitName(name)
	if !strings.HasSuffix(full, ".service") || !validUnitName(full) {
		return nil, fmt.Errorf("%w: %q is not the name of a service", ErrNoUnit, name)
	}
	path := unitPath(full)
	var unit, service map[string]godbus.Variant
	var unitErr, serviceErr error
	var both sync.WaitGroup
	both.Go(func() { unit, unitErr = m.all(ctx, path, unitInterface) })
	both.Go(func() { service, serviceErr = m.all(ctx, path, serviceInterface) })
	both.Wait()
	if isInvalid(serviceErr) {
		service, serviceErr = m.readable(ctx, path)
	}
	for _, err := range []error{unitErr, serviceErr} {
		if isNoUnit(err) {
			return nil, fmt.Errorf("%w: %s: %v", ErrNoUnit, full, err)
		} else if err != nil {
			return nil, fmt.Errorf("read the properties of %s: %w", full, err)
		}
	}
	u := decodeUnit(unit, service)
	_, told := service["ExecStart"]
	u.CommandsUnread = !told
	if u.LoadState == "not-found" {
		return nil, fmt.Errorf("%w: %s", ErrNoUnit, full)
	}
	u.SearchPath = m.searchPath
	u.spellDropIns()
	return u, nil
}

// validUnitName is systemd's rule for the name of a unit that can be loaded (not a template).
func validUnitName(name string) bool {
	if len(name) > 255 || strings.Contains(name, "@.") || strings.HasPrefix(name, "@") {
		return false
	}
	stem := name[:strings.LastIndexByte(name, '.')]
	for i := range len(stem) {
		c := stem[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte(`:-_.\@`, c) >= 0:
		default:
			return false
		}
	}
	return stem != ""
}

// all reads the properties of one interface of an object.
func (m *Manager) all(ctx context.Context, path godbus.ObjectPath, iface string) (map[string]godbus.Variant, error) {
	var values map[string]godbus.Variant
	err := m.calls.Object(destination, path).CallWithContext(ctx, getAll, 0, iface).Store(&values)
	return values, err
}

// readable reads the properties of a service one by one and leaves out those that systemd cannot
// tell: D-Bus carries no command that is not UTF-8, and no answer that has one among others.
func (m *Manager) readable(ctx context.Context, path godbus.ObjectPath) (map[string]godbus.Variant, error) {
	values := map[string]godbus.Variant{}
	for _, name := range serviceProperties {
		value, err := m.property(ctx, path, serviceInterface, name)
		switch {
		case err == nil:
			values[name] = godbus.MakeVariant(value)
		case !isInvalid(err) && !isNoProperty(err):
			return nil, err
		}
	}
	return values, nil
}

// serviceProperties are those of a service that decodeUnit looks at.
var serviceProperties = [...]string{"Result", "Type", "Restart", "MainPID", "ControlGroup", "NRestarts", "ExecMainCode", "ExecMainStatus",
	"Environment", "UnsetEnvironment", "WorkingDirectory", "TimeoutStartUSec", "TimeoutStopUSec", "ExecMainStartTimestamp",
	"ExecMainExitTimestamp", "EnvironmentFiles", "ExecStart", "RestartUSec", "MemoryMax", "MemoryPeak",
	"PrivateDevices", "ProtectHome"}

func decodeUnit(unit, service map[string]godbus.Variant) *Unit {
	u := &Unit{
		ID:               get[string](unit, "Id"),
		Names:            get[[]string](unit, "Names"),
		Description:      get[string](unit, "Description"),
		LoadState:        get[string](unit, "LoadState"),
		ActiveState:      get[string](unit, "ActiveState"),
		SubState:         get[string](unit, "SubState"),
		FragmentPath:     get[string](unit, "FragmentPath"),
		DropInPaths:      get[[]string](unit, "DropInPaths"),
		NeedDaemonReload: get[bool](unit, "NeedDaemonReload"),
		InvocationID:     fmt.Sprintf("%x", get[[]byte](unit, "InvocationID")),

		Result:           get[string](service, "Result"),
		Type:             get[string](service, "Type"),
		Restart:          get[string](service, "Restart"),
		MainPID:          int(get[uint32](service, "MainPID")),
		ControlGroup:     get[string](service, "ControlGroup"),
		NRestarts:        int(get[uint32](service, "NRestarts")),
		ExecMainCode:     int(get[int32](service, "ExecMainCode")),
		ExecMainStatus:   int(get[int32](service, "ExecMainStatus")),
		Environment:      get[[]string](service, "Environment"),
		UnsetEnvironment: get[[]string](service, "UnsetEnvironment"),
		WorkingDirectory: get[string](service, "WorkingDirectory"),
		TimeoutStart:     span(get[uint64](service, "TimeoutStartUSec")),
		TimeoutStop:      span(get[uint64](service, "TimeoutStopUSec")),

		RestartDelay:       span(get[uint64](service, "RestartUSec")),
		StartLimitBurst:    int(get[uint32](unit, "StartLimitBurst")),
		StartLimitInterval: span(get[uint64](unit, "StartLimitIntervalUSec")),
		MemoryMax:          amount(service, "MemoryMax"),
		MemoryPeak:         amount(service, "MemoryPeak"),
		PrivateDevices:     get[bool](service, "PrivateDevices"),
		ProtectHome:        get[string](service, "ProtectHome"),
		UnitFileState:      get[string](unit, "UnitFileState"),
	}
	for _, property := range []string{"WantedBy", "RequiredBy", "UpheldBy", "TriggeredBy"} {
		u.WantedBy = append(u.WantedBy, get[[]string](unit, property)...)
	}
	slices.Sort(u.WantedBy)
	u.WantedBy = slices.Compact(u.WantedBy)
	u.MainStarted = moment(get[uint64](service, "ExecMainStartTimestamp"))
	u.MainExited = moment(get[uint64](service, "ExecMainExitTimestamp"))
	u.ActiveLeft = moment(get[uint64](unit, "ActiveExitTimestamp"))
	for _, file := range get[[][]any](service, "EnvironmentFiles") {
		if len(file) == 2 {
			path, _ := file[0].(string)
			optional, _ := file[1].(bool)
			u.EnvironmentFiles = append(u.EnvironmentFiles, EnvironmentFile{Path: path, Optional: optional})
		}
	}
	for _, command := range get[[][]any](service, "ExecStart") {
		if len(command) >= 2 {
			path, _ := command[0].(string)
			argv, _ := command[1].([]string)
			u.ExecStart = append(u.ExecStart, Command{Path: path, Argv: argv})
		}
	}
	return u
}

// get takes a property out of an answer; one that is missing or of another type is zero.
func get[T any](values map[string]godbus.Variant, name string) T {
	value, _ := values[name].Value().(T)
	return value
}

// amount takes a number of bytes out of an answer; systemd's "infinity" and "not set" are nil, and so is what is missing.
func amount(values map[string]godbus.Variant, name string) *int64 {
	n, ok := values[name].Value().(uint64)
	if !ok || n > math.MaxInt64 {
		return nil
	}
	value := int64(n)
	return &value
}

// moment turns systemd's microseconds since 1970 into a time; its "never" becomes zero.
func moment(usec uint64) time.Time {
	if usec == 0 || usec >= math.MaxInt64 {
		return time.Time{}
	}
	return time.UnixMicro(int64(usec))
}

// span turns systemd's microseconds into a duration; its infinity becomes zero.
func span(usec uint64) time.Duration {
	if usec > math.MaxInt64/1000 {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}

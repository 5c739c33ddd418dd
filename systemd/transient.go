package systemd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// A TransientService is a service that is started without a unit file. It is gone when it has ended, however it did, so
// that its name is free again; the journal has what it said.
type TransientService struct {
	Name        string // such as 1bit-soak-20261130.service
	Description string
	Args        []string // the program, absolute, and its arguments; taken as they are, nothing is expanded
	Env         []string // KEY=value, over the manager's own
	Dir         string   // working folder; "" is the manager's
	Output      string   // file, absolute, that its standard output and error are appended to; "": the journal
}

// StartTransientService starts a service of its own, which outlives us and our session. It returns once the program
// has been executed; an error says why it has not.
func (m *Manager) StartTransientService(ctx context.Context, s TransientService) error {
	if len(s.Args) == 0 || !strings.HasPrefix(s.Args[0], "/") {
		return fmt.Errorf("start transient unit %s: its program is no absolute path", s.Name)
	}
	type command struct {
		Path   string
		Args   []string
		Ignore bool // its failure
	}
	properties := []sdbus.Property{
		property("Description", s.Description),
		property("Type", "exec"), // so that a program that cannot be executed is told
		property("ExecStart", []command{{s.Args[0], literal(s.Args), false}}),
		property("KillMode", "mixed"), // the program ends what it started; what is left after it is killed
		property("CollectMode", "inactive-or-failed"),
	}
	if len(s.Env) > 0 {
		properties = append(properties, property("Environment", s.Env))
	}
	if s.Dir != "" {
		properties = append(properties, property("WorkingDirectory", s.Dir))
	}
	if s.Output != "" {
		properties = append(properties, property("StandardOutputFileToAppend", s.Output), property("StandardErrorFileToAppend", s.Output))
	}
	return m.startTransient(ctx, s.Name, properties)
}

// Lingers tells whether a user's manager, and with it all that it runs, stays when the user's last session ends. root is
// "/" outside tests. One that does not is told so by: loginctl enable-linger USER.
func Lingers(root, user string) bool {
	_, err := os.Lstat(filepath.Join(root, "var/lib/systemd/linger", user))
	return err == nil
}

// literal doubles what systemd would expand in an argument.
func literal(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = strings.ReplaceAll(arg, "$", "$$")
	}
	return out
}

// StartScope puts processes that run into a control group of their own, which takes in everything that they start
// from then on. It ends by itself with the last of them.
func (m *Manager) StartScope(ctx context.Context, name, description string, pids ...int) error {
	list := make([]uint32, len(pids))
	for i, pid := range pids {
		list[i] = uint32(pid)
	}
	return m.startTransient(ctx, name, []sdbus.Property{
		property("Description", description),
		property("PIDs", list),
		property("KillMode", "control-group"),
		property("SendSIGHUP", false),
		property("CollectMode", "inactive-or-failed"),
	})
}

func property(name string, value any) sdbus.Property {
	return sdbus.Property{Name: name, Value: godbus.MakeVariant(value)}
}

// startTransient makes a unit and waits until it has started.
func (m *Manager) startTransient(ctx context.Context, name string, properties []sdbus.Property) error {
	result, err := m.await(ctx, "start transient unit", name,
		func(c *sdbus.Conn, ctx context.Context, name, mode string, end chan<- string) (int, error) {
			return c.StartTransientUnitContext(ctx, name, "fail", properties, end)
		})
	if err == nil && result != "done" {
		err = fmt.Errorf("start transient unit %s: systemd says %s", name, result)
	}
	return err
}

// ScopeGroup gives the control group of a scope, for Processes. The error wraps ErrNoUnit if there is no such scope.
func (m *Manager) ScopeGroup(ctx context.Context, name string) (string, error) {
	// A path of no loaded unit would make systemd look for its file.
	err := m.call(ctx, "GetUnit", []any{name}, new(godbus.ObjectPath))
	var group any
	if err == nil {
		group, err = m.property(ctx, unitPath(name), destination+".Scope", "ControlGroup")
	}
	if isNoUnit(err) {
		return "", fmt.Errorf("find the control group of %s: %w: %v", name, ErrNoUnit, err)
	} else if err != nil {
		return "", fmt.Errorf("find the control group of %s: %w", name, err)
	}
	path, _ := group.(string)
	return path, nil
}

// Scopes lists the loaded scopes whose names fit a pattern such as soak-*.
func (m *Manager) Scopes(ctx context.Context, pattern string) ([]string, error) {
	units, err := m.list(ctx, "ListUnitsByPatterns", []string{}, []string{pattern})
	if err != nil {
		return nil, fmt.Errorf("list the scopes %s: %w", pattern, err)
	}
	var names []string
	for _, u := range units {
		if strings.HasSuffix(u.Name, ".scope") {
			names = append(names, u.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// KillUnit sends a signal to every process of a unit. One that is gone is no error.
func (m *Manager) KillUnit(ctx context.Context, unit string, signal int32) error {
	if err := m.call(ctx, "KillUnit", []any{unit, "all", signal}); err != nil && !isNoUnit(err) {
		return fmt.Errorf("send signal %d to %s: %w", signal, unit, err)
	}
	return nil
}

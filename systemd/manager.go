package systemd

import (
	"context"
	"errors"
	"fmt"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// Manager is a connection to one running systemd. Its methods may be called from several
// goroutines at a time.
type Manager struct {
	scope Scope
	uid   int

	conn  *sdbus.Conn
	calls *godbus.Conn // the connection of conn that carries calls: for what conn has no method for
	jobs  *godbus.Conn // the one that carries the ends of jobs
	end   context.CancelFunc

	searchPath []string
}

// Connect finds the manager of a scope and connects to it. For a user it looks in
// XDG_RUNTIME_DIR when that belongs to the user, then in /run/user/UID, whatever the environment
// says. It never falls back to another scope; where nothing answers the error wraps ErrNoBus.
func Connect(ctx context.Context, opts ConnectOptions) (*Manager, error) {
	endpoints, tried := opts.endpoints()
	for _, e := range endpoints {
		m, err := connect(ctx, e)
		if err == nil {
			m.scope, m.uid = opts.Scope, opts.UID
			return m, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("connect to the %s manager: %w", opts.scopeName(), ctx.Err())
		}
		tried = append(tried, unwrapDial(e.path, err).Error())
	}
	return nil, opts.noBus(tried)
}

func (o ConnectOptions) scopeName() Scope {
	if o.Scope == "" {
		return ScopeUser
	}
	return o.Scope
}

// connect makes the pair of connections that go-systemd wants: one for calls, one for signals.
func connect(ctx context.Context, e endpoint) (*Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	d := &dialler{life: life, to: e}
	conn, err := sdbus.NewConnection(d.dial)
	if err != nil {
		end()
		return nil, err
	}
	m := &Manager{conn: conn, calls: d.made[0], jobs: d.made[1], end: end}
	// A bus can be there without a manager on it (dbus-run-session): only an answer counts.
	value, err := m.property(ctx, managerPath, managerInterface, "UnitPath")
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("%s: %w", e.path, err)
	}
	m.searchPath, _ = value.([]string)
	return m, nil
}

// Close ends the connection.
func (m *Manager) Close() {
	m.conn.Close()
	m.end()
}

// Scope says which manager this is.
func (m *Manager) Scope() Scope {
	if m.scope == "" {
		return ScopeUser
	}
	return m.scope
}

const (
	destination      = "org.freedesktop.systemd1"
	managerPath      = godbus.ObjectPath("/org/freedesktop/systemd1")
	managerInterface = "org.freedesktop.systemd1.Manager"
	getProperty      = "org.freedesktop.DBus.Properties.Get"
	getAll           = "org.freedesktop.DBus.Properties.GetAll"
)

// property reads one property.
func (m *Manager) property(ctx context.Context, path godbus.ObjectPath, iface, name string) (any, error) {
	var value godbus.Variant
	err := m.calls.Object(destination, path).CallWithContext(ctx, getProperty, 0, iface, name).Store(&value)
	return value.Value(), err
}

// ErrNoUnit is wrapped when a manager knows no unit of a name and finds no file for it.
var ErrNoUnit = errors.New("no such unit")

// isNoUnit says whether a D-Bus error means that a unit is not there or cannot be.
func isNoUnit(err error) bool {
	var answer godbus.Error
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Name {
	case "org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.DBus.Error.UnknownObject",
		"org.freedesktop.DBus.Error.InvalidArgs":
		return true
	}
	return false
}

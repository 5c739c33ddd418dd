package systemd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	godbus "github.com/godbus/dbus/v5"
)

// Manager is a connection to one running systemd. Its methods may be called from several
// goroutines at a time.
type Manager struct {
	scope Scope
	uid   int

	calls *godbus.Conn              // carries calls
	jobs  func() (*jobQueue, error) // made when the first job is queued: it hears every signal of the manager
	end   context.CancelFunc

	about      map[string]godbus.Variant // the manager's own properties at the time of the connection
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
			if opts.Log != nil {
				opts.Log.Debug("manager found", "scope", opts.scopeName(), "socket", e.path, "passed_over", strings.Join(tried, "; "))
			}
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

// connect connects and waits for a first answer.
func connect(ctx context.Context, e endpoint) (*Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, end)
	d := &dialler{life: life, to: e}
	calls, err := d.dial()
	if err != nil {
		end()
		return nil, err
	}
	m := &Manager{calls: calls, end: end}
	m.jobs = sync.OnceValues(func() (*jobQueue, error) { return newJobQueue(calls, d) })
	// A bus can be there without a manager on it (dbus-run-session): only an answer counts.
	m.about, err = m.first(ctx)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	searchPath, ok := m.about["UnitPath"].Value().([]string)
	if err == nil && !ok {
		err = fmt.Errorf("the search path is answered with %T", m.about["UnitPath"].Value())
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("%s: %w", e.path, err)
	}
	m.searchPath = searchPath
	return m, nil
}

// first asks the first question. What systemd happens to read together with the end of the handshake it looks at only
// when more comes: so a second message follows at once, and more while there is no answer.
func (m *Manager) first(ctx context.Context) (map[string]godbus.Variant, error) {
	object := m.calls.Object(destination, managerPath)
	call := object.GoWithContext(ctx, getAll, 0, make(chan *godbus.Call, 1), managerInterface)
	for wait := nudge; ; wait *= 2 {
		object.Go("org.freedesktop.DBus.Peer.Ping", godbus.FlagNoReplyExpected, nil)
		select {
		case <-call.Done:
			var about map[string]godbus.Variant
			return about, call.Store(&about)
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// nudge is how long a first question waits for its answer before another message follows it.
const nudge = 100 * time.Millisecond

// Close ends the connection, and with it what waits for an answer.
func (m *Manager) Close() {
	m.calls.Close()
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

// call calls a method of the manager and stores its answer, if it has one.
func (m *Manager) call(ctx context.Context, method string, args []any, answer ...any) error {
	return m.calls.Object(destination, managerPath).CallWithContext(ctx, managerInterface+"."+method, 0, args...).Store(answer...)
}

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

// isInvalid says whether a D-Bus error is that a question, or the answer to it, is none that D-Bus can carry.
func isInvalid(err error) bool { return isError(err, "InvalidArgs") }

// isNoProperty says whether a D-Bus error is that there is no such property, as there is none of newer versions.
func isNoProperty(err error) bool { return isError(err, "UnknownProperty") }

func isError(err error, name string) bool {
	var answer godbus.Error
	return errors.As(err, &answer) && answer.Name == "org.freedesktop.DBus.Error."+name
}

package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	godbus "github.com/godbus/dbus/v5"
)

// ErrNoBus is wrapped when no manager answers: a user without a running user manager, a machine
// without systemd. The message says what was tried and what to do about it.
var ErrNoBus = errors.New("no systemd manager to talk to")

// Scope says which systemd a unit belongs to.
type Scope string

// The scopes.
const (
	ScopeUser   Scope = "user"
	ScopeSystem Scope = "system"
)

// ConnectOptions says which manager to talk to. A library does not read the environment, so the
// caller hands in the two variables that a login session sets; over ssh, cron and sudo they are
// missing or another user's, and are then ignored.
type ConnectOptions struct {
	Scope Scope // "" is ScopeUser

	UID        int    // whose user manager; ScopeUser only
	RuntimeDir string // XDG_RUNTIME_DIR, may be empty
	BusAddress string // DBUS_SESSION_BUS_ADDRESS, may be empty

	// Root is put before /run, for tests; "" is the real root.
	Root string

	// Log is told, at debug level, which socket was taken and what was passed over; nil: nothing is logged.
	Log *slog.Logger
}

// endpoint is one socket that a manager may listen on.
type endpoint struct {
	path string
	bus  bool // a message bus, which wants a Hello; else the manager's own socket
}

const (
	userRunDir       = "/run/user"
	systemPrivate    = "/run/systemd/private"
	systemBus        = "/run/dbus/system_bus_socket"
	handshakeTimeout = 25 * time.Second // what D-Bus gives an answer; a manager that reloads says nothing meanwhile
)

// endpoints lists the sockets to try, the best first, and notes on what it passed over. The
// manager's own socket comes first: it needs no bus daemon, and systemctl does the same.
func (o ConnectOptions) endpoints() ([]endpoint, []string) {
	if o.Scope == ScopeSystem {
		var list []endpoint
		if os.Geteuid() == 0 {
			list = append(list, endpoint{path: o.Root + systemPrivate})
		}
		return append(list, endpoint{path: o.Root + systemBus, bus: true}), nil
	}
	var list []endpoint
	var notes []string
	seen := map[string]bool{}
	add := func(e endpoint) {
		if !seen[e.path] {
			seen[e.path] = true
			list = append(list, e)
		}
	}
	dirs := []string{o.RuntimeDir, o.Root + filepath.Join(userRunDir, strconv.Itoa(o.UID))}
	for i, dir := range dirs {
		if dir == "" || (i > 0 && dir == dirs[0]) {
			continue
		}
		if err := o.owns(dir); err != nil {
			notes = append(notes, err.Error())
			continue
		}
		add(endpoint{path: filepath.Join(dir, "systemd", "private")})
		add(endpoint{path: filepath.Join(dir, "bus"), bus: true})
	}
	if path, ok := socketPath(o.BusAddress); ok && !seen[path] {
		if err := o.owns(path); err != nil {
			notes = append(notes, err.Error())
		} else {
			add(endpoint{path: path, bus: true})
		}
	}
	return list, notes
}

// owns says whether a path belongs to the user whose manager is wanted. After a plain su the
// environment still names the runtime folder of the user before.
func (o ConnectOptions) owns(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return unwrapPath(path, err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != o.UID {
		return fmt.Errorf("%s belongs to uid %d", path, stat.Uid)
	}
	return nil
}

func unwrapPath(path string, err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// socketPath takes the path out of a bus address of the form unix:path=PATH[,guid=…].
func socketPath(address string) (string, bool) {
	for one := range strings.SplitSeq(address, ";") {
		rest, ok := strings.CutPrefix(one, "unix:")
		if !ok {
			continue
		}
		for pair := range strings.SplitSeq(rest, ",") {
			if value, ok := strings.CutPrefix(pair, "path="); ok {
				path, err := godbus.UnescapeBusAddressValue(value)
				return path, err == nil
			}
		}
	}
	return "", false
}

// noBus makes the error of a host on which nothing answered.
func (o ConnectOptions) noBus(tried []string) error {
	detail := strings.Join(tried, "; ")
	if o.Scope == ScopeSystem {
		return fmt.Errorf("%w: the system manager does not answer (%s)", ErrNoBus, detail)
	}
	return fmt.Errorf("%w: no user manager for uid %d (%s); enable linger with: loginctl enable-linger %d",
		ErrNoBus, o.UID, detail, o.UID)
}

// dialler makes the connections to one endpoint. Their life ends with the context of that name;
// for as long as a handshake goes on that is how a manager is left that accepts a connection and
// then says nothing.
//
// The connections are godbus's own: one made over a net.Conn of ours panics when it is closed in
// the middle of a message.
type dialler struct {
	life context.Context
	to   endpoint
}

// dial connects and authenticates by uid.
func (d *dialler) dial() (*godbus.Conn, error) {
	conn, err := godbus.Dial("unix:path="+godbus.EscapeBusAddressValue(d.to.path), godbus.WithContext(d.life))
	if err != nil {
		return nil, err
	}
	err = conn.Auth([]godbus.Auth{godbus.AuthExternal(strconv.Itoa(os.Getuid()))})
	if err == nil && d.to.bus {
		err = conn.Hello()
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%s: authenticate: %w", d.to.path, err)
	}
	return conn, nil
}

// unwrapDial says why a socket could not be reached, without the words that its path repeats.
func unwrapDial(path string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
		var call *os.SyscallError
		if errors.As(err, &call) {
			err = call.Err
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	return err
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// bus looks whether the managers answer, and whether the environment leads to the right one.
func bus() Check {
	return Check{
		Name:   "bus",
		Reason: "Without a systemd manager that answers nothing can be switched, restarted or even looked at.",
		Remedy: "Let the account linger, which keeps its manager running: sudo loginctl enable-linger USER",
		find: func(ctx context.Context, l *look, add adder) error {
			var unseen []error
			for i, h := range l.Hosts {
				m, err := h.Connect(ctx)
				switch {
				case err == nil:
					m.Close()
				case i > 0: // somebody else's, which may be gone or damaged without any harm to the services of this account
					unseen = append(unseen, err)
				case errors.Is(err, systemd.ErrNoBus):
					l.noManager(h, err, add)
				default:
					unseen = append(unseen, err)
				}
			}
			if len(l.Hosts) > 0 && l.Hosts[0].Scope == systemd.ScopeUser {
				unseen = append(unseen, l.misled(add))
			}
			return errors.Join(unseen...)
		},
	}
}

// noManager says why there is none, as far as the host tells.
func (l *look) noManager(h *fleet.Host, err error, add adder) {
	if _, serr := os.Stat(l.path("run/systemd/system")); serr != nil {
		add("", "run services on a host that was booted with systemd; packages, soaks and claims work here all the same",
			"this machine was not booted with systemd, so that there is no manager for any service")
		return
	}
	if h.Scope == systemd.ScopeSystem {
		add("system manager", "start it: sudo systemctl start dbus.socket", "%v", err)
		return
	}
	remedy := "sudo loginctl enable-linger " + l.User
	if l.lingers(l.User) == nil {
		remedy = fmt.Sprintf("sudo systemctl restart user@%d.service", l.UID)
	}
	add("user manager of "+l.User, remedy, "%v", err)
}

// misled finds variables that lead programs of systemd's to the manager of somebody else, as after a plain su. This
// program passes them over.
func (l *look) misled(add adder) error {
	var unseen []error
	remedy := fmt.Sprintf("export XDG_RUNTIME_DIR=/run/user/%d; unset DBUS_SESSION_BUS_ADDRESS", l.UID)
	if dir := l.RuntimeDir; dir != "" {
		info, err := os.Stat(dir)
		if err != nil {
			add("XDG_RUNTIME_DIR", remedy, "it leads to a folder that cannot be used: systemctl --user and journalctl --user fail: %v", err)
		} else if owner, _, err := l.owner(info); err != nil {
			unseen = append(unseen, fmt.Errorf("whose %s is: %w", dir, err))
		} else if owner != l.UID {
			add("XDG_RUNTIME_DIR", remedy, "it is %s, which belongs to uid %d: systemctl --user fails, or reaches the manager of another account", dir, owner)
		}
	}
	if path, ok := strings.CutPrefix(l.BusAddress, "unix:path="); ok {
		path, _, _ = strings.Cut(path, ",")
		if info, err := os.Stat(path); err == nil {
			if owner, _, err := l.owner(info); err != nil {
				unseen = append(unseen, fmt.Errorf("whose %s is: %w", path, err))
			} else if owner != l.UID {
				add("DBUS_SESSION_BUS_ADDRESS", remedy, "it is %s, which belongs to uid %d: systemctl --user fails, or reaches the manager of another account", l.BusAddress, owner)
			}
		}
	}
	return errors.Join(unseen...)
}

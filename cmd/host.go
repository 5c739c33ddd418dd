package cmd

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

const systemDataHome, systemStateHome = "/opt/1bit", "/var/lib/1bit"

// store opens the packages of this host: in user scope the user's own, and beside them those of the machine.
func (a *app) store() *store.Store {
	s := store.Open(a.config.DataHome, a.config.StateHome)
	s.Shared = systemd.Scope(a.config.Scope) == systemd.ScopeSystem || s.Dir == systemDataHome
	if !s.Shared {
		s.Also = []*store.Store{store.Open(systemDataHome, systemStateHome)}
	}
	return s
}

// host is the services of this host in the configured scope.
func (a *app) host() *fleet.Host {
	scope := systemd.Scope(a.config.Scope)
	units, more := "/etc/systemd/system", []string(nil)
	if scope == systemd.ScopeUser {
		units = filepath.Join(a.config.configHome, "systemd", "user")
		more = []string{filepath.Join(a.xdg("XDG_DATA_HOME", ".local/share"), "systemd", "user")}
		if home := a.getenv("HOME"); home != "" {
			more = append(more, filepath.Join(home, ".config", "systemd", "user"))
		}
	}
	return &fleet.Host{
		Scope:    scope,
		Store:    a.store(),
		StateDir: a.config.StateHome,
		UnitDir:  units,
		UnitDirs: more,
		Connect: func(ctx context.Context) (*systemd.Manager, error) {
			return systemd.Connect(ctx, systemd.ConnectOptions{
				Scope: scope, UID: a.uid,
				RuntimeDir: a.getenv("XDG_RUNTIME_DIR"), BusAddress: a.getenv("DBUS_SESSION_BUS_ADDRESS"),
				Log: a.log,
			})
		},
		Now:          a.now,
		Log:          a.log,
		User:         a.user,
		LoadDeadline: a.config.LoadDeadline,
		Authorise:    a.owner(),
		Progress:     a.line.Say,
	}
}

// onlyUnit is the one service of this host, for commands whose UNIT was left out.
func (a *app) onlyUnit(ctx context.Context, h *fleet.Host) (string, error) {
	services, err := h.Status(ctx)
	if err != nil {
		return "", err
	}
	return one(services)
}

// one is the unit of the only one of some services.
func one(services []fleet.Service) (string, error) {
	switch len(services) {
	case 0:
		return "", usagef("no service of this host runs a package: name the unit")
	case 1:
		return services[0].Unit, nil
	}
	var names []string
	for _, s := range services {
		name := s.Unit
		if s.User != "" {
			name += " (of " + s.User + ")"
		}
		names = append(names, name)
	}
	return "", usagef("this host has %d services, name one: %s", len(services), strings.Join(names, ", "))
}

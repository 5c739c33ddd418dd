package cmd

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// userManagers are the private sockets of the user managers that run.
const userManagers = "/run/user/*/systemd/private"

// hosts are the services that status shows: those of the scope that acts are for, and, unless a scope was named,
// those of the other one. Root sees the user managers of everybody. notes say what stands in the way.
func (a *app) hosts() (hosts []*fleet.Host, notes []string) {
	own := a.host()
	hosts = []*fleet.Host{own}
	if a.scopeNamed() {
		return hosts, nil
	}
	if own.Scope == systemd.ScopeUser {
		h, err := a.otherHost(systemd.ScopeSystem)
		if err != nil {
			return hosts, []string{fmt.Sprintf("the services of the system manager are not shown: %v", err)}
		}
		h.Elsewhere = []*store.Store{own.Store}
		return append(hosts, h), nil
	}
	if a.uid != 0 {
		h, err := a.otherHost(systemd.ScopeUser)
		if err != nil {
			return hosts, []string{fmt.Sprintf("the services of the user manager are not shown: %v", err)}
		}
		own.Elsewhere = []*store.Store{h.Store}
		return append(hosts, h), nil
	}
	for _, h := range a.userHosts() {
		own.Elsewhere = append(own.Elsewhere, h.Store)
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// scopeNamed tells whether somebody named the scope, which then is the only one that is looked at.
func (a *app) scopeNamed() bool { return a.flags.scope != "" || a.getenv("ONEBIT_PKG_SCOPE") != "" }

// otherHost is the host of a scope that neither flags nor environment speak of.
func (a *app) otherHost(scope systemd.Scope) (*fleet.Host, error) {
	other := *a
	other.flags.config = ""
	other.getenv = func(key string) string {
		if strings.HasPrefix(key, "ONEBIT_PKG_") {
			return ""
		}
		return a.getenv(key)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("scope", string(scope), "")
	if err := flags.Set("scope", string(scope)); err != nil {
		return nil, err
	}
	var err error
	if other.config, err = other.loadConfig(flags); err != nil {
		return nil, err
	}
	h := other.host()
	h.ReadOnly = scope == systemd.ScopeSystem && a.uid != 0
	return h, nil
}

// userHosts are the hosts of every user whose manager runs, with packages, state and units in the usual places.
func (a *app) userHosts() []*fleet.Host {
	sockets, _ := filepath.Glob(userManagers)
	var hosts []*fleet.Host
	for _, socket := range sockets {
		uid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(socket))))
		if err != nil {
			continue
		}
		account, err := user.LookupId(strconv.Itoa(uid))
		if err != nil || !filepath.IsAbs(account.HomeDir) {
			continue
		}
		packages := store.Open(filepath.Join(account.HomeDir, ".local/share"), filepath.Join(account.HomeDir, ".local/state/1bit"))
		packages.Also = []*store.Store{store.Open(systemDataHome, systemStateHome)}
		hosts = append(hosts, &fleet.Host{
			Scope: systemd.ScopeUser, Owner: account.Username, ReadOnly: true,
			Store: packages, StateDir: packages.StateDir,
			UnitDir: filepath.Join(account.HomeDir, ".config/systemd/user"),
			Connect: func(ctx context.Context) (*systemd.Manager, error) {
				return systemd.Connect(ctx, systemd.ConnectOptions{Scope: systemd.ScopeUser, UID: uid})
			},
			Now: a.now, Log: a.log, User: a.user, LoadDeadline: a.config.LoadDeadline,
		})
	}
	return hosts
}

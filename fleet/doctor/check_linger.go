package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// linger looks whether the managers of users outlive their logins.
func linger() Check {
	return Check{
		Name:   "linger",
		Reason: "The manager of a user who does not linger ends with the last logout, all services with it, and does not start at boot.",
		Remedy: "Let the account linger: sudo loginctl enable-linger USER",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			unseen, units := []error{err}, map[string][]string{}
			for _, s := range services {
				if s.Scope == systemd.ScopeUser {
					user := cmp.Or(s.host.Owner, l.User)
					units[user] = append(units[user], s.Unit)
				}
			}
			for _, user := range slices.Sorted(maps.Keys(units)) {
				switch err := l.lingers(user); {
				case errors.Is(err, fs.ErrNotExist):
					add("account "+user, "sudo loginctl enable-linger "+user, "%s does not linger, and has %s", user, strings.Join(units[user], ", "))
				case err != nil:
					unseen = append(unseen, fmt.Errorf("whether %s lingers: %w", user, err))
				}
			}
			return errors.Join(unseen...)
		},
	}
}

// lingers tells whether a user's manager outlives the logins, nil if it does; an error that wraps fs.ErrNotExist is "no".
func (l *look) lingers(user string) error {
	dir := l.path("var/lib/systemd/linger")
	_, err := os.Lstat(dir + "/" + user)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(l.path("run/systemd/system")); err != nil {
			return errors.New("this machine was not booted with systemd")
		}
	}
	return err
}

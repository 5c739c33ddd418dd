package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// systemdVersion looks whether systemd has a fault that bites services of this kind.
func systemdVersion() Check {
	return Check{
		Name:   "systemd-version",
		Reason: "Some versions of systemd have faults that leave a dead service dead, or end one that should go on.",
		Remedy: "Update systemd with the host's package manager, and reboot.",
		find: func(ctx context.Context, l *look, add adder) error {
			if len(l.Hosts) == 0 {
				return nil
			}
			m, err := l.Hosts[0].Connect(ctx)
			if err != nil {
				return err
			}
			defer m.Close()
			number, text, err := m.Version(ctx)
			if err != nil {
				return err
			}
			if number == 0 {
				return fmt.Errorf("systemd calls itself %q, which is no version that can be compared", text)
			}
			services, err := l.services()
			user := slices.ContainsFunc(services, func(s service) bool { return s.Scope == systemd.ScopeUser })
			for _, f := range systemdFaults {
				if f.has(text) && (user || !f.userOnly) {
					add("systemd "+text, f.remedy, "%s", f.what)
				}
			}
			return err
		},
	}
}

// systemdFault is a known fault of some versions.
type systemdFault struct {
	has      func(version string) bool
	userOnly bool // it bites services of user managers alone
	what     string
	remedy   string // "": that of the check
}

// systemdFaults are the faults that bite an inference service. Which releases have the first one was read off the tags
// of github.com/systemd/systemd-stable: they hold the commit "core/service: when resetting PID also reset known flag" and
// not its revert.
var systemdFaults = []systemdFault{
	{
		has:  oneOf("251.17", "252.11", "253.5"),
		what: "when the main process of a service dies and its child lives on, the service stays active and is not restarted: a front end that dies leaves its server alone (https://github.com/systemd/systemd/issues/28030)",
	},
	{
		has: oneOf("255.4"), userOnly: true,
		what:   "the manager of a user who lingers was seen to be killed when the last session ended, and every service with it (https://github.com/systemd/systemd/issues/43361)",
		remedy: "update systemd to 256.3 or later, or run the service in the system's manager, which no logout ends",
	},
	{
		has: oneOf("256~rc1", "256~rc2", "256~rc3"), userOnly: true,
		what: "the managers of users who linger are not started at boot (https://github.com/systemd/systemd/issues/33005)",
	},
	{
		has:  before(249),
		what: "this program needs systemd 249 or later: it may take what an older one makes of a unit file for something else",
	},
}

// oneOf tells whether a version is one of some releases, or a distribution's build of one, such as 252.11-1~deb12u1.
func oneOf(releases ...string) func(string) bool {
	return func(version string) bool {
		release, _, _ := strings.Cut(version, "-")
		release, _, _ = strings.Cut(release, " ")
		return slices.Contains(releases, release)
	}
}

// before tells whether a version is older than a release.
func before(number int) func(string) bool {
	return func(version string) bool {
		digits := len(version) - len(strings.TrimLeft(version, "0123456789"))
		n, err := strconv.Atoi(version[:digits])
		return err == nil && n < number
	}
}

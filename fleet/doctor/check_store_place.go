package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// storePlace looks whether packages and state lie where they can be run, changed and locked.
func storePlace() Check {
	return Check{
		Name:   "store-place",
		Reason: "Programs do not start from a file system that forbids it, nothing is installed or switched on one that is read-only, memory is empty after a reboot, and locks on a remote one may hold for this machine alone.",
		Remedy: "Name a folder on a local disk with data_home and state_home in the configuration file, and install the packages there.",
		find: func(_ context.Context, l *look, add adder) error {
			var unseen []error
			for i, h := range l.Hosts {
				places := []struct {
					what, dir string
					runs      bool
				}{{"packages", h.Store.Dir, true}, {"state", h.StateDir, false}}
				for _, p := range places {
					if i > 0 { // only what is there counts for a host that is looked at
						if nearest(p.dir) != p.dir {
							continue
						}
					}
					m, err := l.mountOf(p.dir)
					if err != nil {
						unseen = append(unseen, err)
						continue
					}
					switch {
					case p.runs && m.has("noexec"):
						add(p.dir, "take noexec out of its line in /etc/fstab, and: sudo mount -o remount,exec "+m.point, "the %s lie on %s, which is mounted noexec: no program of them starts", p.what, m.point)
					case i == 0 && m.has("ro"):
						add(p.dir, "sudo mount -o remount,rw "+m.point, "the %s lie on %s, which is mounted read-only", p.what, m.point)
					case slices.Contains(remote, m.kind):
						add(p.dir, "", "the %s lie on %s, a file system of another machine (%s)", p.what, m.point, m.kind)
					case m.kind == "tmpfs" || m.kind == "ramfs":
						add(p.dir, "", "the %s lie on %s, which is memory (%s) and empty after a reboot", p.what, m.point, m.kind)
					}
				}
			}
			if err := errors.Join(unseen...); err != nil {
				return fmt.Errorf("look where the packages lie: %w", err)
			}
			return nil
		},
	}
}

package doctor

import (
	"context"
	"strings"
	"time"
)

// coldLoad is how long a model may take to load when nothing of it is in memory yet.
const coldLoad = 5 * time.Minute

// notifyTimeout looks for services that systemd kills while they load, because it waits for their word that they are
// ready.
func notifyTimeout() Check {
	return Check{
		Name:   "notify-timeout",
		Reason: "With Type=notify systemd kills a server that has not said READY=1 within TimeoutStartSec: a big model that loads from a cold disk is killed while it loads, again and again.",
		Remedy: "Set TimeoutStartSec=infinity in [Service], with systemctl --user edit UNIT",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				if !s.loaded() || !strings.HasPrefix(s.Loaded.Type, "notify") || s.Loaded.TimeoutStart == 0 || s.Loaded.TimeoutStart >= coldLoad {
					continue
				}
				add(s.where, s.typed("set TimeoutStartSec=infinity in [Service], or Type=exec if it never says READY=1, with: systemctl --user edit UNIT"),
					"it is Type=%s and has %s to load (TimeoutStartSec)", s.Loaded.Type, s.Loaded.TimeoutStart)
			}
			return err
		},
	}
}

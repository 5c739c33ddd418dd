package fleet

import (
	"fmt"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// restarting tells whether systemd waits to start a unit again by itself, after its main process ended.
func restarting(u *systemd.Unit) bool { return strings.HasPrefix(u.SubState, "auto-restart") }

// describeEnd warns of a service that does not stay up, with how it ended and the way back.
func (h *Host) describeEnd(v *view, s *Service) {
	u := v.loaded
	why := or(ending(u), "systemd does not say how it ended")
	again, more := "it was not started again", "systemd starts it again"
	if u.NRestarts > 0 {
		again = fmt.Sprintf("systemd has started it again %d times", u.NRestarts)
		more = again + " and will once more"
	}
	switch {
	case restarting(u):
		s.find("failing", h.wayBack(v), "it does not stay up: %s; %s", why, more)
	case u.ActiveState == "failed":
		s.find("failing", h.wayBack(v), "it has failed and is down: %s; %s", why, again)
	}
}

// wayBack is the command that brings a failing service back where a rollback leads anywhere, else the one that tells more.
func (h *Host) wayBack(v *view) string {
	if _, done, err := v.goingBack(RollbackOptions{}); err == nil && done == "" {
		return fmt.Sprintf("1bit pkg rollback %s --restart goes back", v.loaded.ID)
	}
	return fmt.Sprintf("1bit incident %s says how it ended", v.loaded.ID)
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/1bit-systems/pkg/systemd"
)

// errNoVerdict says that a start was not put to the test: somebody else stopped the unit, or started it anew, while it was
// watched, or what ran before does not end. Nobody is blamed for that and nothing is taken back.
var errNoVerdict = errors.New("no verdict")

// byHand tells an end that somebody asked for from one of the service's own. systemd remembers both moments: at a stop
// the unit stops being active before its main process ends, and at an end of the process's own after it; and only
// Restart= counts the starts that it makes.
func (w *watched) byHand(u *systemd.Unit) error {
	stopped := fmt.Errorf("%w: somebody stopped or restarted it meanwhile", errNoVerdict)
	switch {
	case u.InvocationID == "" && w.invocation != "":
		// systemd has forgotten the run, as it does with one that did not fail of a unit that nothing refers to.
		if u.Restart == "always" || u.Restart == "on-success" {
			return stopped
		}
		return fmt.Errorf("%w: it was stopped meanwhile, or ended without a failure", errNoVerdict)
	case u.InvocationID != w.invocation && w.invocation != "" && u.NRestarts <= w.restarts:
		return stopped
	case u.InvocationID != w.invocation, u.ActiveState == "active", u.ActiveState == "reloading", u.ActiveState == "activating":
		return nil
	case u.MainPID != 0, w.mainPID == 0:
		if u.Result == "success" && (u.ActiveState == "deactivating" || u.Type == "oneshot") {
			return stopped
		}
	case u.ActiveLeft.After(u.MainStarted) && u.ActiveLeft.Before(u.MainExited) && slices.Contains(ownResults[:], u.Result):
		return stopped
	}
	return nil
}

// ownResults are what comes of the process itself; the others are systemd's reasons to stop a unit.
var ownResults = [...]string{"success", "exit-code", "signal", "core-dump"}

// untouched is the error of an act that somebody else has ended.
func (s *session) untouched(ctx context.Context, err error) error {
	return fmt.Errorf("%w; %s, and nothing was taken back", err, s.stands(ctx))
}

package doctor

import (
	"context"
	"time"
)

// What makes a start limit tight: so few starts use it up, and so long it then refuses another one.
const (
	fewStarts = 3
	longWait  = 30 * time.Second
)

// startLimit looks for services that were started too often, or whose limit a package that crashes uses up at once.
func startLimit() Check {
	return Check{
		Name:   "start-limit",
		Reason: "A package that crashes uses up the starts that the unit allows, and then systemd refuses the start of the good one as well.",
		Remedy: "Allow more starts with StartLimitBurst= and a shorter StartLimitIntervalSec= in [Unit], with systemctl --user edit UNIT",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				if !s.loaded() {
					continue
				}
				u := s.Loaded
				limited := u.StartLimitBurst > 0 && u.StartLimitInterval > 0
				// The result stays that of the last run, where there was one.
				given := limited && u.ActiveState == "failed" && u.Restart == "always" && u.NRestarts > 0 && u.NRestarts >= u.StartLimitBurst-1
				switch {
				case u.Result == "start-limit-hit" || given:
					add(s.where, s.typed("see why it ended with: 1bit incident UNIT; then: systemctl --user reset-failed UNIT, and systemctl --user start UNIT"),
						"it was started too often in a row, and systemd starts it no more")
				case limited && s.lasting() && u.StartLimitBurst <= fewStarts && u.StartLimitInterval >= longWait:
					add(s.where, s.typed("raise StartLimitBurst= or shorten StartLimitIntervalSec= in [Unit], with: systemctl --user edit UNIT; until then, systemctl --user reset-failed UNIT lifts a refusal"),
						"systemd starts it %d times within %s and then refuses every start, also that of a package that works", u.StartLimitBurst, u.StartLimitInterval)
				}
			}
			return err
		},
	}
}

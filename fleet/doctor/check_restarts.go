package doctor

import (
	"context"
	"fmt"
)

// restarts looks for services that systemd has started again by itself.
func restarts() Check {
	return Check{
		Name:   "restarts",
		Reason: "Every restart by systemd is an end that nobody asked for: with Restart=always a service can die every night and look healthy every morning.",
		Remedy: "1bit incident UNIT says how it ended; systemctl --user reset-failed UNIT starts the count anew once that is understood",
		find: func(_ context.Context, l *look, add adder) error {
			services, err := l.services()
			for _, s := range services {
				if s.Restarts == 0 {
					continue
				}
				last := ""
				if s.loaded() && !s.Loaded.MainExited.IsZero() {
					last = ", the last time after " + s.Loaded.MainExited.Local().Format("2006-01-02 15:04:05 MST")
				}
				times := "once"
				if s.Restarts > 1 {
					times = fmt.Sprintf("%d times", s.Restarts)
				}
				add(s.where, s.typed("1bit incident UNIT says how it ended; once that is understood, systemctl --user reset-failed UNIT starts the count anew"), "systemd has started it again %s since it was last started by hand or by the boot%s", times, last)
			}
			return err
		},
	}
}

package doctor

import (
	"context"
	"time"
)

// forgotten is the age from which on a hold without an end may have been forgotten.
const forgotten = 30 * 24 * time.Hour

// hold looks for holds that have expired, cannot be read, or have no end and are old.
func hold() Check {
	c := ofStatus("hold",
		"A hold that nobody thinks of keeps a service from every fix; one that has expired or cannot be read does not do what its writer believes.",
		"1bit pkg unhold UNIT")
	told := c.find
	c.find = func(ctx context.Context, l *look, add adder) error {
		err := told(ctx, l, add)
		services, _ := l.services()
		for _, s := range services {
			if s.Held == nil || s.Held.Until != nil || s.Held.At.IsZero() || l.Now.Sub(s.Held.At) < forgotten {
				continue
			}
			add(s.where, s.typed("see whether that still holds, else: 1bit pkg unhold UNIT"),
				"it has been held since %s, without an end: %s", s.Held.At.Format(time.DateOnly), s.Held.Reason)
		}
		return err
	}
	return c
}

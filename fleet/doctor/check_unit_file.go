package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/1bit-systems/pkg/fleet"
)

// unitFile looks for lines and files of a unit that systemd passes over.
func unitFile() Check {
	c := ofStatus("unit-file",
		"What systemd passes over is not in force, and it says so in the journal at most: the unit starts on its defaults, or not at all.",
		"Correct the file, then: systemctl --user daemon-reload")
	told := c.find
	c.find = func(ctx context.Context, l *look, add adder) error {
		unseen := []error{told(ctx, l, add)}
		services, _ := l.services()
		for _, s := range services {
			if s.Loaded == nil && s.State != fleet.StateGone {
				unseen = append(unseen, fmt.Errorf("the files of %s cannot be read: run this as root", s.where))
			}
		}
		return errors.Join(unseen...)
	}
	return c
}

package doctor

import (
	"context"
	"fmt"
)

// wantedBy looks for services that no boot starts. One that is stopped is not meant to run, as far as anybody can tell.
func wantedBy() Check {
	c := ofStatus("wanted-by",
		"A service that nothing wants at boot, or that is wanted by a target that this manager does not have, stays down after the next boot.",
		"Give the unit an [Install] section with WantedBy=default.target, then: systemctl --user enable UNIT")
	told := c.find
	c.find = func(ctx context.Context, l *look, add adder) error {
		err := told(ctx, l, add)
		services, _ := l.services()
		for _, s := range services {
			if !s.lasting() || !s.up() || len(s.Loaded.WantedBy) > 0 {
				continue
			}
			wants := s.Settings.Values("Install", "WantedBy")
			if s.told(c.Name, "", quiet) > 0 {
				continue // it says why
			}
			remedy := s.typed(c.Remedy)
			if len(wants) > 0 {
				remedy = s.typed("systemctl --user enable UNIT")
			}
			add(s.where, remedy, "%s", fmt.Sprintf("it runs, and nothing starts it at boot (it is %s)", s.Loaded.UnitFileState))
		}
		return err
	}
	return c
}

package doctor

import (
	"context"
	"path/filepath"
	"slices"
)

// notLoaded looks for units whose files say something else than the manager has loaded.
func notLoaded() Check {
	c := ofStatus("not-loaded",
		"An edit that is not loaded comes into force with the next reload by anybody, or at the next boot, when nobody thinks of it.",
		"See that the edit is meant, then: systemctl --user daemon-reload")
	told := c.find
	c.find = func(ctx context.Context, l *look, add adder) error {
		err := told(ctx, l, add)
		services, _ := l.services()
		for _, s := range services {
			if !s.loaded() || s.told(c.Name, "", quiet) > 0 {
				continue
			}
			disk, rerr := s.Loaded.Rescan()
			switch {
			case rerr != nil: // what cannot be read is told by the check of its files
			case !slices.Equal(disk.DropInPaths, s.Loaded.DropInPaths):
				for _, path := range disk.DropInPaths {
					if !slices.Contains(s.Loaded.DropInPaths, path) {
						add(path, s.typed(c.Remedy), "%s has a drop-in %s that is not loaded", s.where, filepath.Base(path))
					}
				}
				for _, path := range s.Loaded.DropInPaths {
					if !slices.Contains(disk.DropInPaths, path) {
						add(path, s.typed(c.Remedy), "%s still has a drop-in loaded, %s, which is no longer read", s.where, filepath.Base(path))
					}
				}
			case s.told("unit-file", "", quiet) > 0: // a link to nowhere makes the manager want a reload for ever
			case s.Loaded.NeedDaemonReload:
				add(s.where, s.typed(c.Remedy), "its files were changed since the manager loaded them")
			}
		}
		return err
	}
	return c
}

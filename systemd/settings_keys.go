package systemd

import "slices"

// Keys lists, sorted, every variable that some line touches, also one that is not in Environment because a later
// line took it away.
func (s *Settings) Keys() []string {
	var keys []string
	for _, a := range s.order {
		if a.Kind != KindReset {
			keys = append(keys, a.Key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

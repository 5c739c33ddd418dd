package systemd

import "testing"

func flawedReadings() map[string]reading { return map[string]reading{} }

// find takes out of the flawed readings those that differ from what was observed.
func find(t *testing.T, observed []*observation, flaws map[string]reading) {
	t.Helper()
	for name, flawed := range flaws {
		for _, o := range observed {
			if difference, _ := o.compare(flawed); difference != "" {
				t.Logf("found: %s: %s: %s", name, o.set.name, difference)
				delete(flaws, name)
				break
			}
		}
	}
}

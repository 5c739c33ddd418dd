package doctor

import "testing"

func TestSystemdFaults(t *testing.T) {
	for _, tt := range []struct {
		version string
		want    int // faults of it
	}{
		{"252.39-1~deb12u2", 0},
		{"252.11-1~deb12u1", 1},
		{"252.110", 0},
		{"251.17", 1},
		{"253.5 (253.5-1-arch)", 1},
		{"253.6-1", 0},
		{"255.4-1ubuntu8.17", 1},
		{"256~rc3-1", 1},
		{"256.3", 0},
		{"257.7-1", 0},
		{"249.11-0ubuntu3", 0},
		{"245.4-4ubuntu3.24", 1},
		{"v-odd", 0},
	} {
		n := 0
		for _, f := range systemdFaults {
			if f.has(tt.version) {
				n++
			}
		}
		if n != tt.want {
			t.Errorf("%s has %d faults, want %d", tt.version, n, tt.want)
		}
	}
}

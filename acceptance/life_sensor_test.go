package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A sensor that the plan needs and that goes away in mid-run leaves its watchdog
// or its gate blind: that life is no evidence.
func TestSensorLost(t *testing.T) {
	for name, tt := range map[string]struct {
		key, want string
		early     bool // before the first request
	}{
		"watchdog in the load":  {"watchdogs: {gtt_growth_gib: 24}", "invalid(sensor-lost): the sensor of watchdogs.gtt_growth_gib", false},
		"gate before the load":  {"gates: {all_slots_busy_share: 0.01, gtt_used_gib: {min: 0, max: 9}}", "invalid(sensor-lost): the sensor of gates.gtt_used_gib", true},
		"gate that was met":     {"gates: {all_slots_busy_share: 0.01, gtt_used_gib: {min: 0, max: 9}}", "0 faults", false},
		"sensor that none asks": {"", "0 faults", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, set := gttRoot(t)
			set("1073741824")
			sensor := filepath.Join(root, "sys/class/drm/card1/device/mem_info_gtt_used")
			p := fakePackage(t, "works")
			if tt.early {
				behind(t, p, "rm "+sensor+"\nexec $FAKE \"$@\"")
			}
			plan := fakePlan(t, p, "", tt.key+"\nload: {duration: 3s, prompt_tokens: [24], n_predict: [20]}\n")
			v := soak(t, RunOptions{Plan: plan, Package: p, Root: root, Progress: func(s Progress) {
				if s.Requests > 10 {
					_ = os.Remove(sensor) // once it is gone, it is
				}
			}})
			if !strings.HasPrefix(v.Reason, tt.want) {
				t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, tt.want)
			}
		})
	}
}

package acceptance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/engine/gpu"
)

// What a plan asks for and the host does not tell is refused before anything starts.
func TestCheckHost(t *testing.T) {
	bare, amd := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"sys/class/drm/card1/device/uevent":                   "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c4:00.0\n",
		"sys/class/drm/card1/device/mem_info_gtt_used":        "1073741824\n",
		"sys/class/drm/card1/device/mem_info_gtt_total":       "128849018880\n",
		"sys/class/drm/card1/device/hwmon/hwmon2/temp1_input": "55000\n",
		"sys/class/kfd/kfd/proc/1/vram_1":                     "0\n",
		"proc/meminfo":                                        "MemTotal: 100 kB\nMemAvailable: 50 kB\n",
	} {
		path := filepath.Join(amd, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for key, yaml := range map[string]string{
		"gates.gtt_used_gib":          "gates: {gtt_used_gib: {min: 95, max: 110}}",
		"gates.evicted_ms":            "gates: {evicted_ms: 1}",
		"gates.mem_available_gib":     "gates: {mem_available_gib: 1}",
		"watchdogs.mem_available_gib": "watchdogs: {mem_available_gib: 1}",
		"watchdogs.gtt_growth_gib":    "watchdogs: {gtt_growth_gib: 24}",
		"watchdogs.temp_c":            "watchdogs: {temp_c: 93}",
		"faces.kernel":                "faces: {kernel: gate}",
		"":                            "faces: {kernel: report}",
	} {
		p := testPlan(t, "load: {requests: 60}\n"+yaml+"\n")
		err := p.CheckHost(t.Context(), gpu.Sensors{Root: bare})
		if (key == "") != (err == nil) || err != nil && (!errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), key+": ")) {
			t.Errorf("%s without sensors: %v", yaml, err)
		}
		if key == "faces.kernel" {
			continue // the folder has no kernel log either
		}
		if err := p.CheckHost(t.Context(), gpu.Sensors{Root: amd}); err != nil {
			t.Errorf("%s with sensors: %v", yaml, err)
		}
	}
}

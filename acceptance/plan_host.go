package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine/gpu"
)

// CheckHost refuses a plan that asks for what this host has no sensor for: a
// gate, a watchdog or a face that gates by the plan's own word and that nobody
// could see. The error wraps ErrPlan and names the key.
func (p *Plan) CheckHost(ctx context.Context, s gpu.Sensors) error {
	devices, _ := s.Devices(ctx) // what nvidia-smi does not tell is lacking, whatever the reason
	temperature := slices.ContainsFunc(devices, func(d gpu.Device) bool { return d.TempC != nil })
	root := s.Root
	if root == "" {
		root = "/"
	}
	facts := readHostFacts(root)
	memory, gtt := facts.MemAvailableGiB != nil, facts.GTTUsedGiB != nil
	// The driver tells evictions of a process only while it lives.
	_, noKFD := os.Stat(filepath.Join(root, "sys/class/kfd/kfd/proc"))
	for _, c := range []struct {
		key   string
		asked bool
		has   bool
		why   string
	}{
		{"gates.gtt_used_gib", p.Gates.GTTUsedGiB != nil, gtt, "a GPU whose driver tells GTT (amdgpu: /sys/class/drm/card*/device/mem_info_gtt_used)"},
		{"gates.evicted_ms", p.Gates.EvictedMS > 0, noKFD == nil, "AMD's compute driver (/sys/class/kfd/kfd/proc)"},
		{"gates.mem_available_gib", p.Gates.MemAvailableGiB > 0, memory, "MemAvailable in /proc/meminfo"},
		{"watchdogs.mem_available_gib", p.Watchdogs.MemAvailableGiB > 0, memory, "MemAvailable in /proc/meminfo"},
		{"watchdogs.gtt_growth_gib", p.Watchdogs.GTTGrowthGiB > 0, gtt, "a GPU whose driver tells GTT (amdgpu: /sys/class/drm/card*/device/mem_info_gtt_used)"},
		{"watchdogs.temp_c", p.Watchdogs.TempC > 0, temperature, "a GPU that tells its temperature"},
	} {
		if c.asked && !c.has {
			return fmt.Errorf("%w: %s: this host lacks %s: take the key out, or run the plan elsewhere", ErrPlan, c.key, c.why)
		}
	}
	if p.Faces[detect.Kernel] == string(detect.Gate) {
		if err := gpu.CanFollow(ctx, root); err != nil {
			return fmt.Errorf("%w: faces.%s: it is a gate of the plan, and %w", ErrPlan, detect.Kernel, err)
		}
	}
	return nil
}

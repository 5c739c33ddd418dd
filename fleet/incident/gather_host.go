package incident

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/1bit-systems/pkg/internal/procfs"
)

// Modules whose parameters are kept, and other settings of the kernel that decide when memory moves under a GPU.
var (
	parameterModules = []string{"amdgpu", "ttm", "nvidia", "nvidia_uvm"}
	parameterFiles   = map[string]string{
		"vm.compaction_proactiveness":        "proc/sys/vm/compaction_proactiveness",
		"vm.overcommit_memory":               "proc/sys/vm/overcommit_memory",
		"vm.min_free_kbytes":                 "proc/sys/vm/min_free_kbytes",
		"ksm.run":                            "sys/kernel/mm/ksm/run",
		"transparent_hugepage.enabled":       "sys/kernel/mm/transparent_hugepage/enabled",
		"transparent_hugepage.defrag":        "sys/kernel/mm/transparent_hugepage/defrag",
		"numa_balancing":                     "proc/sys/kernel/numa_balancing",
		"kernel.core_pattern":                "proc/sys/kernel/core_pattern",
		"vm.panic_on_oom":                    "proc/sys/vm/panic_on_oom",
		"vm.oom_kill_allocating_task":        "proc/sys/vm/oom_kill_allocating_task",
		"transparent_hugepage.shmem_enabled": "sys/kernel/mm/transparent_hugepage/shmem_enabled",
	}
)

// Bounds of what is kept of parameters: a module has a hundred of them, of a few bytes each.
const (
	maxParameters = 1000
	maxParameter  = 256
)

// host reads /proc and /sys, and asks for the GPUs.
func (g *gatherer) host(ctx context.Context) {
	s := HostState{
		At: g.o.Now, Kernel: procfs.FirstLine(g.path("proc/sys/kernel/osrelease")), Command: procfs.FirstLine(g.path("proc/cmdline")),
		Load: procfs.FirstLine(g.path("proc/loadavg")), Parameters: map[string]string{},
	}
	s.MemAvailable, s.MemTotal = g.memory("MemAvailable:"), g.memory("MemTotal:")
	if seconds, ok := procfs.Counter(g.path("proc/stat"), "btime"); ok && seconds > 0 && seconds < 1<<40 {
		s.Boot = time.Unix(seconds, 0).UTC()
	}
	for _, module := range parameterModules {
		dir := g.path("sys/module", module, "parameters")
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // not loaded
		}
		for _, entry := range entries {
			g.parameter(&s, module+"."+entry.Name(), filepath.Join(dir, entry.Name()))
		}
	}
	for name, path := range parameterFiles {
		g.parameter(&s, name, g.path(path))
	}
	g.e.Host, g.e.Zone = procfs.FirstLine(g.path("proc/sys/kernel/hostname")), zone(g.o.Root)
	var err error
	if g.e.Devices, err = g.o.Sensors.Devices(ctx); err != nil {
		g.miss("numbers of the NVIDIA devices: %v", err)
	}
	for _, d := range g.e.Devices {
		add(&s.GTTUsed, d.GTTUsedBytes)
		add(&s.GTTTotal, d.GTTTotalBytes)
	}
	g.e.HostNow = s
	if s.MemAvailable == nil {
		g.miss("MemAvailable: %s does not tell it", g.path("proc/meminfo"))
	}
}

// parameter takes in a file that holds one line. One that may not be read is left out.
func (g *gatherer) parameter(s *HostState, name, path string) {
	value := procfs.FirstLine(path)
	if value == "" || len(s.Parameters) >= maxParameters {
		return
	}
	s.Parameters[name] = value[:min(len(value), maxParameter)]
}

// memory is a line of /proc/meminfo, in GiB.
func (g *gatherer) memory(name string) *float64 {
	kib, ok := procfs.Counter(g.path("proc/meminfo"), name)
	if !ok || kib < 0 {
		return nil
	}
	gib := float64(kib) / (1 << 20)
	return &gib
}

// add sums bytes in GiB.
func add(sum **float64, bytes *int64) {
	if bytes == nil {
		return
	}
	if *sum == nil {
		*sum = new(float64)
	}
	**sum += float64(*bytes) / (1 << 30)
}

package acceptance

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/1bit-systems/pkg/internal/procfs"
)

// HostFacts is the state of the host at one moment. A nil field means that the
// host has no such sensor.
type HostFacts struct {
	Kernel          string   `json:"kernel"`
	LoadAverage     string   `json:"load_average"`
	MemAvailableGiB *float64 `json:"mem_available_gib"`
	GTTUsedGiB      *float64 `json:"gtt_used_gib"` // of all cards
	GTTTotalGiB     *float64 `json:"gtt_total_gib"`
	CWSREnabled     *string  `json:"cwsr_enable"`
	OOMKills        *int64   `json:"oom_kills"` // since boot
}

// readHostFacts reads /proc and /sys below root.
func readHostFacts(root string) HostFacts {
	f := HostFacts{
		Kernel:      procfs.FirstLine(filepath.Join(root, "proc/sys/kernel/osrelease")),
		LoadAverage: procfs.FirstLine(filepath.Join(root, "proc/loadavg")),
		GTTUsedGiB:  sumGiB(root, "mem_info_gtt_used"),
		GTTTotalGiB: sumGiB(root, "mem_info_gtt_total"),
	}
	if kib, ok := procfs.Counter(filepath.Join(root, "proc/meminfo"), "MemAvailable:"); ok {
		gib := float64(kib) / (1 << 20)
		f.MemAvailableGiB = &gib
	}
	if n, ok := procfs.Counter(filepath.Join(root, "proc/vmstat"), "oom_kill"); ok {
		f.OOMKills = &n
	}
	if v := procfs.FirstLine(filepath.Join(root, "sys/module/amdgpu/parameters/cwsr_enable")); v != "" {
		f.CWSREnabled = &v
	}
	return f
}

// oomRecent is how long after a kill for memory a server that it hit may be seen
// to end: what has much memory takes a while to give it back. Whatever ends later
// ends for another cause.
const oomRecent = 30 * time.Second

// oomWatch remembers when the kernel last killed something for memory.
type oomWatch struct {
	kills *int64 // so far; nil: nobody has looked
	last  time.Time
}

// look takes the host's count of such kills. It tells whether there was one
// within oomRecent, and while it was watched.
func (w *oomWatch) look(now time.Time, f HostFacts) bool {
	if f.OOMKills != nil {
		if w.kills != nil && *f.OOMKills > *w.kills {
			w.last = now
		}
		w.kills = f.OOMKills
	}
	return !w.last.IsZero() && now.Sub(w.last) <= oomRecent
}

// residentMiB is RssAnon plus VmSwap of processes: the memory that grows when
// something leaks.
func residentMiB(root string, pids ...int) *float64 {
	var sum *float64
	for _, pid := range pids {
		path := filepath.Join(root, "proc", strconv.Itoa(pid), "status")
		anon, ok := procfs.Counter(path, "RssAnon:")
		if !ok {
			continue
		}
		if sum == nil {
			sum = new(float64)
		}
		swap, _ := procfs.Counter(path, "VmSwap:")
		*sum += float64(anon+swap) / 1024
	}
	return sum
}

func sumGiB(root, name string) *float64 {
	paths, err := filepath.Glob(filepath.Join(root, "sys/class/drm/card*/device", name))
	if err != nil {
		return nil
	}
	var sum *float64
	for _, path := range paths {
		n, err := strconv.ParseUint(procfs.FirstLine(path), 10, 64)
		if err != nil {
			continue
		}
		if sum == nil {
			sum = new(float64)
		}
		*sum += float64(n) / (1 << 30)
	}
	return sum
}

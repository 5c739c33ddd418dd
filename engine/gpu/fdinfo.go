package gpu

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A holding is what a process has of a device.
type holding struct {
	pid    int
	device string // "": of a driver, no one device
	bytes  *int64
}

// drmHoldings looks through the open files of every process that we may look into: /dev/dri and /dev/nvidia files are
// devices, /dev/kfd and the other NVIDIA files their drivers.
func (s Sensors) drmHoldings() []holding {
	var held []holding
	minors := s.nvidiaMinors()
	for _, dir := range glob(s.path("proc/[0-9]*/fd")) {
		pid := atoi(filepath.Base(filepath.Dir(dir)))
		files, err := os.ReadDir(dir)
		if err != nil || pid == 0 {
			continue // not ours to look into, or gone
		}
		clients := map[string]client{} // a client may be open several times
		for _, f := range files {
			target, err := os.Readlink(filepath.Join(dir, f.Name()))
			switch {
			case err != nil:
			case strings.HasPrefix(target, "/dev/dri/"):
				if c, ok := readClient(s.path("proc", strconv.Itoa(pid), "fdinfo", f.Name())); ok {
					clients[c.device+" "+c.id] = c
				}
			case target == "/dev/kfd", strings.HasPrefix(target, "/dev/nvidia"):
				held = append(held, holding{pid: pid, device: minors[target]})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(clients)) {
			held = append(held, holding{pid, clients[key].device, clients[key].bytes})
		}
	}
	return held
}

// A client is one opening of a device.
type client struct {
	device, id string
	bytes      *int64
}

func readClient(path string) (client, bool) { return parseClient(readText(path)) }

// parseClient reads the fdinfo of a file of /dev/dri (the kernel's drm-usage-stats): which device, which opening, and
// its memory by region: drm-resident-<region>, which older kernels call drm-memory-<region>. Video memory (vram, local)
// and host memory that the GPU has mapped (gtt) count, what was evicted to the system's memory (cpu, system) does not.
func parseClient(text string) (client, bool) {
	c := client{}
	memory := map[string]int64{}
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, ":")
		if !found {
			continue
		}
		value = strings.TrimSpace(value)
		switch {
		case key == "drm-pdev":
			c.device = busID(value)
		case key == "drm-client-id":
			c.id = value
		default:
			region, resident := strings.CutPrefix(key, "drm-resident-")
			if !resident {
				var ok bool
				if region, ok = strings.CutPrefix(key, "drm-memory-"); !ok {
					continue
				}
			}
			n, ok := quantity(value)
			if _, known := memory[region]; ok && (resident || !known) && onGPU(region) {
				memory[region] = n
			}
		}
	}
	if c.device == "" {
		return client{}, false
	}
	for _, n := range memory {
		if c.bytes == nil {
			c.bytes = new(int64)
		}
		*c.bytes += n
	}
	return c, true
}

func onGPU(region string) bool {
	return strings.HasPrefix(region, "vram") || strings.HasPrefix(region, "gtt") || strings.HasPrefix(region, "local")
}

// quantity reads "22 MiB", "544428 KiB" or a number of bytes.
func quantity(s string) (int64, bool) {
	digits, unit, _ := strings.Cut(s, " ")
	n, err := strconv.ParseInt(digits, 10, 64)
	shift := 0
	switch strings.TrimSpace(unit) {
	case "":
	case "KiB":
		shift = 10
	case "MiB":
		shift = 20
	case "GiB":
		shift = 30
	default:
		return 0, false
	}
	if err != nil || n < 0 || n > 1<<50>>shift {
		return 0, false
	}
	return n << shift, true
}

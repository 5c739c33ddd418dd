package gpu

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Sensors reads one host. The zero Root is "/".
type Sensors struct {
	Root string // folder that holds proc and sys
	SMI  string // path of nvidia-smi; "": NVIDIA devices are listed without numbers
}

// A Device is one GPU. A nil number means that the host does not tell it.
type Device struct {
	PCI            string   `json:"pci"`    // address such as 0000:c4:00.0
	Driver         string   `json:"driver"` // such as amdgpu, nvidia
	Name           string   `json:"name,omitempty"`
	VRAMUsedBytes  *int64   `json:"vram_used_bytes"`
	VRAMTotalBytes *int64   `json:"vram_total_bytes"`
	GTTUsedBytes   *int64   `json:"gtt_used_bytes"` // host memory that the GPU has mapped
	GTTTotalBytes  *int64   `json:"gtt_total_bytes"`
	TempC          *float64 `json:"temp_c"` // of its hottest sensor
}

// Devices lists the GPUs of the host by PCI address. An error is nvidia-smi's: the devices come with it, those of
// NVIDIA without numbers.
func (s Sensors) Devices(ctx context.Context) ([]Device, error) {
	devices := s.drmDevices()
	rows, err := s.smiDevices(ctx)
	for _, d := range rows {
		i := slices.IndexFunc(devices, func(o Device) bool { return o.PCI == d.PCI })
		if i < 0 {
			devices = append(devices, d)
			continue
		}
		devices[i] = d
	}
	slices.SortFunc(devices, func(a, b Device) int { return cmp.Compare(a.PCI, b.PCI) })
	return devices, err
}

func (s Sensors) path(parts ...string) string {
	return filepath.Join(cmp.Or(s.Root, "/"), filepath.Join(parts...))
}

// drmDevices reads /sys/class/drm. A card without a PCI address is no GPU but a frame buffer.
func (s Sensors) drmDevices() []Device {
	var devices []Device
	for _, dir := range glob(s.path("sys/class/drm/card*/device")) {
		if n, ok := strings.CutPrefix(filepath.Base(filepath.Dir(dir)), "card"); !ok || strings.Trim(n, "0123456789") != "" {
			continue // a connector, such as card1-DP-1
		}
		d := Device{}
		for line := range strings.Lines(readText(filepath.Join(dir, "uevent"))) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch key {
			case "DRIVER":
				d.Driver = value
			case "PCI_SLOT_NAME":
				d.PCI = busID(value)
			}
		}
		if d.PCI == "" {
			continue
		}
		d.VRAMUsedBytes = number(filepath.Join(dir, "mem_info_vram_used"))
		d.VRAMTotalBytes = number(filepath.Join(dir, "mem_info_vram_total"))
		d.GTTUsedBytes = number(filepath.Join(dir, "mem_info_gtt_used"))
		d.GTTTotalBytes = number(filepath.Join(dir, "mem_info_gtt_total"))
		d.TempC = hottest(dir)
		devices = append(devices, d)
	}
	return devices
}

// hottest reads the sensors of a device, which tell thousandths of a degree.
func hottest(dir string) *float64 {
	var most *float64
	for _, path := range glob(filepath.Join(dir, "hwmon/hwmon*/temp*_input")) {
		n := number(path)
		if n == nil {
			continue
		}
		if c := float64(*n) / 1000; most == nil || c > *most {
			most = &c
		}
	}
	return most
}

// glob lists the paths that fit a pattern, which is never malformed.
func glob(pattern string) []string {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	return paths
}

// number reads a file that holds one number, nil if it does not.
func number(path string) *int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(readText(path)), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

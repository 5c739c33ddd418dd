package gpu

import (
	"context"
	"time"
)

// Sensors reads one host. The zero Root is "/".
type Sensors struct {
	Root string // folder that holds proc and sys
	SMI  string // path of nvidia-smi; "": no NVIDIA device is asked for
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
	TempC          *float64 `json:"temp_c"` // the hottest of its sensors
}

// A Process has a GPU open.
type Process struct {
	PID     int       `json:"pid"`
	Start   time.Time `json:"start,omitzero"` // with the pid it names one process for ever; zero: not told
	Command string    `json:"command"`
	Devices []string  `json:"devices"` // PCI addresses
	Bytes   *int64    `json:"bytes"`   // of GPU memory, VRAM and GTT; nil: the driver does not tell
}

// Devices lists the GPUs of the host, ordered by PCI address.
func (s Sensors) Devices(ctx context.Context) ([]Device, error) { return nil, nil }

// Processes lists who has a GPU open, ordered by pid.
func (s Sensors) Processes(ctx context.Context) ([]Process, error) { return nil, nil }

// EvictedMS sums for how long, in milliseconds, the driver kept the compute queues of the processes off the GPU. It
// only ever grows while a process lives. ok is false if the host does not tell it for any of them.
func (s Sensors) EvictedMS(pids []int) (ms int64, ok bool) { return 0, false }

// Residents lists the processes that have a GPU open and are none of ours.
func (s Sensors) Residents(ctx context.Context, ours []int) ([]Process, error) { return nil, nil }

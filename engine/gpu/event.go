// Package gpu reads what a Linux host tells of its GPUs: their memory by device and by process, evictions of their
// queues, temperatures, and what the kernel's log says of them. Every reader takes the root folder of /proc and /sys,
// so that a recorded tree stands in for a host.
package gpu

import "time"

// An Event is what the kernel's log says of a GPU. One event may be told by several lines.
type Event struct {
	Kind    string    `json:"kind"`              // such as ring-timeout, page-fault, reset, vram-lost, evict, xid
	Fault   bool      `json:"fault"`             // of the GPU or of the program; else something to know
	Device  string    `json:"device,omitempty"`  // PCI address such as 0000:c4:00.0
	PID     int       `json:"pid,omitempty"`     // of the process that the kernel names, 0: none
	Process string    `json:"process,omitempty"` // its name, which the kernel cuts at 15 bytes
	At      time.Time `json:"at,omitzero"`       // zero: the line has no time that can be placed
	Text    string    `json:"text"`              // the lines
}

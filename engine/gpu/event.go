// Package gpu reads what a Linux host tells of its GPUs: their memory by device and by process, evictions of their
// queues, temperatures, and what the kernel's log says of them. Every reader takes the root folder of /proc and /sys,
// so that a recorded tree stands in for a host.
//
// Nouns:
//
//   - Sensors reads a host. AMD devices are read from sysfs and from the fdinfo of open files, NVIDIA devices are asked
//     through nvidia-smi. What a host does not tell is nil, never zero.
//   - Device is a GPU, Process somebody who has one open. Residents are those who are none of ours.
//   - Event is what the kernel's log says of a GPU; KernelReader makes events of lines, Follow does so for the log of
//     this host as it grows. Event.Ours tells whom an event concerns.
//
// A soak uses them like this:
//
//	before the load   Devices, Processes → memory in use, Residents(ctx, os.Getpid()) → somebody else's programs
//	during it         Follow → Event.Ours(pids of server and neighbour, nil, their devices)
//	                  EvictedMS(pids) at its beginning and end, Devices for temperature and memory
//	after it          Processes → none of ours may be left
//
// The pids are those of the kernel's own namespace: in a container with pids of its own nothing can be attributed.
package gpu

import (
	"slices"
	"time"
)

// An Event is what the kernel's log says of a GPU. One event may be told by several lines.
type Event struct {
	Kind    string    `json:"kind"`              // one of the Kind constants, or xid- and NVIDIA's number
	Fault   bool      `json:"fault"`             // of the GPU or of the program; else something to know
	Device  string    `json:"device,omitempty"`  // PCI address such as 0000:c4:00.0
	PID     int       `json:"pid,omitempty"`     // of the process that the kernel blames, 0: none
	Process string    `json:"process,omitempty"` // its name, which the kernel cuts at 15 bytes; Driver: the kernel's own work
	At      time.Time `json:"at,omitzero"`       // zero: the line has no time that can be placed
	Text    string    `json:"text"`              // the lines, without what dmesg or journalctl put before them
}

// Kinds of event. A reset, lost memory and the like are what follows from a timeout or a page fault: they blame whom
// that blamed, if it was on the same device a short while before.
const (
	KindRingTimeout   = "ring-timeout"   // a job did not end in time
	KindPageFault     = "page-fault"     // an access to memory that is not mapped
	KindReset         = "reset"          // the GPU begins a reset
	KindResetFailed   = "reset-failed"   // a ring or the GPU could not be reset
	KindVRAMLost      = "vram-lost"      // a reset lost the memory of all programs, also if it "succeeded"
	KindWedged        = "wedged"         // the device was given up, recovered or not
	KindLost          = "lost"           // the device left the bus
	KindScheduler     = "scheduler"      // the GPU's own scheduler does not answer
	KindQueue         = "queue"          // queues could not be evicted or restored
	KindSuspend       = "suspend"        // a process could not be taken off the GPU
	KindECC           = "ecc"            // an uncorrectable hardware error
	KindSoftRecovered = "soft-recovered" // no fault: a late job was ended alone
	KindEvict         = "evict"          // no fault: queues of a process were taken off the GPU for a while
	KindMemory        = "memory"         // no fault: memory could not be mapped
	KindFence         = "fence-fallback" // no fault: an interrupt came late
)

// Driver is the Process of an event that the kernel's own work on the device caused, which is no program's.
const Driver = "(driver)"

// What Event.Ours says.
const (
	OursProcess = "process"
	OursDevice  = "device"
)

// Ours says whom an event concerns: OursProcess if the kernel blames one of our pids, or, where it names no pid, a
// program of one of our names; OursDevice if it blames nobody and the device is one of ours or is not named; "" if it
// is somebody else's. A pid decides alone, since others may run programs of the same name; give those that have ended
// too.
func (e Event) Ours(pids []int, names, devices []string) string {
	switch {
	case e.PID != 0 && slices.Contains(pids, e.PID):
		return OursProcess
	case e.PID != 0:
		return ""
	case e.Process != "" && slices.ContainsFunc(names, func(n string) bool { return cutName(n) == e.Process }):
		return OursProcess
	case e.Process != "":
		return ""
	case e.Device == "" && len(devices) > 0, slices.Contains(devices, e.Device):
		return OursDevice
	}
	return ""
}

// cutName shortens a program's name as the kernel does.
func cutName(name string) string { return name[:min(len(name), 15)] }

package gpu

import (
	"context"
	"errors"
)

// A KernelReader makes events of the kernel's log lines.
type KernelReader struct{}

// Feed takes one line, with whatever prefix dmesg, journalctl or /dev/kmsg gave it, and returns the events that are
// complete by now. A fault waits for the next line, which may name its process.
func (r *KernelReader) Feed(line string) []Event { return nil }

// Flush returns the event that still waits.
func (r *KernelReader) Flush() []Event { return nil }

// Ours says whether the event concerns us: "process" if the kernel names one of our pids (or, without a pid, one of our
// program names), "device" if it names no process and one of our devices (or no device), "" if it is somebody else's.
func (e Event) Ours(pids []int, names, devices []string) string { return "" }

// ErrNoKernelLog says that the kernel's log cannot be followed; its text says what would give it.
var ErrNoKernelLog = errors.New("the kernel's log cannot be read")

// Follow calls f for every event from now on until ctx ends, which is no error.
func Follow(ctx context.Context, root string, f func(Event)) error { return ErrNoKernelLog }

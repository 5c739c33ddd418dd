package gpu

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// A KernelReader makes events of the kernel's log. It knows amdgpu in the spellings of its three generations and the
// Xid lines of NVIDIA's driver. Free text in a line makes no event: the line has to begin as the driver's do.
type KernelReader struct {
	open   map[string]*Event  // by device: told by the last lines, maybe not yet to the end
	blamed map[string]episode // by device
	last   string             // device of the last episode
}

// An episode is a root cause, with what follows from it.
type episode struct {
	pid     int
	process string
	last    moment
}

const (
	episodeSeconds = 60  // between two lines of one episode
	maxLines       = 8   // of an event's text
	maxLine        = 512 // bytes of one of them
	maxOpen        = 64  // devices
)

// Feed takes one line, with whatever dmesg, journalctl or /dev/kmsg put before it, and returns the events that are
// complete by now. An event waits for the next one of its device, since the line after it may name the process: call
// Flush when no line has come for a moment.
func (r *KernelReader) Feed(line string) []Event {
	if !Relevant(line) {
		return nil
	}
	msg, at := message(line)
	return r.feed(msg, at)
}

// FeedMessage is Feed for a message of the kernel's alone, as a journal keeps it, and the moment of it.
func (r *KernelReader) FeedMessage(message string, at time.Time) []Event {
	if !Relevant(message) {
		return nil
	}
	return r.feed(message, moment{clock: 'w', seconds: float64(at.UnixMicro()) / 1e6, at: at})
}

// Relevant tells whether a line may be about a GPU. It sorts out most lines cheaply.
func Relevant(line string) bool {
	return strings.Contains(line, "amdgpu") || strings.Contains(line, "[drm") ||
		strings.Contains(line, "NVRM: Xid") || strings.Contains(line, "Evicting pid ")
}

func (r *KernelReader) feed(msg string, at moment) []Event {
	if e, ok := xidEvent(msg); ok {
		e.At, e.Text = at.at, cutLine(msg)
		return []Event{e}
	}
	if m := reEvict().FindStringSubmatch(msg); m != nil {
		return []Event{{Kind: KindEvict, PID: atoi(m[1]), At: at.at, Text: cutLine(msg)}}
	}
	device, text, ok := amdMessage(msg)
	if !ok {
		return nil
	}
	kind, fault := classify(text)
	if kind == KindPageFault && strings.Contains(text, "L2_PROTECTION_FAULT_STATUS:") && r.opened(device, kind) {
		kind = "" // the page fault's own registers
	}
	if kind == "" {
		r.add(device, msg, text)
		return nil
	}
	return r.begin(Event{Kind: kind, Fault: fault, Device: device, At: at.at, Text: cutLine(msg)}, text, at)
}

// Flush returns the events that still wait for more lines.
func (r *KernelReader) Flush() []Event {
	var events []Event
	for _, device := range slices.Sorted(maps.Keys(r.open)) {
		events = append(events, *r.open[device])
	}
	clear(r.open)
	return events
}

// waiting tells whether Flush would return anything.
func (r *KernelReader) waiting() bool { return len(r.open) > 0 }

func (r *KernelReader) opened(device, kind string) bool {
	e := r.open[device]
	return e != nil && e.Kind == kind
}

// begin opens an event and returns the one that it ends.
func (r *KernelReader) begin(e Event, text string, at moment) (done []Event) {
	if len(r.open) >= maxOpen || len(r.blamed) >= maxOpen {
		done = r.Flush()
		clear(r.blamed)
	}
	if r.open == nil {
		r.open, r.blamed = map[string]*Event{}, map[string]episode{}
	}
	if e.Kind == KindRingTimeout || e.Kind == KindPageFault {
		nameInline(&e, text)
		r.blamed[e.Device] = episode{e.PID, e.Process, at}
		r.last = e.Device
	} else if e.Fault {
		r.inherit(&e, text, at)
	}
	if before := r.open[e.Device]; before != nil {
		done = append(done, *before)
	}
	r.open[e.Device] = &e
	return done
}

// inherit blames whom the root cause blamed. A line that names no device belongs to the last episode; a root cause
// without a device, as older kernels print it, is given the device that the next line names.
func (r *KernelReader) inherit(e *Event, text string, at moment) {
	key := e.Device
	if key == "" {
		key = r.last
	}
	ep, found := r.blamed[key]
	if root, homeless := r.blamed[""]; !found && homeless && r.last == "" && root.last.before(at, episodeSeconds) {
		ep, found = root, true
		delete(r.blamed, "")
		if root := r.open[""]; root != nil && r.open[key] == nil {
			root.Device = key
			r.open[key] = root
			delete(r.open, "")
		}
	}
	if !found || !ep.last.before(at, episodeSeconds) {
		if pid, ok := strings.CutPrefix(text, "Failed to suspend process pid "); ok {
			e.PID = atoi(pid)
		}
		ep = episode{pid: e.PID}
	}
	ep.last = at
	r.blamed[key], r.last = ep, key
	e.Device, e.PID, e.Process = key, ep.pid, ep.process
}

// add gives a line to the event that is open on its device: more of its text, or the process to blame.
func (r *KernelReader) add(device, msg, text string) {
	e := r.open[device]
	if e == nil {
		return
	}
	if m := reProcess().FindStringSubmatch(strings.TrimSpace(text)); m != nil && e.PID == 0 {
		e.PID, e.Process = blame(m[2], m[1])
		if ep, found := r.blamed[device]; found && (e.Kind == KindRingTimeout || e.Kind == KindPageFault) {
			ep.pid, ep.process = e.PID, e.Process
			r.blamed[device] = ep
		}
	}
	if strings.Count(e.Text, "\n")+1 < maxLines {
		e.Text += "\n" + cutLine(msg)
	}
}

// nameInline reads the process that some page faults name in their first line. Without a process and an address space
// the kernel's own work faulted.
func nameInline(e *Event, text string) {
	m := reInline().FindStringSubmatch(text)
	if m == nil {
		return
	}
	e.PID, e.Process = blame(m[3], m[2])
	if m[1] == "0" && e.PID == 0 && e.Process == "" {
		e.Process = Driver
	}
}

func blame(pid, name string) (int, string) {
	return atoi(pid), cutName(strings.TrimSpace(name))
}

func cutLine(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxLine)], "?") }

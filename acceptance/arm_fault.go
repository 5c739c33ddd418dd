package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
)

// A trace is all that one life showed of one face.
type trace struct {
	face     string
	seen     int
	first    time.Time
	detail   string
	excerpt  string
	request  *int
	slot     *int
	reported bool // the plan's setting is report
}

// traceKey tells traces of one face apart by what they count as.
type traceKey struct {
	face  string
	grade detect.Grade
}

// mostTraces bounds the traces of a life: all faces in all grades, and then
// some that we do not know.
const mostTraces = 256

// takeFinding adds a finding that is of no one request, or was joined to one
// later.
func (a *arm) takeFinding(at time.Time, f *findingRecord) {
	slot := -1
	if f.Slot != nil {
		slot = *f.Slot
	}
	if f.Grade == detect.Warning {
		a.requests.warn(f.Face)
	}
	if f.Face == detect.NaNWire && f.Grade == detect.Fault && f.Request == nil {
		a.requests.nan++ // the reply to a question on the quiet server
	}
	if gates := a.found(at, f.Finding, f.Request, slot); gates && f.Request != nil {
		a.blame(*f.Request, slot)
	}
}

// found adds a finding to its trace and tells whether it is a fault that gates.
func (a *arm) found(at time.Time, f detect.Finding, request *int, slot int) bool {
	setting := a.faces.setting(f.Face)
	if setting == detect.Off {
		return false
	}
	key := traceKey{f.Face, f.Grade}
	t := a.traces[key]
	if t == nil {
		if len(a.traces) >= mostTraces {
			key = traceKey{"other", f.Grade}
			t = a.traces[key]
		}
		if t == nil {
			t = &trace{face: key.face, first: at.Add(1), reported: setting == detect.Report}
			a.traces[key] = t
		}
	}
	t.seen++
	if at.Before(t.first) {
		t.first, t.detail, t.excerpt, t.request, t.slot = at, f.Detail, f.Excerpt, nil, nil
		if request != nil {
			id := *request
			t.request = &id
		}
		if slot >= 0 {
			t.slot = &slot
		}
	}
	gates := f.Grade == detect.Fault && setting == detect.Gate
	if gates && a.toFault == nil {
		n := a.requests.ended
		if request != nil {
			n++
		}
		a.toFault = &n
	}
	return gates
}

// blame counts a request as faulted, once.
func (a *arm) blame(id, slot int) {
	if a.faulted[id] || len(a.faulted) >= mostFaulted {
		return
	}
	a.faulted[id] = true
	if slot >= 0 && (len(a.bySlot) < mostStrata || a.bySlot[slot] > 0) {
		a.bySlot[slot]++
	}
}

// brokenOff are the faces that a server shows when somebody else ends it.
var brokenOff = []string{detect.Crash, detect.Restart, detect.Transport}

// episode lists the gating faults of the life, the most telling first: traces
// of one event, since a life ends with its first fault. What a kill from
// outside broke off is none.
func (a *arm) episode() []*trace {
	var list []*trace
	for key, t := range a.startTraces() {
		if key.grade == detect.Fault && !t.reported && !a.fromOutside(t) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(x, y *trace) int { return a.faces.compare(x.face, y.face) })
	return list
}

// fromOutside tells whether a trace is only that the server was ended by
// somebody else: the kernel for memory, or who is told of it like a watchdog of
// ours. Those kill. A server that ends in any other way did so by itself,
// whenever that was noticed.
func (a *arm) fromOutside(t *trace) bool {
	if a.oomKilled() {
		return slices.Contains(brokenOff, t.face)
	}
	if a.watchdog == nil || t.first.Before(a.watchedAt) {
		return false
	}
	switch t.face {
	case detect.Transport:
		return a.exit == nil || a.killed()
	case detect.Crash:
		return a.exit != nil && a.killed() && !a.logs[logKey{kind: engine.LogAbort}]
	}
	return false
}

// killed tells whether the server was ended by a signal that no program sends
// itself.
func (a *arm) killed() bool {
	s := unix.Signal(a.exit.Signal)
	return s == unix.SIGKILL || s == unix.SIGTERM
}

// oomKilled tells whether the server was killed for memory: whoever did it says
// so, or the kernel had killed something and a SIGKILL is what it does that by.
func (a *arm) oomKilled() bool {
	if a.exit == nil {
		return false
	}
	signal := unix.Signal(a.exit.Signal)
	return a.exit.KilledBy != "" && !crashed(signal) || a.exit.OOMKilled && signal == unix.SIGKILL
}

// fault joins an episode into one fault.
func (a *arm) fault(episode []*trace) Fault {
	f := a.tell(episode[0])
	f.Requests, f.BySlot = len(a.faulted), maps.Clone(a.bySlot)
	f.AfterRequests = a.toFault
	for _, t := range episode {
		f.Traces = append(f.Traces, Trace{t.face, t.seen, t.first, t.detail})
		if t.first.Before(f.At) {
			f.At = t.first
		}
		if f.Request == nil && t.request != nil {
			f.Request, f.Slot = t.request, t.slot
		}
	}
	if a.end != nil {
		f.Tasks = append(f.Tasks, a.end.Tasks...)
	}
	if len(episode) > 1 {
		for _, t := range episode[1:] {
			f.Detail += fmt.Sprintf("; %s: %s", t.face, t.detail)
		}
	}
	return f
}

// tell gives a trace as a fault.
func (a *arm) tell(t *trace) Fault {
	return Fault{
		Face: t.face, Arm: a.start.Arm, Request: t.request, Slot: t.slot, At: t.first, Detail: t.detail, Excerpt: t.excerpt,
		BySlot: map[int]int{}, Traces: []Trace{}, Tasks: []SlotTask{},
	}
}

// reported lists the faults that the plan only wants told, in the order of
// their faces.
func (a *arm) reported() []Fault {
	var list []Fault
	for key, t := range a.startTraces() {
		if key.grade == detect.Fault && t.reported {
			f := a.tell(t)
			f.Requests, f.Traces = t.seen, append(f.Traces, Trace{t.face, t.seen, t.first, t.detail})
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(x, y Fault) int { return a.faces.compare(x.Face, y.Face) })
	return list
}

// called is the reason for a state of fault, such as fault(crash, SIGSEGV).
func (a *arm) called(face string) string {
	name := family(face)
	switch face {
	case detect.NaN:
		if a.logs[logKey{engine.LogAbort, true}] && !a.logs[logKey{kind: engine.LogNaN}] {
			name += ", line-lost"
		}
	case detect.Crash:
		if a.exit == nil {
			break
		}
		if s := unix.Signal(a.exit.Signal); s != 0 {
			name += ", " + signalName(s)
		} else {
			name += fmt.Sprintf(", exit %d", a.exit.Code)
		}
	}
	return "fault(" + name + ")"
}

func signalName(s unix.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// family joins the faces of broken bytes: they are one kind of fault, seen by
// different checks.
func family(face string) string {
	switch face {
	case detect.UTF8, detect.JSON, detect.Format:
		return "face-b"
	}
	return face
}

package acceptance

import (
	"cmp"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// Faces of fault as a verdict names them.
const (
	FaceNaN        = "nan"      // the engine's guard reported it
	FaceNaNWire    = "nan-wire" // null log-probabilities, and the log is silent
	FaceUTF8       = "utf8"
	FaceJSON       = "json"
	FaceFormat     = "format"
	FaceStatus     = "status"
	FaceTransport  = "transport" // no answer, and the server lives
	FaceHang       = "hang"      // no answer within the deadline
	FaceLeak       = "leak"      // an answer with another request's nonce
	FaceCorruption = "corruption"
	FaceCrash      = "crash"
	FaceDevice     = "device" // the GPU runtime reports an error
	FaceStartup    = "startup"
)

// A Fault is one thing that went wrong in an arm.
type Fault struct {
	Face    string    `json:"face"`
	Arm     int       `json:"arm"`
	Request *int      `json:"request"` // null: none in particular
	Slot    *int      `json:"slot"`    // where it was seen, which need not be the cause
	At      time.Time `json:"at"`
	Detail  string    `json:"detail"`
}

// arm is one server life as the ledger tells it.
type arm struct {
	plan      *Plan
	start     startRecord
	startup   *startupRecord
	load      *loadRecord
	requests  []requestRecord
	at        []time.Time // of the requests
	logs      []logRecord
	logAt     []time.Time
	exit      *exitRecord
	neighbour []neighbourRecord
	probe     *probeRecord
	end       *endRecord

	startupAt, exitAt, probeAt time.Time
}

// take adds one record to the arm.
func (a *arm) take(l line) error {
	var err error
	switch l.Kind {
	case recordStartup:
		a.startupAt = l.At
		a.startup, err = decode[startupRecord](l)
	case recordLoad:
		a.load, err = decode[loadRecord](l)
	case recordRequest:
		var r *requestRecord
		if r, err = decode[requestRecord](l); err == nil {
			a.requests, a.at = append(a.requests, *r), append(a.at, l.At)
		}
	case recordLog:
		var r *logRecord
		if r, err = decode[logRecord](l); err == nil {
			a.logs, a.logAt = append(a.logs, *r), append(a.logAt, l.At)
		}
	case recordExit:
		a.exitAt = l.At
		a.exit, err = decode[exitRecord](l)
	case recordNeighbour:
		var r *neighbourRecord
		if r, err = decode[neighbourRecord](l); err == nil {
			a.neighbour = append(a.neighbour, *r)
		}
	case recordProbe:
		a.probeAt = l.At
		a.probe, err = decode[probeRecord](l)
	case recordEnd:
		a.end, err = decode[endRecord](l)
	default:
		err = fmt.Errorf("record %d: unknown kind %q", l.Seq, l.Kind)
	}
	return err
}

// logged finds the first log record of a kind.
func (a *arm) logged(kind engine.LogKind) (int, bool) {
	i := slices.IndexFunc(a.logs, func(r logRecord) bool { return r.Kind == kind })
	return i, i >= 0
}

// faults lists what went wrong, in the order in which it was seen. Several
// traces of one event (guard line, abort text, exit, broken connections) are
// one fault, told by the most telling trace.
func (a *arm) faults() []Fault {
	var list []Fault
	add := func(at time.Time, face, detail string, request, slot *int) {
		list = append(list, Fault{Face: face, Arm: a.start.Arm, Request: request, Slot: slot, At: at, Detail: detail})
	}
	guard, guarded := a.logged(engine.LogNaN)
	for i, r := range a.requests {
		face, detail := requestFault(r, a.exit != nil, guarded)
		if face == "" {
			continue
		}
		if face == FaceNaN {
			detail += "; guard line in the log: " + a.logs[guard].Line
		}
		slot := &r.Slot
		if r.Slot < 0 {
			slot = nil
		}
		add(a.at[i], face, detail, &r.ID, slot)
	}
	wire := slices.ContainsFunc(list, func(f Fault) bool { return f.Face == FaceNaN })
	a.logFaults(wire, add)
	a.endFaults(add)
	slices.SortStableFunc(list, func(x, y Fault) int { return x.At.Compare(y.At) })
	return list
}

// requestFault names the face of one request, or "". A request that got no
// answer because the server ended is told by the server's end.
func requestFault(r requestRecord, exited, guarded bool) (face, detail string) {
	switch r.Outcome {
	case outcomeDeadline:
		return FaceHang, r.Error
	case outcomeNoAnswer:
		if !exited {
			return FaceTransport, r.Error
		}
	}
	names := map[string]string{
		engine.FaceNaN: FaceNaNWire, engine.FaceUTF8: FaceUTF8, engine.FaceJSON: FaceJSON, engine.FaceFormat: FaceFormat,
		engine.FaceStatus: FaceStatus, engine.FaceLoading: FaceStatus, FaceLeak: FaceLeak,
	}
	for _, f := range r.Faces {
		if face = names[f.Face]; face == FaceNaNWire && guarded {
			face = FaceNaN
		}
		if face != "" {
			return face, f.Detail
		}
	}
	return "", ""
}

// logFaults adds what the server log tells: a guard line that no answer
// showed, an abort, an error of the device.
func (a *arm) logFaults(wire bool, add func(time.Time, string, string, *int, *int)) {
	i, guarded := a.logged(engine.LogNaN)
	if guarded && !wire {
		add(a.logAt[i], FaceNaN, "guard line in the log: "+a.logs[i].Line, nil, nil)
	}
	if i, ok := a.logged(engine.LogAbort); ok && !guarded {
		if slices.ContainsFunc(a.logs, func(r logRecord) bool { return r.NaNAbort }) {
			add(a.logAt[i], FaceNaN, "aborted for NaN, and the guard's own line was lost: "+a.logs[i].Line, nil, nil)
		} else {
			add(a.logAt[i], FaceCrash, "aborted: "+a.logs[i].Line, nil, nil)
		}
	}
	if i, ok := a.logged(engine.LogDevice); ok {
		add(a.logAt[i], FaceDevice, a.logs[i].Line, nil, nil)
	}
}

// endFaults adds what start, end and the requests after the load tell.
func (a *arm) endFaults(add func(time.Time, string, string, *int, *int)) {
	_, guarded := a.logged(engine.LogNaN)
	_, aborted := a.logged(engine.LogAbort)
	if s := a.startup; s != nil && s.Problem != "" && a.startupCause() == "" && !guarded && !aborted {
		add(a.startupAt, FaceStartup, s.Detail, nil, nil)
	}
	if e := a.exit; e != nil && !guarded && !aborted && !a.oomKilled() {
		add(a.exitAt, FaceCrash, "the server ended by itself: "+e.Text, nil, nil)
	}
	if p := a.probe; p != nil && p.Face != "" {
		face := FaceCorruption
		switch p.Face {
		case engine.FaceDiffers:
		case engine.FaceNaN:
			face = FaceNaNWire
		case engine.FaceTransport:
			face = FaceTransport
		case engine.FaceNotObserved:
			return // nothing was seen, so nothing was found
		default:
			face, _ = requestFault(requestRecord{Faces: []engine.AnswerFault{{Face: p.Face}}}, false, false)
			face = cmp.Or(face, FaceStatus)
		}
		if face == FaceTransport && a.exit != nil {
			return
		}
		add(a.probeAt, face, "identical requests after the load: "+p.Detail, nil, nil)
	}
}

func (a *arm) oomKilled() bool {
	return a.exit != nil && a.exit.OOMKilled && syscall.Signal(a.exit.Signal) == syscall.SIGKILL
}

// startupCause names the outside cause of a failed start, or "": then it is the
// engine's fault. An allocation that fails within the plan's band of GTT, or
// below it, has no outside cause.
func (a *arm) startupCause() string {
	s, band := a.startup, a.plan.Gates.GTTUsedGiB
	switch {
	case s == nil || s.Problem == "":
		return ""
	case s.PortTaken:
		return "port-taken"
	case s.OOMKilled:
		return "oom-kill"
	case s.AllocFailed && (band == nil || s.GTTUsedGiB == nil || *s.GTTUsedGiB > band.Max):
		return "load-oom"
	}
	return ""
}

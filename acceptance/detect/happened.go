package detect

import (
	"errors"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
)

// An Exchange is one request that has ended by itself: its answer, or how it failed. One that the runner gave up tells
// nothing and is no Exchange.
type Exchange struct {
	ID         int    // of the request, as in Set.Sent
	Kind       string // Sentinel or ""
	NPredict   int
	ProbsAsked bool
	Answer     *engine.Answer // nil: none came; with Err what had come until then
	Err        error          // why no whole answer came
	Deadline   bool           // none came within the deadline

	faults []engine.AnswerFault // of the answer
	book   *Nonces              // nil: the face is off
	tenant int                  // request that held the slot before, -1: unknown
}

// request is what the ledger will tell of the exchange.
func (x *Exchange) request() Request {
	r := Request{Outcome: Answered, Kind: x.Kind, ProbsAsked: x.ProbsAsked}
	switch {
	case x.Deadline:
		r.Outcome = Deadline
	case x.Answer == nil || x.Err != nil:
		r.Outcome = NoAnswer
	default:
		r.Status, r.Predicted, r.Observed = x.Answer.Status, x.Answer.TokensPredicted, len(x.Answer.Tokens)
	}
	return r
}

// fault finds the first fault of the answer that has one of the engine's names and satisfies the status.
func (x *Exchange) fault(ok func(status int) bool, names ...string) (engine.AnswerFault, bool) {
	if x.Answer == nil || !ok(x.Answer.Status) {
		return engine.AnswerFault{}, false
	}
	for _, f := range x.faults {
		for _, name := range names {
			if f.Face == name {
				return f, true
			}
		}
	}
	return engine.AnswerFault{}, false
}

func anyStatus(int) bool { return true }

// why says why no answer came.
func (x *Exchange) why() error {
	if x.Err == nil {
		return errors.New("no answer came")
	}
	return x.Err
}

// A KernelEvent is what the kernel's log says of a GPU.
type KernelEvent struct {
	gpu.Event
	Ours string // how it concerns the server: "process", "device", or "" for somebody else's
}

// An Exit is the end of a server that nobody asked for.
type Exit struct {
	Status    engine.ExitStatus
	OOMKilled bool   // the kernel killed something for memory just before
	KilledBy  string // who says to have killed this very server for memory; "": nobody does
}

// An Identity is the process that listens on the server's port. The zero value is one that could not be told.
type Identity struct {
	PID   int
	Start uint64 // start time in clock ticks since boot, /proc/PID/stat field 22: process ids come again
}

// Relisten is who listened before and who does now.
type Relisten struct{ Before, After Identity }

// A Placement is where the server's log says that the model is, and where the plan wants it.
type Placement struct {
	WantDevice string // "" any
	WantLayers string // "all", or "" any number
	CountsAs   string // "fault" or "invalid"

	Devices           []string // as the log names them
	Offloaded, Layers int      // 0 of 0: the log does not say
}

// A FailedStart is a server that never became ready.
type FailedStart struct {
	Detail string
	Cause  string // the outside cause by name, such as port-taken; "" none is known
	Log    string // the telling line of its log, if there is one
}

// A Pair is two answers to the same greedy request, one after the other, while no other slot was busy.
type Pair struct{ First, Second *engine.Answer }

// A Comparison is the answer to a sentinel under load beside the one that the quiet server gave.
type Comparison struct {
	Reference, Under *engine.Answer
	Tau              float64 // log-probability within which a difference is one of rounding
}

// Samples are the server's memory over its requests, in order.
type Samples []Sample

// A Sample is the server's memory, anonymous and swapped, after so many requests.
type Sample struct {
	Requests int
	MiB      float64
}

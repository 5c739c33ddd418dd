package detect

import "slices"

// Names of the faces.
const (
	NaN         = "nan"      // the engine's guard reported NaN logits in the log
	NaNWire     = "nan-wire" // a log-probability that is not finite
	UTF8        = "utf8"
	JSON        = "json"
	Format      = "format" // 500: the server cannot parse its own output
	Status      = "status"
	InBand      = "in-band"   // 200 with an error inside
	Transport   = "transport" // no answer, or half of one
	Empty       = "empty"     // 200 without any token
	Hang        = "hang"      // no answer within the deadline
	Leak        = "leak"      // another request's nonce
	Corruption  = "corruption"
	Numeric     = "numeric" // a difference under load that rounding explains
	Crash       = "crash"
	Restart     = "restart"
	HSA         = "hsa" // the GPU runtime reports an error
	Kernel      = "kernel"
	Device      = "device" // the model is not where the plan wants it
	Startup     = "startup"
	Memory      = "memory"
	Text        = "text"         // shapes of text
	Context     = "context"      // the slots' shared context was too small for what was asked
	NotObserved = "not-observed" // tokens came, log-probabilities were asked for and did not
)

// Setting is what a plan makes of a face.
type Setting string

// Settings of a face.
const (
	Gate   Setting = "gate"
	Report Setting = "report"
	Off    Setting = "off"
)

// Units in which the chances of a face are counted.
const (
	UnitRequest = "request"
	UnitArm     = "arm" // one server life
)

// Needs of a face: without it nothing could be seen.
const (
	NeedsProbs     = "log-probabilities"
	NeedsSentinels = "sentinels"
	NeedsKernelLog = "kernel log"
	NeedsLog       = "server log"
	NeedsMemory    = "memory of the server"
	NeedsPlacement = "a device in the plan"
)

// FaceInfo describes a face.
type FaceInfo struct {
	Name    string  `json:"name"`
	Default Setting `json:"default"`
	Gates   bool    `json:"gates"`           // a plan may let it gate; others only ever warn
	Unit    string  `json:"unit"`            // UnitRequest or UnitArm
	Needs   string  `json:"needs,omitempty"` // "": it is always seen
	About   string  `json:"about"`           // one sentence
}

// face is a face with its detectors.
type face struct {
	FaceInfo
	sees func(Request) bool // of a face whose unit is the request
	find []detector
}

// A detector gives what one thing that happened shows. ok is false for a thing that it does not look at.
type detector func(happened any) (found []Finding, ok bool)

// on makes a detector of the things of one type.
func on[T any](find func(T) []Finding) detector {
	return func(happened any) ([]Finding, bool) {
		v, ok := happened.(T)
		if !ok {
			return nil, false
		}
		return find(v), true
	}
}

// all lists every face: the table to add one to.
func all() []face {
	return []face{
		nan(), nanWire(), corruption(), leak(), crash(), restart(), hang(), transport(), hsa(), kernel(), device(),
		startup(), status(), inBand(), format(), jsonBody(), invalidUTF8(), empty(), numeric(), contextFull(),
		notObserved(), memory(), text(),
	}
}

// Faces lists the faces, the gravest first.
func Faces() []FaceInfo {
	var infos []FaceInfo
	for _, f := range all() {
		infos = append(infos, f.FaceInfo)
	}
	return infos
}

// Sees tells whether one request could have shown a face. It is false for a face whose unit is the arm.
func Sees(name string, r Request) bool {
	i := slices.IndexFunc(table(), func(f face) bool { return f.Name == name })
	return i >= 0 && table()[i].sees != nil && table()[i].sees(r)
}

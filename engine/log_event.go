package engine

import "time"

// A LogKind names what a line of the server log says.
type LogKind string

// The kinds of line that are read. All others are no event.
const (
	LogStartup  LogKind = "startup"  // the slots were made; Slots, Context, KVUnified
	LogSelected LogKind = "selected" // a slot was chosen for the next task; How, NeverUsed, Similarity
	LogLaunch   LogKind = "launch"   // a slot begins a task; Child
	LogPrompt   LogKind = "prompt"   // the task's whole prompt; Tokens
	LogProgress LogKind = "progress" // a task is still at its prompt or its answer
	LogTiming   LogKind = "timing"   // final timing of a task; Phase, Tokens, MS
	LogGraphs   LogKind = "graphs"   // with the final timing: GraphsReused
	LogRelease  LogKind = "release"  // a slot ends a task; Tokens, Truncated
	LogCancel   LogKind = "cancel"   // nobody waits for a task any more
	LogError    LogKind = "error"    // a task was answered with an error; Detail
	LogContext  LogKind = "context"  // the same because the slots' shared context was too small
	LogPurge    LogKind = "purge"    // an idle slot lost its tokens to the others; Tokens
	LogCache    LogKind = "cache"    // the prompt cache holds Entries in MiB
	LogIdle     LogKind = "idle"     // all slots are idle
	LogHTTP     LogKind = "http"     // a request was answered; Path, Status

	LogNaN    LogKind = "nan"    // the engine's guard saw NaN logits; NaN
	LogAbort  LogKind = "abort"  // the process is about to end; Detail
	LogAlloc  LogKind = "alloc"  // an allocation on the device failed
	LogDevice LogKind = "device" // the GPU runtime reports an error
	LogBind   LogKind = "bind"   // the port could not be taken

	LogBackend LogKind = "backend"    // a backend was loaded; Device
	LogMissing LogKind = "no-backend" // a backend could not be loaded; Detail
	LogUsing   LogKind = "using"      // the model is put on Device
	LogOffload LogKind = "offload"    // Offloaded of Layers are on a GPU
	LogNoGPU   LogKind = "no-gpu"     // the warning of the argument parser, which may be wrong: see Placement
)

// How a slot was selected.
const (
	SelectedLRU = "lru" // the least recently used one
	SelectedLCP = "lcp" // the one whose last prompt begins alike
	SelectedID  = "id"  // the one that the request named
)

// The phases of a LogTiming.
const (
	PhasePrompt = "prompt" // tokens of the prompt that were evaluated, so not those from a cache
	PhaseEval   = "eval"   // tokens generated
	PhaseTotal  = "total"
)

// A LogEvent is what one line says. Slots are told apart by (Router, Slot);
// task ids start again with every process. Its Detail, Device and Path share
// memory with the text that was parsed: clone what is to be kept.
type LogEvent struct {
	Kind   LogKind
	Router int           // the port in a router's prefix, 0 without
	Time   time.Duration // since the process started; valid if Timed
	Timed  bool
	Read   time.Duration // when LogReader read the line, as told to Feed
	Level  byte          // 'I', 'W', 'E', 'D' or 0
	Slot   int           // -1 if the line names none
	Task   int           // -1 if the line names none

	How        string
	NeverUsed  bool    // LogSelected by LRU: the slot had no task before
	Similarity float64 // LogSelected by LCP: share of the prompt, 0 to 1
	Child      bool    // LogLaunch: one of several answers to one request
	Phase      string
	Tokens     int
	MS         float64 // milliseconds
	// GraphsReused counts since the process started, not for the task.
	GraphsReused int
	Truncated    bool
	Slots        int
	Context      int // tokens, of one slot
	KVUnified    bool
	Entries      int
	MiB          float64
	Path         string
	Status       int
	NaN          *NaNGuard
	NaNAbort     bool // LogAbort: the text names NaN

	Offloaded, Layers int
	Device            string // as ggml names it: CUDA0, ROCm, CPU
	Detail            string // the line without its prefixes
}

// At is the line's own time, or when it was read if it carries none.
func (ev LogEvent) At() time.Duration {
	if ev.Timed {
		return ev.Time
	}
	return ev.Read
}

// NaNGuard is what the engine's guard reports of one token's logits. Version 1
// of the line names one index only: Count is 1 then and Of is 0.
type NaNGuard struct {
	Count, Of   int
	First, Last int
	Contiguous  bool
	Continuing  bool
}

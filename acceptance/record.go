package acceptance

import (
	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
)

// Kinds of record in the ledger, in the order in which they come.
const (
	recordOpen      = "open"      // openRecord: what is tested
	recordResume    = "resume"    // resumeRecord: a runner goes on where another ended
	recordHost      = "host"      // hostRecord: before and after
	recordStart     = "start"     // startRecord: a server life begins
	recordProcess   = "process"   // processRecord: a program of ours runs; a runner that goes on ends what is left of it
	recordStartup   = "startup"   // startupRecord: the server is ready, or never was
	recordLoad      = "load"      // loadRecord: the load begins
	recordRequest   = "request"   // requestRecord: one request has ended
	recordFinding   = "finding"   // findingRecord: a face that is of no one request
	recordLog       = "log"       // logRecord: a telling line of the server log
	recordKernel    = "kernel"    // kernelRecord: a line of the kernel log about a GPU
	recordWatchdog  = "watchdog"  // watchdogRecord: the runner ends the life for an outside cause
	recordSentinel  = "sentinel"  // sentinelRecord: an answer that others are compared with
	recordExit      = "exit"      // exitRecord: the server ended by itself
	recordNeighbour = "neighbour" // neighbourRecord: one run of the neighbour
	recordProbe     = "probe"     // probeRecord: identical requests after the load
	recordEnd       = "end"       // endRecord: the server life is over
	recordClose     = "close"     // closing
)

type openRecord struct {
	Schema         int    `json:"schema"`
	Run            string `json:"run"` // names this run among all: part of the names of its scopes
	PlanFileSHA256 string `json:"plan_file_sha256"`
	PlanSHA256     string `json:"plan_sha256"`
	Package        string `json:"package"`
	PackageDigest  string `json:"package_digest"`
	EngineVersion  string `json:"engine_version"` // of --version
	Runner         string `json:"runner"`
}

type hostRecord struct {
	When string    `json:"when"` // before, after
	Host HostFacts `json:"host"`
}

type resumeRecord struct {
	Runner string `json:"runner"`
	Note   string `json:"note,omitempty"` // what was found, such as a torn last line
}

// startRecord begins a life. Arm counts lives, replaced ones included; Life
// counts those of its condition that the plan asks for.
type startRecord struct {
	Arm           int      `json:"arm"`     // from 1
	Planned       int      `json:"planned"` // index in the plan's arms
	Name          string   `json:"name"`    // of the plan's arm
	Life          int      `json:"life"`    // from 1
	Role          string   `json:"role"`
	Package       string   `json:"package"`
	PackageDigest string   `json:"package_digest"`
	EngineVersion string   `json:"engine_version"`     // of --version
	Args          []string `json:"args"`               // without host and port
	Boot          string   `json:"boot"`               // id of the boot that the ticks count from
	Ticks         uint64   `json:"ticks"`              // what the life starts is no older
	Replaces      int      `json:"replaces,omitempty"` // the arm that was no evidence
	Why           string   `json:"why,omitempty"`      // its reason
}

// processRecord names one process for ever, and what it was put into.
type processRecord struct {
	Role       string `json:"role"` // server, neighbour
	PID        int    `json:"pid"`  // also of its process group
	StartTicks uint64 `json:"start_ticks"`
	Boot       string `json:"boot"`            // id of the boot that the ticks count from
	Scope      string `json:"scope,omitempty"` // systemd unit; "": the process group alone
}

// startupRecord says how the start ended. Problem is "" if the server is ready.
type startupRecord struct {
	Tries       int      `json:"tries"` // more than 1 if ports were taken
	Port        int      `json:"port"`
	PID         int      `json:"pid"`
	TookMS      int64    `json:"took_ms"`
	Problem     string   `json:"problem,omitempty"` // exit, deadline
	Detail      string   `json:"detail,omitempty"`
	AllocFailed bool     `json:"alloc_failed,omitempty"`
	PortTaken   bool     `json:"port_taken,omitempty"`
	OOMKilled   bool     `json:"oom_killed,omitempty"` // the kernel killed something for memory just before
	Signal      int      `json:"signal,omitempty"`     // that the server was ended by
	Changed     string   `json:"changed,omitempty"`    // a file that was no longer what the run began with
	GTTUsedGiB  *float64 `json:"gtt_used_gib"`         // before the start; nil: no sensor

	Devices   []string `json:"devices,omitempty"`   // as the log names them, such as CUDA0
	Offloaded int      `json:"offloaded,omitempty"` // layers
	Layers    int      `json:"layers,omitempty"`
	Contained string   `json:"contained,omitempty"`  // the systemd scope, or "process group"
	ServerPID int      `json:"server_pid,omitempty"` // of the process that listens; of a front end, its child
	Binary    identity `json:"binary,omitzero"`      // the program that really serves: of a program that is started by a loader or a front end, what it has mapped; the digest is of those bytes, "" if they could not be read
	Foreign   []string `json:"foreign,omitempty"`    // libraries that it has mapped from outside of the package
}

// loadRecord is the state of the host right before the first request.
type loadRecord struct {
	GTTUsedGiB      *float64   `json:"gtt_used_gib"` // nil: no sensor
	MemAvailableGiB *float64   `json:"mem_available_gib"`
	KernelLog       string     `json:"kernel_log"`          // "": it is followed; else why it is not
	Residents       []Resident `json:"residents,omitempty"` // other programs that have a GPU open; never touched
}

// A Resident is a program of somebody else's that uses a GPU.
type Resident struct {
	PID     int     `json:"pid"`
	Command string  `json:"command"`
	MiB     float64 `json:"mib"` // of GPU memory; 0: not told
}

type findingRecord struct {
	detect.Finding
	Request *int `json:"request,omitempty"`
	Slot    *int `json:"slot,omitempty"`
}

type kernelRecord struct {
	gpu.Event
	Ours string `json:"ours"` // "process": ours by pid; "device": a device that ours uses, no process named; "": somebody else's
}

// watchdogRecord: Reason is one of mem-available, temperature, gtt-growth, life,
// and of those that no plan turns off: runner-paused (seconds),
// server-log-unread, server-log and disk-free (GiB).
type watchdogRecord struct {
	Reason string  `json:"reason"`
	Value  float64 `json:"value"`
	Limit  float64 `json:"limit"`
}

// sentinelRecord is one answer on the quiet server. Pass 1 is the reference, 2
// the sequential control, 3 was asked for after the load.
type sentinelRecord struct {
	Sentinel int             `json:"sentinel"` // index of its length
	Pass     int             `json:"pass"`
	Prompt   string          `json:"prompt_sha256"`
	Text     string          `json:"text"`
	IDs      []int           `json:"ids,omitempty"` // of all tokens, where the API tells them by themselves
	Tokens   []sentinelToken `json:"tokens"`        // those that have a log-probability
}

type sentinelToken struct {
	ID      int      `json:"id"`              // -1: not told
	Bytes   []byte   `json:"bytes,omitempty"` // of a token without id
	Logprob *float64 `json:"logprob"`         // null: not finite
	Gap     *float64 `json:"gap"`             // between the two likeliest tokens; null: not told
}

// Outcomes of a request.
const (
	outcomeAnswered = "answered"
	outcomeDeadline = "deadline"  // nothing within the request's deadline
	outcomeNoAnswer = "no-answer" // the connection failed
	outcomeCensored = "censored"  // the runner gave up first
)

// Kinds of request.
const (
	kindUnique   = ""         // a prompt of its own
	kindSentinel = "sentinel" // a fixed one, whose answer is known
)

type requestRecord struct {
	ID           int              `json:"id"` // from 0
	Worker       int              `json:"worker,omitempty"`
	Nonce        string           `json:"nonce"`
	PromptTarget int              `json:"prompt_target"`
	PromptTokens int              `json:"prompt_tokens"`
	NPredict     int              `json:"n_predict"`
	ProbsAsked   bool             `json:"probs_asked,omitempty"`
	IntendedUS   int64            `json:"intended_us"` // since the load began, as the others
	StartUS      int64            `json:"start_us"`
	EndUS        int64            `json:"end_us"`
	Outcome      string           `json:"outcome"`
	Status       int              `json:"status,omitempty"`
	Slot         int              `json:"slot"` // -1: unknown
	Predicted    int              `json:"predicted,omitempty"`
	Observed     int              `json:"observed,omitempty"` // tokens with a log-probability
	Bytes        int              `json:"bytes,omitempty"`
	SHA256       string           `json:"sha256,omitempty"`
	Kind         string           `json:"kind,omitempty"`
	Sentinel     int              `json:"sentinel,omitempty"` // of kindSentinel: index of its length
	Number       int              `json:"number"`             // of the prompt, through all lives of the arm
	FirstUS      int64            `json:"first_us,omitempty"` // first token of a stream, since the load began
	Findings     []detect.Finding `json:"findings,omitempty"`
	Error        string           `json:"error,omitempty"`

	Chars   int   `json:"chars,omitempty"`    // bytes of the answer's text
	TextSum int64 `json:"text_sum,omitempty"` // the first 48 bits of that text's SHA-256; 0: not told
}

// logRecord is the first line of its kind in a life.
type logRecord struct {
	Kind     engine.LogKind   `json:"kind"`
	NaN      *engine.NaNGuard `json:"nan,omitempty"`
	NaNAbort bool             `json:"nan_abort,omitempty"`
	Line     string           `json:"line"`
}

type exitRecord struct {
	Code      int    `json:"code"`
	Signal    int    `json:"signal"` // 0: it exited
	Text      string `json:"text"`
	OOMKilled bool   `json:"oom_killed"`          // the kernel killed something for memory just before
	KilledBy  string `json:"killed_by,omitempty"` // proof that this very server was killed for memory, in the words of who did it
}

type neighbourRecord struct {
	Kind    string `json:"kind,omitempty"`
	Run     int    `json:"run"` // from 1
	StartUS int64  `json:"start_us"`
	EndUS   int64  `json:"end_us"`
	Exit    string `json:"exit"` // "ok", "stopped" by the runner, or how it failed
	Results int    `json:"results"`
	Tokens  int64  `json:"tokens"`

	Units    int64    `json:"units"`              // of proven work, in the kind's own unit
	Unit     string   `json:"unit,omitempty"`     // tokens, requests, tests, MiB written, lines, runs
	Findings []string `json:"findings,omitempty"` // what went wrong in it; never the candidate's
}

type probeRecord struct {
	Face   string `json:"face,omitempty"` // "": sound and equal
	Detail string `json:"detail,omitempty"`
}

type endRecord struct {
	Why             string                 `json:"why"` // one of the why… constants
	Detail          string                 `json:"detail,omitempty"`
	LoadFromUS      int64                  `json:"load_from_us"`
	LoadUS          int64                  `json:"load_us"`
	Shape           shape                  `json:"shape"`
	LogLines        map[engine.LogKind]int `json:"log_lines"`
	ServerLogSHA256 string                 `json:"server_log_sha256"`
	SamplesSHA256   string                 `json:"samples_sha256,omitempty"` // of samples.jsonl
	AnswersSHA256   string                 `json:"answers_sha256,omitempty"` // of answers.zst
	Teardown        string                 `json:"teardown"`                 // "" or what is left
	Escaped         []string               `json:"escaped,omitempty"`        // processes that had left their group, and were ended
	Tasks           []SlotTask             `json:"tasks,omitempty"`          // of a life that ended with a fault
	Neighbour       *neighbourSummary      `json:"neighbour,omitempty"`
	Stopped         *stopRecord            `json:"stopped,omitempty"` // nil: the server had ended by itself, or never ran
	Changed         string                 `json:"changed,omitempty"` // a file that was no longer what the run began with once the life was over

	EvictedMS       *int64   `json:"evicted_ms"` // of the server's queues during the load; nil: no sensor
	PeakGTTGiB      *float64 `json:"peak_gtt_gib"`
	MinMemGiB       *float64 `json:"min_mem_available_gib"`
	MaxTempC        *float64 `json:"max_temp_c"`
	GTTAfterGiB     *float64 `json:"gtt_after_gib"`          // once everything of ours had ended
	ServerMiB       *float64 `json:"server_mib"`             // anonymous and swapped memory at the end of the load
	ServerMiBPerReq *float64 `json:"server_mib_per_request"` // slope after the warm-up
}

// stopRecord says how the server ended when it was told to.
type stopRecord struct {
	GraceMS int64  `json:"grace_ms"` // that it was given; 0: killed at once
	TookMS  int64  `json:"took_ms"`
	Status  string `json:"status"`
	Signal  int    `json:"signal,omitempty"` // 0: it exited
	Killed  bool   `json:"killed,omitempty"` // for it, or what it had started, had not ended within the grace
}

// Why a server life ended.
const (
	whyDone        = "done"        // the load is complete
	whyFault       = "fault"       // the first fault, or the server's own end
	whyPlan        = "plan"        // the load does not fit the server; Detail says how
	whyRegime      = "regime"      // the condition to be tested is not met; Detail says how
	whyWatchdog    = "watchdog"    // a watchdog, whose record says which
	whyTeardown    = "teardown"    // what the life before used was not given back; Detail says what
	whyInvalid     = "invalid"     // a finding tells of a cause outside of the engine
	whyChanged     = "changed"     // what is tested is no longer what the run began with; Detail says what
	whySensor      = "sensor"      // a sensor that the plan needs tells nothing any more; Detail says which
	whyInterrupted = "interrupted" // the runner was told to stop, or could not go on; Detail says why
)

// How a run of the neighbour ended, if not by failing.
const (
	exitOK      = "ok"
	exitStopped = "stopped" // by the runner, at the end of the load
)

// neighbourSummary is what the neighbour did between the load's first moment and
// its last. Work counts when it is proven: what was done before and what was
// still under way is in no unit.
type neighbourSummary struct {
	Units   int64  `json:"units"`
	Unit    string `json:"unit,omitempty"`
	Runs    int    `json:"runs"`           // that proved work
	Failed  int    `json:"failed"`         // that failed
	Died    string `json:"died,omitempty"` // why it was given up
	AliveUS int64  `json:"alive_us"`
}

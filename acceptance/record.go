package acceptance

import "github.com/1bit-systems/pkg/engine"

// Kinds of record in the ledger, in the order in which they come.
const (
	recordOpen      = "open"      // openRecord: what is tested
	recordHost      = "host"      // hostRecord: before and after
	recordStart     = "start"     // startRecord: a server life begins
	recordStartup   = "startup"   // startupRecord: the server is ready, or never was
	recordLoad      = "load"      // loadRecord: the load begins
	recordRequest   = "request"   // requestRecord: one request has ended
	recordLog       = "log"       // logRecord: a telling line of the server log
	recordExit      = "exit"      // exitRecord: the server ended by itself
	recordNeighbour = "neighbour" // neighbourRecord: one run of the neighbour
	recordProbe     = "probe"     // probeRecord: identical requests after the load
	recordEnd       = "end"       // endRecord: the server life is over
	recordClose     = "close"     // closing
)

type openRecord struct {
	Schema         int    `json:"schema"`
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

type startRecord struct {
	Arm  int      `json:"arm"`  // from 1
	Args []string `json:"args"` // without host and port
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
	OOMKilled   bool     `json:"oom_killed,omitempty"`
	GTTUsedGiB  *float64 `json:"gtt_used_gib"` // before the start; nil: no sensor
}

type loadRecord struct {
	GTTUsedGiB *float64 `json:"gtt_used_gib"` // nil: no sensor
}

// Outcomes of a request.
const (
	outcomeAnswered = "answered"
	outcomeDeadline = "deadline"  // nothing within the request's deadline
	outcomeNoAnswer = "no-answer" // the connection failed
	outcomeCensored = "censored"  // the runner gave up first
)

type requestRecord struct {
	ID           int                  `json:"id"` // from 0
	Worker       int                  `json:"worker"`
	Nonce        string               `json:"nonce"`
	PromptTarget int                  `json:"prompt_target"`
	PromptTokens int                  `json:"prompt_tokens"`
	NPredict     int                  `json:"n_predict"`
	ProbsAsked   bool                 `json:"probs_asked"`
	IntendedUS   int64                `json:"intended_us"` // since the load began, as the others
	StartUS      int64                `json:"start_us"`
	EndUS        int64                `json:"end_us"`
	Outcome      string               `json:"outcome"`
	Status       int                  `json:"status"`
	Slot         int                  `json:"slot"` // -1: unknown
	Predicted    int                  `json:"predicted"`
	Observed     int                  `json:"observed"` // tokens with a log-probability
	Bytes        int                  `json:"bytes"`
	SHA256       string               `json:"sha256,omitempty"`
	Faces        []engine.AnswerFault `json:"faces,omitempty"`
	Warnings     []string             `json:"warnings,omitempty"`
	Error        string               `json:"error,omitempty"`
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
	OOMKilled bool   `json:"oom_killed"` // the kernel killed something for memory meanwhile
}

type neighbourRecord struct {
	Run     int    `json:"run"` // from 1
	StartUS int64  `json:"start_us"`
	EndUS   int64  `json:"end_us"`
	Exit    string `json:"exit"` // "ok", "stopped" by the runner, or how it failed
	Results int    `json:"results"`
	Tokens  int64  `json:"tokens"`
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
	Teardown        string                 `json:"teardown"` // "" or what is left
	Neighbour       *neighbourSummary      `json:"neighbour,omitempty"`
}

// Why a server life ended.
const (
	whyDone        = "done"        // the load is complete
	whyFault       = "fault"       // the first fault, or the server's own end
	whyPlan        = "plan"        // the load does not fit the server; Detail says how
	whyRegime      = "regime"      // the condition to be tested is not met; Detail says how
	whyInterrupted = "interrupted" // the runner was told to stop, or could not go on; Detail says why
)

// How a run of the neighbour ended, if not by failing.
const (
	exitOK      = "ok"
	exitStopped = "stopped" // by the runner, at the end of the load
)

type neighbourSummary struct {
	Died    string `json:"died,omitempty"` // why it was given up
	AliveUS int64  `json:"alive_us"`       // of the load
}

package incident

import (
	"math"
	"time"
)

// Schema is the version of a report's JSON.
const Schema = 1

// Report is what a person, or an issue, should know of one end of a service. It is a pure function of the Evidence.
// Its JSON keys are a promise.
type Report struct {
	Schema    int    `json:"schema"`
	Unit      string `json:"unit"`
	Event     string `json:"event"`     // names the event: the invocation that ended and when, the same however often it is reported
	Title     string `json:"title"`     // of an issue, one line
	Signature string `json:"signature"` // of this kind of end, to find others of the kind
	Summary   string `json:"summary"`   // one or two sentences

	Ending   *Ending   `json:"ending"` // null: it did not end badly in the window
	Restart  *Restart  `json:"restart"`
	Guard    []Guard   `json:"guard"`       // the engine's NaN guard, in order
	Abort    string    `json:"abort"`       // the line with which the engine gave up
	Errors   []string  `json:"last_errors"` // the run's last lines that say they are errors, where there is no abort
	Slots    []Slot    `json:"slots"`       // what each slot was doing at the end, by id
	Server   *Server   `json:"server"`
	Trace    []string  `json:"backtrace"` // functions, innermost first
	Lines    []LogLine `json:"lines"`     // of the journal around the end
	Complete bool      `json:"log_complete"`
	Gaps     []string  `json:"log_gaps"`            // why the log is incomplete
	Others   []Ending  `json:"other_endings"`       // the latest ones
	Known    int       `json:"other_endings_known"` // of which those are the latest

	Kernel []KernelLine `json:"kernel"`
	Shape  Shape        `json:"shape"` // to run it again

	Evidence *Evidence `json:"evidence"`
}

// Ending is how one run of a service ended.
type Ending struct {
	At         time.Time  `json:"at"`        // when it went wrong: the line of the abort, else when the main process ended
	Before     *time.Time `json:"before"`    // it is known only that it went wrong between At, its last sign of life, and then; null: At is when
	ExitedAt   *time.Time `json:"exited_at"` // systemd saw the main process end
	Code       string     `json:"code"`      // exited, killed or dumped
	Status     *int       `json:"status"`    // exit status
	Signal     string     `json:"signal"`    // such as SIGSEGV
	Result     string     `json:"result"`    // systemd's: exit-code, signal, core-dump, oom-kill, start-limit-hit, timeout, watchdog, …
	Cause      string     `json:"cause"`     // in words, with who did it where that is known: such as "the kernel's OOM killer (MemoryMax=64M)"
	StartedAt  *time.Time `json:"started_at"`
	UptimeS    *float64   `json:"uptime_seconds"`     // by the clock of the boot, which nobody sets and which stands still while the host sleeps
	LogUptimeS *float64   `json:"log_uptime_seconds"` // by the log's own clock
	CPUS       *float64   `json:"cpu_seconds"`
	Stopping   bool       `json:"stopping"` // a stop had been asked for
	Child      bool       `json:"child"`    // the server died, not the main process
	PID        int        `json:"pid"`      // whose log it is, or who dumped core: under a front end the server, not the main process
	Invocation string     `json:"invocation"`
}

// clockSet tells whether the times of the start and the end contradict the uptime.
func (e *Ending) clockSet() bool {
	return e.StartedAt != nil && e.UptimeS != nil && math.Abs(e.At.Sub(*e.StartedAt).Seconds()-*e.UptimeS) > 60
}

// Restart is what systemd did after the end.
type Restart struct {
	Counter     *int       `json:"counter"` // systemd's restart counter
	ScheduledAt *time.Time `json:"scheduled_at"`
	StartedAt   *time.Time `json:"started_at"`
	ReadyAt     *time.Time `json:"ready_at"` // it said that it takes requests
	GaveUp      string     `json:"gave_up"`  // such as "start limit hit", "" where it did not
	Host        *HostAt    `json:"host"`     // what the service itself logged of the host when it came back
}

// HostAt is memory as a log line told it. Null: not told.
type HostAt struct {
	At              time.Time `json:"at"`
	GTTFreeGiB      *float64  `json:"gtt_free_gib"`
	GTTTotalGiB     *float64  `json:"gtt_total_gib"`
	MemAvailableGiB *float64  `json:"mem_available_gib"`
}

// Guard is one line of the engine's NaN guard.
type Guard struct {
	At         time.Time `json:"at"`
	Generation int       `json:"generation"` // 1: the line names one index; 2: count and range
	Count      int       `json:"count"`
	Of         int       `json:"of"` // 0: not told
	First      int       `json:"first"`
	Last       int       `json:"last"`
	Contiguous bool      `json:"contiguous"`
	Continuing bool      `json:"continuing"`
	Whole      bool      `json:"whole_vocabulary"`
	Slot       *int      `json:"slot"` // that it certainly was on
	Task       *int      `json:"task"`
	Text       string    `json:"text"`
}

// Slot is what a slot did last before the end.
type Slot struct {
	ID           int        `json:"id"`
	Task         int        `json:"task"`
	State        string     `json:"state"`    // running, finished, never-used or unseen
	Selected     string     `json:"selected"` // lru, lcp, id or ""
	NeverUsed    bool       `json:"never_used"`
	Similarity   *float64   `json:"similarity"`
	SelectedAt   *time.Time `json:"selected_at"`
	LaunchedAt   *time.Time `json:"launched_at"`
	FinishedAt   *time.Time `json:"finished_at"`
	PromptTokens int        `json:"prompt_tokens"`
	Tokens       int        `json:"tokens"`  // generated
	Context      int        `json:"context"` // tokens on the slot
	GraphsReused *int       `json:"graphs_reused"`
	BeforeS      *float64   `json:"seconds_before"` // its end before the Ending's At
	Tasks        int        `json:"tasks"`          // that it had in this run
}

// Server is what the server said of itself when it started.
type Server struct {
	Slots     int      `json:"slots"`
	Context   int      `json:"context"` // tokens of one slot
	KVUnified bool     `json:"kv_unified"`
	Devices   []string `json:"devices"`
	Tasks     int      `json:"tasks"` // served in this run
}

// LogLine is one line of the journal.
type LogLine struct {
	At   time.Time `json:"at"`
	From string    `json:"from"` // SYSLOG_IDENTIFIER
	Text string    `json:"text"` // escaped where it is not UTF-8
	Key  bool      `json:"key"`  // one of those that tell the story
}

// KernelLine is something of the kernel's log in the window.
type KernelLine struct {
	At      time.Time `json:"at"`
	Whose   string    `json:"whose"` // ours, device (ours, nobody blamed), other
	Kind    string    `json:"kind"`
	Fault   bool      `json:"fault"` // of the GPU or of the process; else something to know
	Device  string    `json:"device"`
	Process string    `json:"process"`
	PID     int       `json:"pid"`
	Text    string    `json:"text"`
}

// Shape is what a run needs to be like this one.
type Shape struct {
	Entry        string            `json:"entry"` // of the package that is started: llama-server, or 1bit with serve
	Model        string            `json:"model"`
	Parallel     int               `json:"parallel"`
	Context      int               `json:"context"` // tokens of all slots
	KVUnified    bool              `json:"kv_unified"`
	Flags        []string          `json:"flags"` // for Entry, beside those above
	Env          map[string]string `json:"env"`
	PromptTokens []int             `json:"prompt_tokens"` // lengths seen, ascending, a few
	NPredict     []int             `json:"n_predict"`
	Neighbour    string            `json:"neighbour"` // none, bench, server, ops: the closest to what shared the GPU
	Why          string            `json:"neighbour_why"`
	UptimeS      float64           `json:"uptime_seconds"`
	TasksBefore  int               `json:"tasks_before"`
}

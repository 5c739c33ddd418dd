package incident

import (
	"encoding/json"
	"time"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/systemd"
)

// Evidence is what was gathered about one unit. It is kept as a folder, and a Report is made of it alone.
type Evidence struct {
	Unit       string        `json:"unit"`
	Scope      systemd.Scope `json:"scope"`
	Host       string        `json:"host"`
	Program    string        `json:"program"` // version of the program that gathered it
	GatheredAt time.Time     `json:"gathered_at"`
	Since      time.Time     `json:"since"`      // the journal was read from here
	NotBefore  time.Time     `json:"not_before"` // ends before it do not count; zero: all do
	Zone       string        `json:"zone"`       // IANA name of the host's time zone, "" where it is not told
	Ended      *time.Time    `json:"ended"`      // systemd's last word of a bad end: what else was gathered is about it; null: there was none
	From       time.Time     `json:"from"`       // of the window that claims, CI runs and the kernel's lines are of
	To         time.Time     `json:"to"`

	State    UnitState     `json:"state"`
	Files    []UnitFile    `json:"files"`   // the unit's file, then its drop-ins as they are merged
	Command  []string      `json:"command"` // that the next start runs, secrets masked
	Settings []UnitSetting `json:"settings"`
	Package  *Package      `json:"package"` // that the service ran from when it ended
	How      string        `json:"how"`     // it is known which package that was: live, history, armed, log
	Newer    []Package     `json:"newer"`   // installed ones that are newer

	HostNow   HostState      `json:"host_now"`
	Processes []gpu.Process  `json:"gpu_processes"` // that have a GPU open now and are none of the unit's
	Devices   []gpu.Device   `json:"gpu_devices"`
	Claims    []claim.Record `json:"claims"` // that overlap the window
	Runs      []Run          `json:"ci_runs"`
	Earlier   []Earlier      `json:"earlier"` // incidents of this unit or package family on this host
	Missing   []string       `json:"missing"` // what could not be gathered, and why
	Gaps      []string       `json:"gaps"`    // what of the unit's log is lost, and why
	Kept      []Span         `json:"kept"`    // when all of the unit's log is in Entries; of the rest only what systemd tells of it

	// Entries are the journal's of the unit, and of systemd about it, in order; Kernel what the kernel's log says of
	// GPUs and of the OOM killer. They have files of their own in the folder.
	Entries []systemd.Entry `json:"-"`
	Kernels []systemd.Entry `json:"-"` // that Kernel and OOM were made of
	Kernel  []gpu.Event     `json:"kernel"`
	OOM     []OOMKill       `json:"oom"` // processes that the kernel killed for memory in the window, whoever's

	Lost   []Lost `json:"lost,omitempty"`         // servers that a watch saw vanish under the front end that had started them
	Ends   int    `json:"watched_ends,omitempty"` // that a watch counted and the report is of
	Unread error  `json:"-"`                      // of a journal that is there and could not be read; nil: it could be

	Actions  []json.RawMessage `json:"-"` // Runs as GitHub told them
	Manifest []byte            `json:"-"` // of Package
}

// Span is a part of the time.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// OOMKill is a process that the kernel killed for want of memory.
type OOMKill struct {
	At      time.Time `json:"at"`
	PID     int       `json:"pid"`
	Process string    `json:"process"` // its name, which the kernel cuts at 15 bytes
	Group   string    `json:"group"`   // the control group whose limit was met, "" where the host had no more
	Task    string    `json:"task"`    // the control group of the process
	Text    string    `json:"text"`
}

// UnitState is what the manager said of the unit when the evidence was gathered.
type UnitState struct {
	Load         string     `json:"load"`
	Active       string     `json:"active"`
	Sub          string     `json:"sub"`
	Result       string     `json:"result"`
	Type         string     `json:"type"`
	Restart      string     `json:"restart"`
	Restarts     int        `json:"restarts"` // automatic ones, NRestarts
	Invocation   string     `json:"invocation"`
	MainPID      int        `json:"main_pid"`
	MainStarted  *time.Time `json:"main_started"`
	MainExited   *time.Time `json:"main_exited"`
	MainCode     int        `json:"main_code"` // SIGCHLD's si_code: 1 exited, 2 killed, 3 dumped
	MainStatus   int        `json:"main_status"`
	MemoryMax    *int64     `json:"memory_max"`    // bytes; null: no limit
	MemoryPeak   *int64     `json:"memory_peak"`   // bytes; null: not told
	ControlGroup string     `json:"control_group"` // such as /user.slice/…
}

// UnitFile is one file of the unit, with secrets masked.
type UnitFile struct {
	Path   string `json:"path"`
	Text   string `json:"text"`
	Masked int    `json:"masked"` // values that are not shown
	Ours   bool   `json:"ours"`   // zz-1bit.conf
}

// UnitSetting is one variable that the next process gets from the unit's files, and which file sets it.
type UnitSetting struct {
	Key   string `json:"key"`
	Value string `json:"value"` // "(masked)" where it looks like a secret
	File  string `json:"file"`
	Line  int    `json:"line"`
}

// Package is an installed package, as far as a report needs it.
type Package struct {
	Name        string            `json:"name"`
	ID          string            `json:"id"`
	Version     string            `json:"version"`
	Digest      string            `json:"digest"`
	Path        string            `json:"path"`
	Pins        map[string]string `json:"pins"` // component to commit
	Carried     []string          `json:"carried"`
	Missing     []string          `json:"missing"`
	Unknown     []string          `json:"unknown"`
	InstalledAt time.Time         `json:"installed_at"`
	Gained      []string          `json:"gained,omitempty"` // of a newer one: fixes that it carries and the service's does not
}

// HostState is the host at one moment.
type HostState struct {
	At           time.Time         `json:"at"`
	Kernel       string            `json:"kernel"`
	Command      string            `json:"kernel_command_line"`
	Parameters   map[string]string `json:"kernel_parameters"` // such as amdgpu.cwsr_enable
	Boot         time.Time         `json:"boot"`
	MemAvailable *float64          `json:"mem_available_gib"`
	MemTotal     *float64          `json:"mem_total_gib"`
	GTTUsed      *float64          `json:"gtt_used_gib"`
	GTTTotal     *float64          `json:"gtt_total_gib"`
	Load         string            `json:"load_average"`
}

// Run is one run of a continuous integration that overlapped the window.
type Run struct {
	ID         int64     `json:"id"`
	Workflow   string    `json:"workflow"` // file name of the workflow
	Name       string    `json:"name"`
	Head       string    `json:"head"` // commit
	Title      string    `json:"title"`
	Status     string    `json:"status"` // queued, in_progress, completed
	Conclusion string    `json:"conclusion"`
	URL        string    `json:"url"`
	Created    time.Time `json:"created_at"`
	Updated    time.Time `json:"updated_at"`
	Started    time.Time `json:"run_started_at"` // of its last attempt, which is after Created where it was run again
	Attempt    int       `json:"run_attempt"`
}

// Earlier is an incident that was written down before.
type Earlier struct {
	At        time.Time `json:"at"`
	Unit      string    `json:"unit"`
	Package   string    `json:"package"`
	Signature string    `json:"signature"`
	Folder    string    `json:"folder"`
	Event     string    `json:"event"`           // Report.Event
	Again     int       `json:"again,omitempty"` // further reports of the same end
}

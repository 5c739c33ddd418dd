package fleet

import (
	"encoding/json"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// Service is one unit as status shows it. Its JSON keys are a promise.
type Service struct {
	Unit           string        `json:"unit"`
	Scope          systemd.Scope `json:"scope"`
	User           string        `json:"user"` // whose manager, where it is not the caller's own or the machine's
	Binding        []Setting     `json:"binding"`
	Proposed       *Proposal     `json:"proposed"`
	Armed          *Armed        `json:"armed"`   // what the manager has loaded
	OnDisk         *Armed        `json:"on_disk"` // what the files say, where that differs from Armed
	Live           *Live         `json:"live"`    // what the processes run from; null when there are none
	ServedBefore   *Served       `json:"served_before"`
	RestartPending bool          `json:"restart_pending"`
	OverriddenBy   *Place        `json:"overridden_by"` // what wins over our drop-in
	Shadowed       []Place       `json:"shadowed"`      // what our drop-in wins over
	Held           *Hold         `json:"held"`
	Blocked        []Refused     `json:"blocked"`
	Restarts       int           `json:"restarts"` // automatic ones, counted by systemd
	Health         string        `json:"health"`
	Warnings       []string      `json:"warnings"`

	State      string `json:"state"`       // systemd's ActiveState and SubState, as "active (running)"
	RolledBack string `json:"rolled_back"` // the package that the last act rolled back from, else ""

	Adopted []AdoptedLine `json:"adopted"` // the lines of the unit's own files that adopt took over

	findings []Finding // what Warnings are the texts of
}

// Setting is one part of a binding: a variable, or a word of ExecStart or WorkingDirectory, that points into a package.
type Setting struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	File    string `json:"file"` // where it is set, "" where that is not certain
	Line    int    `json:"line"`
	Of      string `json:"of"` // whose the file is where it is not the unit's alone, such as "template llm@.service"
}

// Proposal is a switch that somebody suggests.
type Proposal struct {
	Package string    `json:"package"`
	By      string    `json:"by"` // as claimed: nothing proves it
	At      time.Time `json:"at"`
	Digest  string    `json:"digest"`
	Reason  string    `json:"reason"`
}

// Armed is a package that the next start uses.
type Armed struct {
	Package string `json:"package"`
	Digest  string `json:"digest"`
	Path    string `json:"path"`
}

// Live is what runs: the unit's main process, and the server that it started, if that is another process.
type Live struct {
	Main       *Process `json:"main"`
	Child      *Process `json:"child"`
	Unreadable bool     `json:"unreadable"` // a process of another user, whose package cannot be told

	others []*Process // more that run from another package than the child
}

// Process is one process and the package that it runs from, "" where it runs from none.
type Process struct {
	Package string    `json:"package"`
	Path    string    `json:"path"` // of the package, or of an engine's program that lies in none
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`

	digest   string // of the package, where it is known
	deleted  bool   // its files are no longer there
	replaced bool   // the package is there, and the program that it runs no longer is
	proved   bool   // by what it is, not only by what it was started with
	outside  bool   // it is an engine's program that lies in no package
}

// Served names the package that a rollback goes to.
type Served struct {
	Package string `json:"package"`
}

// Place is one line that sets a variable of the binding.
type Place struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Value   string `json:"value"`
	Setting string `json:"setting"` // the variable
	Of      string `json:"of"`      // as in Setting
}

// Hold keeps a service where it is.
type Hold struct {
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until"` // null: until somebody lifts it
	By     string     `json:"by"`
	At     time.Time  `json:"at"`
}

// AdoptedLine is a line that adopt took over, as it was then.
type AdoptedLine struct {
	File string `json:"file"`
	Line int    `json:"line"`
}

// Refused is a package that the service must not be switched to.
type Refused struct {
	Package string `json:"package"`
	Reason  string `json:"reason"`
}

// The values of Service.Health.
const (
	HealthOK      = "ok"
	HealthLoading = "loading"
	HealthBusy    = "busy"
	HealthFailing = "failing"
	HealthUnknown = "unknown"
)

// Outcome is what a switch, a restart or a rollback did, and the service as it is afterwards.
type Outcome struct {
	Service
	From      string `json:"from"` // the package that was armed before, "" for none
	To        string `json:"to"`   // the package that is armed now, or would be
	Restarted bool   `json:"restarted"`
	Returned  bool   `json:"returned"`  // the new package failed and the one before serves again
	Unchecked string `json:"unchecked"` // why the answers of the restarted server could not be checked, else ""
	TookMS    int64  `json:"took_ms"`

	Changed bool     `json:"changed"` // false: it was so already, or a dry run
	DryRun  bool     `json:"dry_run"`
	Loaded  bool     `json:"loaded"` // false: written, and no manager was there to load it
	Notes   []string `json:"notes"`  // what people should know of this act
}

// MarshalJSON keeps the lists of a service from being null.
func (s Service) MarshalJSON() ([]byte, error) {
	type plain Service
	return json.Marshal(plain(s.withLists()))
}

// MarshalJSON writes the service's keys and the outcome's own into one object.
func (o Outcome) MarshalJSON() ([]byte, error) {
	type service Service
	type own struct {
		service
		From      string   `json:"from"`
		To        string   `json:"to"`
		Restarted bool     `json:"restarted"`
		Returned  bool     `json:"returned"`
		Unchecked string   `json:"unchecked"`
		TookMS    int64    `json:"took_ms"`
		Changed   bool     `json:"changed"`
		DryRun    bool     `json:"dry_run"`
		Loaded    bool     `json:"loaded"`
		Notes     []string `json:"notes"`
	}
	notes := o.Notes
	if notes == nil {
		notes = []string{}
	}
	return json.Marshal(own{service(o.Service.withLists()), o.From, o.To, o.Restarted, o.Returned, o.Unchecked, o.TookMS, o.Changed, o.DryRun, o.Loaded, notes})
}

func (s Service) withLists() Service {
	if s.Binding == nil {
		s.Binding = []Setting{}
	}
	if s.Shadowed == nil {
		s.Shadowed = []Place{}
	}
	if s.Blocked == nil {
		s.Blocked = []Refused{}
	}
	if s.Adopted == nil {
		s.Adopted = []AdoptedLine{}
	}
	if s.Warnings == nil {
		s.Warnings = []string{}
	}
	return s
}

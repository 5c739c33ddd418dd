// Package claim gives one piece of work at a time exclusive use of a GPU.
package claim

import "time"

// Record is one claim: what the text in the lock file and the history say of it.
type Record struct {
	Label   string     `json:"label"`
	User    string     `json:"user"`
	PID     int        `json:"pid"`
	Command string     `json:"command"` // without secrets
	Since   time.Time  `json:"since"`
	Until   time.Time  `json:"until"`           // when its time is over
	Ended   *time.Time `json:"ended,omitempty"` // nil: it goes on, or its end was not written down
	How     string     `json:"how,omitempty"`   // it ended: "exit status 0", "time limit", "memory floor", …
}

package neighbour

import (
	"context"

	"github.com/1bit-systems/pkg/engine"
)

// Options say how to run a neighbour.
type Options struct {
	Spec
	Programs map[string]string // by name: llama-bench, llama-server, test-backend-ops; those that the kind needs
	Model    string            // Bench, Server: path
	Env      []string          // KEY=value, all that the programs get, Spec.Env included
	Dir      string            // folder of its own for logs

	Start  func(context.Context, engine.ProcessOptions) (*engine.Process, error) // nil: engine.StartProcess
	Now    func() int64                                                          // µs since the load's clock began
	Record func(Run)                                                             // called once a run, one at a time
}

// A Run is one start of the program.
type Run struct {
	Kind     string   `json:"kind"`
	Run      int      `json:"run"` // from 1
	StartUS  int64    `json:"start_us"`
	EndUS    int64    `json:"end_us"`
	Exit     string   `json:"exit"`  // ExitOK, ExitStopped, or how it failed
	Units    int64    `json:"units"` // of proven work
	Unit     string   `json:"unit"`
	Findings []string `json:"findings,omitempty"` // what went wrong in it, never the candidate's
}

// Ends of a run that are no failure.
const (
	ExitOK      = "ok"
	ExitStopped = "stopped" // by us
)

// A Summary is what a neighbour did during a load.
type Summary struct {
	Kind    string `json:"kind"`
	Unit    string `json:"unit"`
	Runs    int    `json:"runs"`  // that did work during the load
	Units   int64  `json:"units"` // of proven work of those runs
	Failed  int    `json:"failed"`
	Died    string `json:"died,omitempty"` // why it was given up
	AliveUS int64  `json:"alive_us"`       // of the load
}

// A Neighbour runs one job over and over.
type Neighbour struct{}

// New refuses what the host or the package lacks, and says what.
func New(o Options) (*Neighbour, error) { return &Neighbour{}, nil }

// Loop works until ctx ends or the neighbour is given up. It returns only the trouble of ending its processes.
func (n *Neighbour) Loop(ctx context.Context) error { return nil }

// Worked is closed at the first unit of proven work.
func (n *Neighbour) Worked() <-chan struct{} { return nil }

// Died is closed when the neighbour is given up.
func (n *Neighbour) Died() <-chan struct{} { return nil }

// Summary says what it did between two moments of the clock.
func (n *Neighbour) Summary(from, to int64) Summary { return Summary{} }

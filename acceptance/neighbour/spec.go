// Package neighbour runs the other job on the device beside a server under test, over and over, and proves that it
// worked. A neighbour is an exposure and not a subject: what goes wrong in it is told in a table of its own and never
// counted as a fault of the candidate.
//
// Nouns:
//
//   - Spec says which job, Options what it needs here, Neighbour is the job.
//   - A Run is one start of its program: how it ended, what it proved, its findings. A run that proves nothing has
//     failed, however well it ended; after three failures in a row the neighbour is given up.
//   - A unit is what proves work: tokens that llama-bench measured, answered requests of a second server, tests of
//     test-backend-ops that passed, MiB that were written and are resident, lines that match or clean runs of a command.
//   - A Summary says what was proven between two moments. It counts what goes on as well as what has ended, so a gate
//     asks it and not the runs: a second server is one run from the beginning to the end.
//
// It is used so:
//
//	n, err := neighbour.New(options)    refuses what the host or the package lacks: no evidence, not a fault
//	go n.Loop(ctx)                      until ctx ends
//	<-n.Worked()                        the load may begin; or <-n.Died(), or the plan's lead is over
//	n.Summary(loadFrom, loadTo)         Units and Runs for the gates, Findings for the neighbour's own table
//
// Every program runs in a process group of its own, or wherever Options.Start puts it, and is gone when Loop returns.
package neighbour

// Kinds of neighbour.
const (
	Bench   = "bench"   // llama-bench in a loop: many graphs and allocations
	Server  = "server"  // a second llama-server under a load of its own: one graph, reused
	Ops     = "ops"     // test-backend-ops sweeps: every kernel of the backend
	Memory  = "memory"  // memory that is taken, written, and given back
	Command = "command" // any program
	None    = "none"    // no neighbour: a control
)

// A Spec says which job runs beside the server. The zero value of a field means the default named here.
type Spec struct {
	Kind    string            `yaml:"kind" json:"kind"`       // default Bench
	Model   string            `yaml:"model" json:"model"`     // Bench, Server; default: the plan's model
	Args    []string          `yaml:"args" json:"args"`       // of the program; Command: the whole command line
	Env     map[string]string `yaml:"env" json:"env"`         // more variables
	GiB     float64           `yaml:"gib" json:"gib"`         // Memory: how much is held; default 1
	Workers int               `yaml:"workers" json:"workers"` // Server: requests in flight; default 2
	Proof   string            `yaml:"proof" json:"proof"`     // Command: a regular expression; each line of its output that matches is one unit of work. Default: each run that exits with 0 is one
}

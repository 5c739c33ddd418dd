package claim

import (
	"context"
	"os"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
)

// Options say what is run under a claim.
type Options struct {
	Lock     Lock
	Label    string
	Limit    time.Duration // of the command's time, from its start
	FloorGiB float64       // of MemAvailable, before the start and while it runs; 0: none
	Wait     time.Duration // how long to wait for the lock; 0: as long as it takes; below 0: not at all

	Program               string
	Args, Env             []string // Env is the whole environment
	Dir                   string
	Stdin, Stdout, Stderr *os.File                               // handed on as they are; nil: /dev/null
	Cage                  func(pids ...int) (engine.Cage, error) // nil: none
	Guard                 []string                               // program and first arguments that run Guard

	Sensors gpu.Sensors
	User    string
	History string // path of claims.jsonl; "": none is written
	Now     func() time.Time
	Signals <-chan os.Signal  // for the command; the second one kills it
	Say     func(text string) // what is waited for, in one line; may be nil
	Note    func(text string) // what a reader should know, once each; may be nil
}

// Result is how a claim went.
type Result struct {
	Record Record
}

// Run waits for the lock, runs a command under it and lets it go when nothing of the command is left.
func Run(ctx context.Context, o Options) (Result, error) { return Result{}, nil }

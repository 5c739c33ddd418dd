package neighbour

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// Options say how to run a neighbour.
type Options struct {
	Spec
	Programs map[string]string // paths by name: llama-bench, llama-server, test-backend-ops; those that the kind needs
	Model    string            // Bench, Server: path
	Env      []string          // KEY=value, all that the programs get, Spec.Env included
	Dir      string            // folder of its own for its files, see File

	// Start starts a program in whatever the caller keeps the neighbour in. It ends with Process.Stop as always. nil:
	// engine.StartProcess.
	Start  func(context.Context, engine.ProcessOptions) (*engine.Process, error)
	Now    func() int64 // µs since the load's clock began
	Record func(Run)    // called once a run, when it has ended, one at a time; nil: nobody is told
}

// Files in Options.Dir, each appended to by one run after the other.
const (
	FileLog  = "neighbour.log"   // standard error
	FileRows = "neighbour.jsonl" // standard output of llama-bench: its results
	FileOut  = "neighbour.out"   // standard output of others
)

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

const (
	maxFailures  = 3 // in a row, then it is given up
	failurePause = time.Second
	shortestRun  = 100 * time.Millisecond // from one start to the next
	look         = 100 * time.Millisecond // between two looks at a run's proof
	maxFindings  = 20                     // of one run
)

// A Neighbour runs one job over and over.
type Neighbour struct {
	options Options
	begin   func(ctx context.Context, o *Options, run int) (job, error)
	unit    string

	worked, died chan struct{}

	mu    sync.Mutex
	why   string
	since int64   // start of the run that goes on, -1: none
	done  int64   // units of the runs that have ended
	steps []step  // every growth of the units
	ended []ended // runs
}

// A step says that so many units had been proven at a moment, the last of them by this run.
type step struct {
	us, units int64
	run       int
}

type ended struct {
	from, to int64
	failed   bool
	findings []string
}

// A job is one run of a kind: what to start, and how its work is proven.
type job interface {
	process() engine.ProcessOptions
	// beside works along with the process until ctx ends or the process does. It may stop the process.
	beside(ctx context.Context, p *engine.Process)
	// proof gives the units of work that are proven so far, which only grow, and whether the job is under way as it
	// is meant to be. It is asked from time to time, and before and after the verdict.
	proof() (units int64, working bool)
	// verdict is asked when the process has ended. exit is how it ended by itself, ExitOK if it did well, or
	// ExitStopped; the job may know better.
	verdict(exit string) (string, []string)
}

// New refuses what the host or the package lacks, and says what. It starts nothing.
func New(o Options) (*Neighbour, error) {
	if o.Start == nil {
		o.Start = engine.StartProcess
	}
	if o.Record == nil {
		o.Record = func(Run) {}
	}
	n := &Neighbour{options: o, worked: make(chan struct{}), died: make(chan struct{}), since: -1}
	var err error
	switch o.Kind {
	case Bench, "":
		n.options.Kind, n.unit, n.begin = Bench, "tokens", beginBench
		err = o.need("llama-bench", true)
	case Server:
		n.unit, n.begin = "requests", beginServer
		err = o.need("llama-server", true)
	case Ops:
		n.unit, n.begin = "tests", beginOps
		err = o.need("test-backend-ops", false)
	case Memory:
		n.unit, n.begin = "MiB written", beginMemory
		err = o.checkMemory()
	case Command:
		n.unit, err = o.checkCommand()
		n.begin = beginCommand
	default:
		err = fmt.Errorf("kind %q is none of bench, server, ops, memory and command", o.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the neighbour: %w", err)
	}
	return n, nil
}

func (o *Options) need(program string, model bool) error {
	if o.Programs[program] == "" {
		return fmt.Errorf("the package has no %s", program)
	}
	if model && o.Model == "" {
		return fmt.Errorf("%s needs a model", program)
	}
	return nil
}

func (o *Options) file(name string) string { return filepath.Join(o.Dir, name) }

// Loop works until ctx ends or the neighbour is given up. It returns only the trouble of ending its processes.
func (n *Neighbour) Loop(ctx context.Context) error {
	failures := 0
	for i := 1; ctx.Err() == nil; i++ {
		began := time.NewTimer(shortestRun)
		r, err := n.once(ctx, i)
		n.options.Record(r)
		if err != nil {
			return fmt.Errorf("end run %d of the neighbour: %w", i, err)
		}
		if !r.failed() {
			failures = 0
			wait(ctx, began)
			continue
		}
		if failures++; failures == maxFailures {
			n.giveUp(fmt.Sprintf("it failed %d times in a row, at last with %s and %d %s", failures, r.Exit, r.Units, r.Unit))
			return nil
		}
		wait(ctx, time.NewTimer(failurePause))
	}
	return nil
}

// failed tells whether a run did not do what it is for.
func (r Run) failed() bool { return r.Exit != ExitStopped && (r.Exit != ExitOK || r.Units <= 0) }

func wait(ctx context.Context, t *time.Timer) {
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (n *Neighbour) giveUp(why string) {
	n.mu.Lock()
	n.why = why
	n.mu.Unlock()
	close(n.died)
}

// once starts the program once and looks after it to its end. The error is one of ending it.
func (n *Neighbour) once(ctx context.Context, i int) (Run, error) {
	r := Run{Kind: n.options.Kind, Run: i, StartUS: n.options.Now(), Unit: n.unit}
	n.mu.Lock()
	n.since = r.StartUS
	n.mu.Unlock()
	err := n.attempt(ctx, &r)
	if len(r.Findings) > maxFindings {
		r.Findings = append(r.Findings[:maxFindings:maxFindings], fmt.Sprintf("and %d more", len(r.Findings)-maxFindings))
	}
	r.EndUS = n.options.Now()
	n.mu.Lock()
	n.since, n.done = -1, n.done+r.Units
	n.ended = append(n.ended, ended{r.StartUS, r.EndUS, r.failed(), r.Findings})
	n.mu.Unlock()
	return r, err
}

func (n *Neighbour) attempt(ctx context.Context, r *Run) error {
	j, err := n.begin(ctx, &n.options, r.Run)
	var p *engine.Process
	if err == nil {
		p, err = n.options.Start(ctx, j.process())
	}
	if err != nil {
		r.Exit = ExitStopped
		if ctx.Err() == nil {
			r.Exit, r.Findings = err.Error(), []string{err.Error()}
		}
		return nil
	}
	stopped := n.attend(ctx, j, p, r)
	err = p.Stop(context.WithoutCancel(ctx), 0) // also what it may have left behind
	status, _ := p.Wait(context.WithoutCancel(ctx))
	n.prove(j, r)
	switch {
	case stopped:
		r.Exit = ExitStopped
	case status == engine.ExitStatus{}:
		r.Exit = ExitOK
	default:
		r.Exit = status.String()
	}
	r.Exit, r.Findings = j.verdict(r.Exit)
	n.prove(j, r)
	return err
}

// attend looks at a running job until it ends or ctx does, which it tells.
func (n *Neighbour) attend(ctx context.Context, j job, p *engine.Process, r *Run) (stopped bool) {
	beside, leave := context.WithCancel(ctx)
	var helper sync.WaitGroup
	helper.Go(func() { j.beside(beside, p) })
	defer helper.Wait()
	defer leave()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			select {
			case <-p.Exited(): // it ended before
				return false
			default:
				return true
			}
		case <-p.Exited():
			return false
		case <-tick.C:
			n.prove(j, r)
		}
	}
}

// prove takes note of what the job has done so far.
func (n *Neighbour) prove(j job, r *Run) {
	units, working := j.proof()
	n.mu.Lock()
	defer n.mu.Unlock()
	if units > r.Units {
		r.Units = units
		n.steps = append(n.steps, step{n.options.Now(), n.done + units, r.Run})
	}
	if working && units > 0 {
		select {
		case <-n.worked:
		default:
			close(n.worked)
		}
	}
}

// Worked is closed when the neighbour has proven its first work and is as busy as it is meant to be: a load that needs
// it begins then.
func (n *Neighbour) Worked() <-chan struct{} { return n.worked }

// Died is closed when the neighbour is given up.
func (n *Neighbour) Died() <-chan struct{} { return n.died }

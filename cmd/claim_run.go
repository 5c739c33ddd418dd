package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/internal/ui"
	"github.com/1bit-systems/pkg/systemd"
)

type claimRunOptions struct {
	label   string
	limit   time.Duration
	floor   float64
	wait    time.Duration
	set     map[string]bool // flags that were given
	command []string
}

func newClaimRunCommand(a *app) *cobra.Command {
	var opts claimRunOptions
	c := &cobra.Command{
		Use:   "run -l LABEL -t MINUTES [--floor GiB] [--wait TIME] -- CMD…",
		Short: "Run a command with the GPU to itself",
		Long: `Wait until the claim lock is free, run a command with exclusive use of the GPU, and let the
lock go when nothing of the command is left. Other tools take part with flock(1) on the
same file; "1bit claim status" shows which one it is and who holds it.

Claims are served in the order in which they came. The time limit counts from the
command's start and holds for all that it starts: when it is over everything is asked to
end, after 10 seconds killed. What the command leaves behind is ended too. Below the floor
of MemAvailable nothing is started, and what runs is killed. Foreign processes that have a
GPU open are listed and never touched.

The command has our standard input, output and terminal. Its exit status is ours: 128 and
the number of a signal that ended it, 124 after the time limit, 125 for any failure that is
not the command's, 126 and 127 if it cannot be executed or is not found. With -o json the
last line of standard error is a JSON object about the claim.`,
		Args:                  cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true,
		PersistentPreRunE:     func(cmd *cobra.Command, args []string) error { return ownError(a.setUp(cmd, args)) },
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.command, opts.set = args, map[string]bool{"floor": cmd.Flags().Changed("floor"), "wait": cmd.Flags().Changed("wait")}
			return ownError(a.runClaimRun(cmd.Context(), opts))
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return ownError(usagef("%w", err)) })
	f := c.Flags()
	f.SetInterspersed(false) // what follows the command is the command's
	f.StringVarP(&opts.label, "label", "l", "", "what it is for, in a few words that others read (required)")
	f.VarP((*minutes)(&opts.limit), "minutes", "t", "time limit in minutes, or a time such as 90s or 2h (required)")
	f.Float64Var(&opts.floor, "floor", 0, "GiB of MemAvailable that must be left, 0 for no floor (default the configuration's)")
	f.Var((*span)(&opts.wait), "wait", "how long to wait for the lock, 0s not at all (default as long as it takes)")
	return c
}

// minutes is a time limit: a number of minutes, or a time with a unit.
type minutes time.Duration

func (m *minutes) String() string { return time.Duration(*m).String() }
func (m *minutes) Type() string   { return "minutes" }

// mostMinutes is the longest time limit, some 190 years.
const mostMinutes = 100_000_000

func (m *minutes) Set(text string) error {
	d, err := time.ParseDuration(text)
	n, e := strconv.ParseFloat(text, 64)
	if n > mostMinutes { // also what no number of its kind can hold
		return fmt.Errorf("it is longer than %d minutes", mostMinutes)
	}
	if e == nil {
		d, err = time.Duration(n*float64(time.Minute)), nil
	}
	if err != nil || d <= 0 {
		return fmt.Errorf("it is a number of minutes such as 30, or a time such as 90s")
	}
	*m = minutes(d)
	return nil
}

func (a *app) runClaimRun(ctx context.Context, opts claimRunOptions) error {
	switch {
	case opts.label == "":
		return usagef("--label is missing: say in a few words what the claim is for")
	case opts.limit == 0:
		return usagef("--minutes is missing: say after how many minutes the command is to be ended")
	case len(opts.command) == 0:
		return usagef("no command: usage is 1bit claim run -l LABEL -t MINUTES -- CMD…")
	}
	program, err := findProgram(opts.command[0])
	if err != nil {
		return err
	}
	lock, floor, err := a.claims()
	if err != nil {
		return err
	}
	if opts.set["floor"] {
		floor = opts.floor
	}
	o := claim.Options{
		Lock: lock, Label: opts.label, Limit: opts.limit, FloorGiB: floor, Wait: opts.wait,
		Program: program, Args: opts.command[1:], Env: a.environ,
		Guard: []string{os.Args[0], "claim", "guard"}, Adopt: true,
		Sensors: a.sensors(), User: a.user, History: filepath.Join(a.config.StateHome, claim.HistoryFile), Now: a.now,
		Say: a.sayWaiting, Note: a.claimNote,
	}
	if opts.set["wait"] && opts.wait == 0 {
		o.Wait = -1
	}
	done := a.claimStreams(&o)
	defer done()
	a.claimScope(ctx, &o)
	r, err := claim.Run(ctx, o)
	a.line.Clear()
	if r == nil {
		return unstarted(err)
	}
	return a.endClaim(o, r, err)
}

// findProgram looks for the command before anybody waits for it.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", unstarted(fmt.Errorf("run the command: %w", err))
	}
	return path, nil
}

// unstarted is the error of a command that could not be executed, as a shell tells it.
func unstarted(err error) error {
	switch {
	case errors.Is(err, claim.ErrLock):
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return &claimError{err, 127}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		return &claimError{err, 126}
	}
	return err
}

// claimStreams hands our streams, our terminal and our signals to the command.
func (a *app) claimStreams(o *claim.Options) (done func()) {
	o.Stdin, _ = a.stdin.(*os.File)
	o.Stdout, _ = a.stdout.(*os.File)
	o.Stderr, _ = a.stderr.(*os.File)
	if tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		o.Terminal, o.Foreground = tty, ui.IsTerminal(a.stdin) && ui.IsTerminal(a.stdout)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup does
		signal.Notify(signals, syscall.SIGHUP)
	}
	o.Signals = signals
	// Ctrl-Z suspends the command at most, and not its claim; nor does a note end it that nobody reads. The command has
	// these signals as ever, which it would not if they were ignored.
	unheard := make(chan os.Signal, 1)
	signal.Notify(unheard, syscall.SIGTSTP, syscall.SIGPIPE)
	return func() {
		signal.Stop(signals)
		if o.Terminal != nil {
			o.Terminal.Close()
		}
	}
}

// claimScope gives the command a scope, where there is a manager to make one.
func (a *app) claimScope(ctx context.Context, o *claim.Options) {
	m := a.bus(ctx)
	if m == nil {
		return
	}
	m.Close() // it may be long until it is needed
	o.Scope = fmt.Sprintf("1bit-claim-%d-%d.scope", os.Getpid(), a.now().Unix())
	o.Cage = func(pids ...int) (engine.Cage, error) {
		m, err := a.host().Connect(ctx)
		if err != nil {
			return nil, err
		}
		defer m.Close()
		return m.StartScopeCage(ctx, "/", o.Scope, "1bit claim: "+o.Label, pids...)
	}
}

func (a *app) sayWaiting(text string) {
	switch {
	case text == "":
		a.line.Clear()
	case a.line != nil:
		a.line.Say(text)
	case !a.flags.quiet && !a.json():
		fmt.Fprintln(a.stderr, ui.Clean(text))
	}
}

func (a *app) claimNote(format string, args ...any) {
	if a.json() {
		a.told = append(a.told, fmt.Sprintf(format, args...)) // for the document
		return
	}
	_ = engine.FromBackground(func() error { // the command may have the terminal
		a.line.Clear()
		_, err := fmt.Fprintf(a.stderr, "note: %s\n", ui.Clean(fmt.Sprintf(format, args...)))
		return err
	})
}

// claimDocument is what is told of a claim whose command ran.
type claimDocument struct {
	Lock string `json:"lock"`
	claim.Record
	WaitedMS int64         `json:"waited_ms"`
	TookMS   int64         `json:"took_ms"`
	ExitCode int           `json:"exit_code"`
	Place    string        `json:"place"`
	Left     []string      `json:"left"`
	Foreign  []gpu.Process `json:"foreign"`
	Notes    []string      `json:"notes"`
	Problem  string        `json:"problem,omitempty"`
}

// endClaim tells how it went and ends as the command did.
func (a *app) endClaim(o claim.Options, r *claim.Result, problem error) error {
	for _, left := range r.Left {
		if !a.json() {
			a.claimNote("the command left %s behind, which was ended", left)
		}
	}
	if a.json() {
		doc := claimDocument{
			Lock: o.Lock.Path, Record: r.Record, WaitedMS: r.Waited.Milliseconds(), TookMS: r.Took.Milliseconds(), ExitCode: r.ExitCode,
			Place: r.Place, Notes: append([]string{}, a.told...), Left: append([]string{}, r.Left...), Foreign: append([]gpu.Process{}, r.Foreign...),
		}
		if problem != nil {
			doc.Problem, doc.ExitCode = problem.Error(), claim.ExitFailed
		}
		text, err := json.Marshal(doc)
		if err != nil {
			return fmt.Errorf("tell of the claim: %w", err)
		}
		fmt.Fprintf(a.stderr, "\n%s\n", text) // a line of its own, wherever the command left off
		if problem != nil {
			return statusError(claim.ExitFailed)
		}
	}
	if problem != nil {
		return problem
	}
	if r.Terminal && r.Status.Signal == syscall.SIGINT {
		// The keys interrupted the command alone. Whoever shares our place in front of the terminal, such as the
		// script that called us, would have been interrupted with it.
		signal.Reset(os.Interrupt)
		_ = syscall.Kill(0, syscall.SIGINT)
	}
	if r.ExitCode != 0 {
		return statusError(r.ExitCode)
	}
	return nil
}

func newClaimGuardCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "guard ORDER GROUP", Short: "End what is left of a claim (started by claim run)", Hidden: true, DisableFlagParsing: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			scope := func(name string) (engine.Cage, bool) { s, ok := systemd.FindOwnScope("/", name); return s, ok }
			return ownError(claim.Guard(a.stdin, args, scope, a.now))
		},
	}
}

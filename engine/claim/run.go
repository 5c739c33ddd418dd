package claim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/internal/ui"
)

// Options say what is run under a claim.
type Options struct {
	Lock     Lock
	Label    string
	Limit    time.Duration // of the command's time, from its start
	Grace    time.Duration // between asking the command to end and killing it; 0: 10 s
	FloorGiB float64       // of MemAvailable, before the start and while it runs; 0: none
	Wait     time.Duration // how long to wait for the lock; 0: as long as it takes; below 0: not at all

	Program               string   // path
	Args, Env             []string // Env is the whole environment
	Dir                   string
	Stdin, Stdout, Stderr *os.File // handed on as they are; nil: /dev/null
	Terminal              *os.File // the controlling terminal; nil: there is none
	Foreground            bool     // the command has the terminal from the start, not only when it asks for it

	Cage  func(pids ...int) (engine.Cage, error) // nil: none
	Scope string                                 // name of the scope that Cage makes, by which the guard finds it
	Guard []string                               // arguments, argv[0] first, with which this very program runs Guard

	// Adopt makes this process the parent of whatever the command leaves without one, so that it is found also if it
	// has left its process group and cleared its environment. Then no other child of this process can be waited for. A
	// process that has children already adopts nothing.
	Adopt bool

	Sensors gpu.Sensors
	User    string
	History string // path of claims.jsonl; "": none is written
	Now     func() time.Time
	Signals <-chan os.Signal                 // for the command, instead of the end of ctx; the second one kills it
	Say     func(text string)                // what is waited for, in one line, when it changes; "" when the wait is over
	Note    func(format string, args ...any) // what a reader should know, once each
}

// Errors of claims that ran nothing.
var (
	ErrBusy    = errors.New("the claim lock is not to be had")
	ErrMemory  = errors.New("too little memory is left")
	ErrInside  = errors.New("this runs under a claim already")
	ErrOptions = errors.New("no claim can be made of this")
)

// Exit statuses of a claim, as timeout(1) has them.
const (
	ExitTimeLimit = 124
	ExitFailed    = 125 // whatever is ours and not the command's
)

// Result is how a claim went whose command ran.
type Result struct {
	Record   Record
	Waited   time.Duration
	Took     time.Duration // from the command's start until nothing of it was left
	ExitCode int           // what to exit with: the command's own, 128 and a signal's number, ExitTimeLimit, ExitFailed
	Status   engine.ExitStatus
	Terminal bool          // the command had the terminal, and with it the keys that interrupt
	Place    string        // what held the command: the name of a scope, or "process group"
	Left     []string      // what the command had left behind when it ended, and was ended
	Foreign  []gpu.Process // who else had a GPU open at the start
}

// markVariable stands in the environment of all that a claim starts.
const markVariable = "ONEBIT_CLAIM"

// mostLabel bounds a label, in bytes.
const mostLabel = 200

func (o *Options) validate() error {
	switch {
	case len(o.Label) > mostLabel || !utf8.ValidString(o.Label):
		return fmt.Errorf("%w: the label has %d bytes: it tells others in a few words what runs, in UTF-8 of at most %d bytes", ErrOptions, len(o.Label), mostLabel)
	case strings.TrimSpace(o.Label) == "" || strings.ContainsFunc(o.Label, unicode.IsControl):
		return fmt.Errorf("%w: the label %q is empty or holds control characters: it tells others in a few words what runs", ErrOptions, o.Label)
	case o.Limit <= 0:
		return fmt.Errorf("%w: the time limit is %v: it is the time after which the command is ended", ErrOptions, o.Limit)
	case !(o.FloorGiB >= 0) || math.IsInf(o.FloorGiB, 1): // NaN is no number
		return fmt.Errorf("%w: the memory floor is %v GiB: it is 0 for none, or more", ErrOptions, o.FloorGiB)
	case o.Program == "" || len(o.Guard) == 0:
		return fmt.Errorf("%w: no program, or no guard", ErrOptions)
	}
	return nil
}

// Run waits for the lock, runs a command under it and lets it go when nothing of the command is left. Its errors tell
// why nothing was run: ErrOptions, ErrInside, ErrBusy, ErrLock, ErrMemory, the end of ctx, or what kept the program
// from starting. A command that is not to be got rid of is an error too, with the result; then the guard keeps the
// lock until it is gone.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := o.inside(); err != nil {
		return nil, err
	}
	r := &running{o: o, record: Record{
		Label: o.Label, User: o.User, PID: os.Getpid(), Command: command(append([]string{o.Program}, o.Args...)), Since: o.Now(),
	}}
	begun := o.Now()
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	defer r.letGo()
	r.result.Waited = o.Now().Sub(begun)
	if err := r.enough(); err != nil {
		return nil, err
	}
	r.look(ctx)
	r.begin()
	if err := r.start(ctx); err != nil {
		r.ended("not started")
		return nil, err
	}
	how := r.watch(ctx)
	err := r.clean(ctx)
	r.ended(how)
	return &r.result, err
}

// inside refuses a claim within one of the same lock, which would wait for itself.
func (o *Options) inside() error {
	i := slices.IndexFunc(o.Env, func(kv string) bool { return strings.HasPrefix(kv, markVariable+"=") })
	if i < 0 {
		return nil
	}
	h, _, err := o.Lock.Holder()
	if err == nil && h != nil && markOf(o.Lock.line(*h)) == o.Env[i] {
		return fmt.Errorf("%w, %q of process %d, which holds %s: run the command without another", ErrInside, h.Label, h.PID, o.Lock.Path)
	}
	return nil
}

// Under tells whether an environment is that of a claim that goes on, of whatever lock, and which process made it.
func Under(proc string, env []string) (pid int, under bool) {
	for _, kv := range env {
		text, is := strings.CutPrefix(kv, markVariable+"=")
		if !is {
			continue
		}
		var start uint64
		var boot string
		if n, _ := fmt.Sscanf(text, "%d-%d-%s", &pid, &start, &boot); n == 3 && (Lock{Proc: proc}).stands(line{Record: Record{PID: pid}, Start: start, Boot: boot}) {
			return pid, true
		}
	}
	return 0, false
}

// markOf is the mark of what a claim starts. The start of the process that made the claim makes it the only one of
// its kind.
func markOf(l line) string { return fmt.Sprintf("%s=%d-%d-%s", markVariable, l.PID, l.Start, l.Boot) }

// running is a claim from its first wait to its end.
type running struct {
	o      Options
	record Record
	result Result
	hold   *hold
	ticket *ticket // that says who holds a lock which we may not write in
	proc   *engine.Process
	guard  *exec.Cmd
	mark   engine.Mark
	handed bool // the terminal, to the command
	adopts bool // what the command leaves without a parent

	settings *unix.Termios // of the terminal before the command; nil: there is none
	kept     bool          // the lock, by the guard
}

// wait waits until the lock is ours.
func (r *running) wait(ctx context.Context) error {
	var gaveUp error
	if r.o.Wait > 0 {
		var cancel context.CancelFunc
		gaveUp = fmt.Errorf("%w within %v", ErrBusy, r.o.Wait)
		ctx, cancel = context.WithTimeoutCause(ctx, r.o.Wait, gaveUp)
		defer cancel()
	}
	var err error
	if r.hold, err = r.o.Lock.take(ctx, false); err == nil && r.nobodyWaits() {
		return nil
	}
	if err == nil {
		r.hold.release()
	} else if !errors.Is(err, errHeld) {
		return err
	} else if h, is := r.o.Lock.lineage(); is {
		return fmt.Errorf("%w, that of %s, which holds %s: run the command without another", ErrInside, h, r.o.Lock.Path)
	}
	if r.o.Wait < 0 {
		return fmt.Errorf("%w: %s", ErrBusy, r.holder())
	}
	err = r.queue(ctx)
	switch {
	case errors.Is(err, ErrBusy):
		return fmt.Errorf("%w: %s", err, r.holder())
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("wait for the claim lock: %w", err)
	}
	return err
}

// nobodyWaits tells whether it is our turn without a ticket.
func (r *running) nobodyWaits() bool { return len(r.ahead(nil)) == 0 }

// queue waits for our turn with a ticket, and then in the kernel.
func (r *running) queue(ctx context.Context) error {
	t, err := r.o.Lock.enter(ctx, r.record)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.o.Note("claims do not take turns here: %v", err)
	}
	defer func() { r.o.Lock.leave(t) }()
	tell := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() { defer close(tell); r.tell(ctx, t) }()
	defer func() { cancel(); <-tell; r.o.Say("") }()
	tick := time.NewTicker(turnPoll)
	defer tick.Stop()
	for t != nil && !r.o.Lock.first(t) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	r.hold, err = r.o.Lock.take(ctx, true)
	return err
}

// tell says what is waited for as often as it changes.
func (r *running) tell(ctx context.Context, t *ticket) {
	const often = time.Second
	tick := time.NewTicker(often)
	defer tick.Stop()
	said := ""
	for {
		text := "waiting: " + r.holder()
		if n := len(r.ahead(t)); n > 0 {
			text += fmt.Sprintf("; %d before us", n)
		}
		if text != said && ctx.Err() == nil {
			said = text
			r.o.Say(text)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ahead lists those that are served before us.
func (r *running) ahead(t *ticket) []ticket {
	return slices.DeleteFunc(r.o.Lock.tickets(ticketSuffix), func(other ticket) bool {
		return t != nil && other.name >= t.name || r.o.Lock.suspended(other)
	})
}

// holder says who holds the lock, or has the next turn, as far as is known.
func (r *running) holder() string {
	h, held, err := r.o.Lock.Holder()
	if err != nil {
		return err.Error()
	}
	if h != nil && h.PID != os.Getpid() {
		return h.String() + " holds " + r.o.Lock.Path
	}
	if ahead := r.ahead(nil); !held && len(ahead) > 0 {
		return "it is the turn of " + ahead[0].String() + ", which waits for " + r.o.Lock.Path
	}
	if !held || h != nil { // or ours, at this moment
		return r.o.Lock.Path + " has just become free"
	}
	return r.o.Lock.Path + " is held, nobody tells by whom"
}

// String is one claim in a few words.
func (r Record) String() string {
	name, who := r.Label, ""
	if name == "" {
		name = firstLine(r.Text)
	}
	var words []string
	if name != "" {
		words = append(words, fmt.Sprintf("%q", name))
		who = fmt.Sprintf("(process %d: %s)", r.PID, r.Command)
	} else if r.PID > 0 {
		words = append(words, fmt.Sprintf("process %d (%s)", r.PID, r.Command))
	}
	if r.User != "" {
		words = append(words, "of "+r.User)
	}
	if who != "" && r.PID > 0 {
		words = append(words, who)
	}
	if !r.Until.IsZero() {
		words = append(words, "until "+r.Until.Local().Format("2006-01-02 15:04"))
	}
	return ui.Clean(strings.Join(words, " ")) // anybody may have written it
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// enough refuses to start below the floor: what it would need is not there.
func (r *running) enough() error {
	if r.o.FloorGiB == 0 {
		return nil
	}
	have, err := MemAvailable(r.o.Sensors.Root)
	if err != nil {
		return fmt.Errorf("%w: whether the floor of %g GiB is met is not known: %w", ErrMemory, r.o.FloorGiB, err)
	}
	if have < r.o.FloorGiB {
		return fmt.Errorf("%w: %.1f GiB are available, the floor is %g GiB: end what takes it, or lower the floor", ErrMemory, have, r.o.FloorGiB)
	}
	return nil
}

// look lists who has a GPU open and is none of ours. They are told of and never touched.
func (r *running) look(ctx context.Context) {
	list, err := r.o.Sensors.Residents(ctx, os.Getpid())
	if err != nil {
		r.o.Note("who else has a GPU open is not known wholly: %v", err)
	}
	for _, p := range list {
		r.o.Note("process %d has a GPU open and is none of this claim's: %s", p.PID, p.Command)
	}
	r.result.Foreign = list
}

// begin writes down that the lock is ours.
func (r *running) begin() {
	r.record.Since = r.o.Now()
	r.record.Until = r.record.Since.Add(r.o.Limit)
	if err := r.hold.write(r.record); err != nil {
		r.o.Note("others do not see whose the lock is: %v", err)
	}
	if !r.hold.writable {
		t, err := r.o.Lock.sign(r.record)
		if err != nil {
			r.o.Note("others do not see whose the lock is, %s being read-only: %v", r.o.Lock.Path, err)
		}
		r.ticket = t
	}
	if err := remember(r.o.History, r.record); err != nil {
		r.o.Note("%v", err)
	}
}

// ended writes down how it went.
func (r *running) ended(how string) {
	now := r.o.Now()
	r.record.Ended, r.record.How = &now, how
	r.result.Record, r.result.Took = r.record, now.Sub(r.record.Since)
	if err := remember(r.o.History, r.record); err != nil {
		r.o.Note("%v", err)
	}
}

// letGo lets the lock go, unless the guard still has to keep it.
func (r *running) letGo() {
	r.o.Lock.leave(r.ticket)
	if r.kept {
		r.hold.file.Close()
		return
	}
	r.hold.release()
}

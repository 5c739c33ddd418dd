package acceptance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/acceptance/answers"
	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/neighbour"
	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// A life is one server life while it goes on: from the server's start to its
// verified end, with everything that watches it.
//
//	start → ready → quiet sentinels → neighbour at work → load → probe → stop → end
//	   └───────┴────────┴─────────────────┴────────────────┴── the first fault goes to stop ──┘
type life struct {
	o       RunOptions
	plan    *Plan // as it is for this life
	planned PlannedLife
	begin   startRecord
	arm     resolvedArm
	dir     string // arms/NNNN of the evidence folder
	sums    *sums  // of what is tested
	ledger  *ledger
	tell    func() // progress

	fence     *fence
	client    *engine.Client
	server    *engine.Process
	port      int
	log       *logWatch
	faces     *detect.Set
	table     *faceTable // what the plan makes of them
	host      *hostWatch
	pulse     *pulse
	room      room
	answers   *answers.Writer
	replies   lastReplies
	maker     *prompter
	counter   *tokenCounter
	sentinels Sentinels
	known     map[int]*engine.Answer // of the sentinels on the quiet server, by index
	quiet     int                    // requests that the quiet server has answered
	other     *neighbour.Neighbour   // nil: none

	clock time.Time // all µs of the ledger count from here
	halt  context.CancelFunc

	mu       sync.Mutex
	why      string // why the life ends; the first reason stays
	detail   string
	err      error // the runner's own trouble
	phase    string
	from     int64 // when the load began, µs
	ended    int   // requests
	faults   int
	stopped  bool            // the server's end is ours from here on
	barked   bool            // a watchdog
	tooLong  bool            // the life has lasted as long as it may: nothing more is asked
	to       int64           // when the load ended, µs
	listener detect.Identity // who answers on the port
	lcpFree  []span          // sentinels under load, which may be put on a slot by their beginning

	escaped []string // processes that had left their group

	scope    string        // the systemd unit of the server; "": none of its own
	group    string        // its control group
	ending   *stopRecord   // how the server ended when it was told to; nil: it was not
	exitSeen chan struct{} // closed when an end of the server has been recorded or was ours
}

const (
	stopGrace  = 10 * time.Second       // for a server that is told to end
	faultGrace = 2 * time.Second        // for one that is known to be wrong
	exitWait   = 2 * time.Second        // between a broken connection and the server's end
	portTries  = 3                      // ports may be taken between choice and use
	syncEvery  = time.Second            // ledger and answers, without a fault
	guardEvery = 500 * time.Millisecond // watchdogs
	tellEvery  = 250 * time.Millisecond // progress
)

func newLife(w *walk, p PlannedLife, begin startRecord) (*life, error) {
	l := &life{
		o: w.o, plan: w.plan.of(p), planned: p, begin: begin, arm: w.r.Arms[p.Arm], dir: ArmDir(w.o.Evidence, begin.Arm),
		sums: w.r.sums, ledger: w.ledger, clock: w.o.Now(), phase: phaseStart, known: map[int]*engine.Answer{},
		table: w.faces, halt: func() {}, sentinels: w.plan.Sentinels,
	}
	if l.sentinels.Every == 0 { // the probe after the load needs one all the same
		l.sentinels = Sentinels{PromptTokens: []int{slices.Min(l.plan.Load.PromptTokens)}, NPredict: 24, Tau: 0.2}
	}
	var err error
	if l.faces, err = detect.New(w.plan.Faces); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	l.faces.Now = l.o.Now
	l.fence = &fence{
		bus: w.o.Bus, prefix: fmt.Sprintf("%s%04d-", scopePrefix(w.run), begin.Arm), root: w.o.Root, mark: markOf(w.run),
		record: func(rec processRecord) { l.put(recordProcess, rec, false) }, // a host that goes down takes them along
	}
	l.host = &hostWatch{sensors: w.o.sensors()}
	l.tell = func() { w.tracker.tell(l) }
	return l, nil
}

// us is the life's clock.
func (l *life) us() int64 { return l.o.Now().Sub(l.clock).Microseconds() }

// end gives the first reason why the life ends, and ends the load.
func (l *life) end(why, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == "" {
		l.why, l.detail = why, detail
		l.o.Log.Info("arm ends", "arm", l.begin.Arm, "why", why, "detail", detail)
	}
	if why != whyDone {
		l.halt()
	}
}

// fail is for trouble of the runner itself.
func (l *life) fail(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	if !errors.Is(l.err, err) { // a ledger that failed says so every time
		l.err = errors.Join(l.err, err)
	}
	l.mu.Unlock()
	l.end(whyInterrupted, err.Error())
}

// put appends to the ledger; with now it also reaches the disk.
func (l *life) put(kind string, data any, now bool) {
	err := l.ledger.append(kind, data)
	if err == nil && now {
		err = l.ledger.sync()
	}
	l.fail(err)
}

// line takes the first line of a telling kind from the server log.
func (l *life) line(ev engine.LogEvent, ending bool) {
	if ending && ev.Kind == engine.LogAbort && !ev.NaNAbort {
		return // a server that is told to end twice, by us and by its front end, may abort over it
	}
	l.put(recordLog, logRecord{Kind: ev.Kind, NaN: ev.NaN, NaNAbort: ev.NaNAbort, Line: ev.Detail}, true)
	l.found(l.faces.Line(ev))
	if ev.Kind == engine.LogContext {
		l.end(whyPlan, ev.Detail)
	}
}

// found records what a face saw that is of no one request.
func (l *life) found(list []detect.Finding) {
	for _, f := range list {
		l.put(recordFinding, findingRecord{Finding: f}, f.Grade != detect.Warning)
	}
	l.weigh(list)
}

// weigh ends the life if one of the findings decides.
func (l *life) weigh(list []detect.Finding) {
	for _, f := range list {
		switch {
		case l.table.setting(f.Face) != detect.Gate:
		case f.Grade == detect.Fault:
			l.count(0, 1)
			l.end(whyFault, f.Face+": "+f.Detail)
		case f.Grade == detect.Invalid && f.Face == detect.Context:
			l.end(whyPlan, f.Detail)
		case f.Grade == detect.Invalid:
			l.end(whyInvalid, f.Face+": "+f.Detail)
		}
	}
}

// run is the whole life. The error is the runner's own trouble; what the server
// did stands in the ledger.
func (l *life) run(ctx context.Context) error {
	l.begin.Boot, l.begin.Ticks = bootID(l.o.Root), engine.BootTicks()
	// The number of the life is taken before its folder is.
	if err := errors.Join(l.ledger.append(recordStart, l.begin), l.ledger.sync()); err != nil {
		return err
	}
	l.host.oomKilled(l.o.Now(), readHostFacts(l.o.Root)) // from here on it is watched
	if err := errors.Join(setAside(l.dir), atomicfile.MkdirAll(l.dir, 0o755)); err != nil {
		return err
	}
	var err error
	if l.answers, err = answers.Create(filepath.Join(l.dir, AnswersName)); err != nil {
		return err
	}
	ctx, l.halt = context.WithCancel(ctx)
	defer l.halt()
	watch, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	l.log = newLogWatch(filepath.Join(l.dir, ServerLogName), l.plan.Server.Parallel, l.us, l.line)

	l.pulse = newPulse(engine.SinceBoot, pauseLimit(l.plan.Load.RequestDeadline), l.paused)
	l.room.measure(l.dir)
	var watchers errgroup.Group
	watchers.Go(func() error { l.fail(l.log.follow(watch)); return nil })
	watchers.Go(func() error { l.every(watch, syncEvery, l.sync); return nil })
	watchers.Go(func() error { l.every(watch, tellEvery, l.tell); return nil })
	watchers.Go(func() error { l.every(watch, pauseEvery, l.pulse.beat); return nil })
	watchers.Go(func() error { l.every(watch, guardEvery, func() { l.guard(watch) }); return nil })
	watchers.Go(func() error { l.every(watch, guardEvery, l.roomLeft); return nil })
	watchers.Go(func() error { l.followKernel(watch); return nil })

	trouble := l.live(ctx, watch, &watchers)
	if ctx.Err() != nil {
		l.end(whyInterrupted, "the run was interrupted")
	}
	l.setPhase(phaseEnd)
	after := context.WithoutCancel(ctx)
	trouble = errors.Join(trouble, l.teardown(after))
	stopWatching()
	_ = watchers.Wait() // none fails
	l.fail(l.log.drain(after))
	l.close(after, trouble)
	l.tell()
	return l.err
}

// live is what happens while the server runs. The error is of processes that
// could not be ended.
func (l *life) live(ctx, watch context.Context, watchers *errgroup.Group) error {
	if !l.start(ctx) {
		return nil
	}
	l.exitSeen = make(chan struct{})
	watchers.Go(func() error { l.awaitExit(watch); return nil })
	defer l.limit()()
	l.place()
	if l.makePrompts(ctx) {
		l.quietSentinels(ctx)
	}
	return l.beside(ctx)
}

// beside runs the load with the neighbour around it.
func (l *life) beside(ctx context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	around, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var group errgroup.Group
	if l.plan.Neighbour != nil {
		var err error
		if l.other, err = l.newNeighbour(); err != nil {
			l.end(whyRegime, err.Error())
			return nil
		}
		group.Go(func() error { return l.other.Loop(around) })
		group.Go(func() error {
			select {
			case <-l.other.Died():
				l.end(whyRegime, "the neighbour was given up: "+l.other.Summary(0, l.us()).Died)
			case <-around.Done():
			}
			return nil
		})
		l.setPhase(phaseNeighbour)
		l.await(ctx)
	}
	if ctx.Err() == nil && l.regime(ctx) {
		l.load(ctx)
	}
	if l.reason() == whyDone && *l.plan.FinalProbe {
		l.probe(ctx)
	}
	stop()
	return group.Wait()
}

func (l *life) newNeighbour() (*neighbour.Neighbour, error) {
	o := l.arm.Neighbour.options(l.plan.Neighbour)
	o.Dir, o.Now = l.dir, l.us
	o.Start = func(ctx context.Context, p engine.ProcessOptions) (*engine.Process, error) {
		process, _, err := l.fence.start(ctx, roleNeighbour, p)
		return process, err
	}
	o.Record = func(r neighbour.Run) {
		l.put(recordNeighbour, neighbourRecord{
			Kind: r.Kind, Run: r.Run, StartUS: r.StartUS, EndUS: r.EndUS, Exit: r.Exit, Units: r.Units, Unit: r.Unit, Findings: r.Findings,
		}, len(r.Findings) > 0)
	}
	return neighbour.New(o)
}

// await waits for the neighbour's first proof of work.
func (l *life) await(ctx context.Context) {
	lead := time.NewTimer(time.Duration(l.plan.Neighbour.Lead))
	defer lead.Stop()
	select {
	case <-l.other.Worked():
	case <-l.other.Died():
	case <-ctx.Done():
	case <-lead.C:
		l.end(whyRegime, fmt.Sprintf("the neighbour had done nothing within %s", time.Duration(l.plan.Neighbour.Lead)))
	}
}

// count adds to what Progress shows.
func (l *life) count(ended, faults int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended += ended
	l.faults += faults
}

func (l *life) setPhase(phase string) {
	l.mu.Lock()
	l.phase = phase
	l.mu.Unlock()
	l.tell()
}

func (l *life) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// every calls f at an interval until the context ends.
func (l *life) every(ctx context.Context, interval time.Duration, f func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

// sync brings ledger and answers to the disk.
func (l *life) sync() {
	l.fail(l.ledger.sync())
	l.fail(l.answers.Sync())
}

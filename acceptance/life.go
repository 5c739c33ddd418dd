package acceptance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// A life is one arm while it runs: a server from its start to its verified end,
// with everything that watches it.
//
//	start → ready → neighbour at work → load → identical requests → stop → end
//	   └──────┴──────────┴────────────────┴── the first fault goes to stop ──┘
type life struct {
	o       RunOptions
	w       *walk
	plan    *Plan // as it is for this life
	planned PlannedLife
	begin   startRecord
	arm     resolvedArm
	dir     string
	ledger  *ledger
	before  HostFacts
	client  *engine.Client
	server  *engine.Server
	log     *logWatch
	marks   markBook

	telling sync.Mutex
	clock   time.Time // all µs of the ledger count from here
	halt    context.CancelFunc

	mu      sync.Mutex
	why     string // why the life ends; the first reason stays
	detail  string
	err     error // the runner's own trouble
	phase   string
	from    int64 // when the load began, µs
	ended   int   // requests
	faults  int
	stopped bool  // the server's end is ours from here on
	to      int64 // when the load ended, µs
	pid     int   // of the server

	exitSeen chan struct{} // closed when an end of the server has been recorded or was ours
}

const (
	stopGrace   = 10 * time.Second       // for a server that is told to end
	faultGrace  = 2 * time.Second        // for one that is known to be wrong
	exitWait    = 2 * time.Second        // between a broken connection and the server's end
	portTries   = 3                      // ports may be taken between choice and use
	syncEvery   = time.Second            // the ledger, without a fault
	sampleEvery = 5 * time.Second        // memory and load
	tellEvery   = 250 * time.Millisecond // progress
)

func newLife(w *walk, p PlannedLife, begin startRecord) *life {
	return &life{
		o: w.o, w: w, plan: w.plan.of(p), planned: p, begin: begin, arm: w.r.Arms[p.Arm], dir: ArmDir(w.o.Evidence, begin.Arm),
		ledger: w.ledger, before: w.before, clock: w.o.Now(), phase: phaseStart, marks: markBook{known: leaks{}},
	}
}

// us is the life's clock.
func (l *life) us() int64 { return l.o.Now().Sub(l.clock).Microseconds() }

// end gives the first reason why the life ends, and ends the load.
func (l *life) end(why, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == "" {
		l.why, l.detail = why, detail
		l.o.Log.Info("arm ends", "why", why, "detail", detail)
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

// run is the whole life. The error is the runner's own trouble; what the server
// did stands in the ledger.
func (l *life) run(ctx context.Context) error {
	if err := atomicfile.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	ctx, l.halt = context.WithCancel(ctx)
	defer l.halt()
	watch, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	l.log = newLogWatch(filepath.Join(l.dir, ServerLogName), l.plan.Server.Parallel, l.o.Now, l.found)

	var watchers errgroup.Group
	watchers.Go(func() error { l.fail(l.log.follow(watch)); return nil })
	watchers.Go(func() error { l.every(watch, syncEvery, func() { l.fail(l.ledger.sync()) }); return nil })
	watchers.Go(func() error { l.every(watch, tellEvery, l.tell); return nil })
	watchers.Go(func() error { l.every(watch, sampleEvery, l.sample); return nil })

	var benchGone error
	var bench *benchLoop
	if l.start(ctx) {
		l.exitSeen = make(chan struct{})
		watchers.Go(func() error { l.awaitExit(watch); return nil })
		bench, benchGone = l.beside(ctx)
	}
	if ctx.Err() != nil {
		l.end(whyInterrupted, "the run was interrupted")
	}
	l.setPhase(phaseEnd)
	teardown := l.teardown(context.WithoutCancel(ctx))
	stopWatching()
	watchers.Wait()
	l.fail(l.log.drain())
	l.close(bench, errors.Join(benchGone, teardown))
	l.tell()
	return l.err
}

// beside runs the load with the neighbour around it.
func (l *life) beside(ctx context.Context) (*benchLoop, error) {
	around, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var group errgroup.Group
	var bench *benchLoop
	if l.plan.Neighbour != nil {
		bench = newNeighbour(l.plan.Neighbour, l.arm.Neighbour, l.dir, l.us, func(rec neighbourRecord) { l.put(recordNeighbour, rec, false) })
		group.Go(func() error { return bench.loop(around) })
		group.Go(func() error {
			select {
			case <-bench.died:
				l.end(whyRegime, "the neighbour died")
			case <-around.Done():
			}
			return nil
		})
		l.setPhase(phaseNeighbour)
		l.await(ctx, bench)
	}
	if l.regime() && ctx.Err() == nil {
		l.load(ctx)
	}
	if l.reason() == whyDone && *l.plan.FinalProbe {
		l.probe(ctx)
	}
	stop()
	return bench, group.Wait()
}

// await waits for the neighbour's first result.
func (l *life) await(ctx context.Context, bench *benchLoop) {
	lead := time.NewTimer(time.Duration(l.plan.Neighbour.Lead))
	defer lead.Stop()
	select {
	case <-bench.worked:
	case <-bench.died:
	case <-ctx.Done():
	case <-lead.C:
		l.end(whyRegime, fmt.Sprintf("the neighbour had no result within %s", time.Duration(l.plan.Neighbour.Lead)))
	}
}

// regime records the conditions at the first request and tells whether they are
// those of the plan.
func (l *life) regime() bool {
	rec := loadRecord{GTTUsedGiB: readHostFacts(l.o.Root).GTTUsedGiB}
	l.put(recordLoad, rec, true)
	a := arm{plan: l.plan, load: &rec}
	if reason, detail := a.outOfRegime(); reason != "" {
		l.end(whyRegime, detail)
		return false
	}
	return true
}

// start brings up the server. It reports false if that failed; the ledger then
// says how.
func (l *life) start(ctx context.Context) bool {
	l.put(recordStart, l.begin, true)
	rec := startupRecord{GTTUsedGiB: readHostFacts(l.o.Root).GTTUsedGiB}
	began := l.o.Now()
	var err error
	for rec.Tries = 1; ; rec.Tries++ {
		bound := l.log.count(engine.LogBind)
		err = l.startOnce(ctx, &rec)
		if ctx.Err() != nil {
			return false
		}
		if rec.Port == 0 {
			l.fail(err)
			return false
		}
		l.fail(l.log.drain())
		rec.PortTaken = errors.Is(err, engine.ErrExited) && l.log.count(engine.LogBind) > bound
		if !rec.PortTaken || rec.Tries == portTries {
			break
		}
		l.fail(l.server.Stop(ctx, 0))
	}
	rec.TookMS = l.o.Now().Sub(began).Milliseconds()
	if err == nil {
		l.put(recordStartup, rec, true)
		l.o.Log.Info("server is ready", "pid", rec.PID, "port", rec.Port, "took_ms", rec.TookMS)
		return true
	}
	rec.Problem, rec.Detail = "exit", err.Error()
	if errors.Is(err, context.DeadlineExceeded) {
		rec.Problem = "deadline"
		rec.Detail = fmt.Sprintf("the server was not ready within %s", time.Duration(l.plan.LoadDeadline))
	}
	rec.AllocFailed = l.log.count(engine.LogAlloc) > 0
	rec.OOMKilled = readHostFacts(l.o.Root).oomKilledSince(l.before)
	l.put(recordStartup, rec, true)
	l.end(whyFault, rec.Detail)
	return false
}

// startOnce starts the server on a port of its own and waits until it is ready.
func (l *life) startOnce(ctx context.Context, rec *startupRecord) error {
	var err error
	if rec.Port, err = engine.FreePort(ctx); err != nil {
		return err
	}
	l.server, err = engine.StartServer(ctx, engine.ServerOptions{
		Program: l.arm.Server.Name, Env: l.arm.ServerEnv, LogPath: filepath.Join(l.dir, ServerLogName),
		Args: slices.Concat(l.arm.ServerArgs, []string{"--host", "127.0.0.1", "--port", strconv.Itoa(rec.Port)}),
	})
	if err != nil {
		return err
	}
	rec.PID = l.server.PID()
	l.mu.Lock()
	l.pid = rec.PID
	l.mu.Unlock()
	l.client = &engine.Client{BaseURL: "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(rec.Port))}
	wait, cancel := context.WithTimeout(ctx, time.Duration(l.plan.LoadDeadline))
	defer cancel()
	return l.server.WaitReady(wait, l.client)
}

// awaitExit records an end of the server that is not ours.
func (l *life) awaitExit(ctx context.Context) {
	defer close(l.exitSeen)
	select {
	case <-ctx.Done():
		return
	case <-l.server.Exited():
	}
	l.mu.Lock()
	ours := l.stopped
	l.mu.Unlock()
	if ours {
		return
	}
	status, err := l.server.Wait(ctx)
	if err != nil {
		return
	}
	l.fail(l.log.drain())
	l.put(recordExit, exitRecord{
		Code: status.Code, Signal: int(status.KilledBy()), Text: status.String(),
		OOMKilled: readHostFacts(l.o.Root).oomKilledSince(l.before),
	}, true)
	l.end(whyFault, "the server ended by itself: "+status.String())
}

// found takes the first line of a kind from the server log.
func (l *life) found(ev engine.LogEvent) {
	switch ev.Kind {
	case engine.LogNaN, engine.LogAbort, engine.LogDevice, engine.LogContext, engine.LogAlloc:
	default:
		return
	}
	l.put(recordLog, logRecord{Kind: ev.Kind, NaN: ev.NaN, NaNAbort: ev.NaNAbort, Line: ev.Detail}, true)
	switch ev.Kind {
	case engine.LogContext:
		l.end(whyPlan, ev.Detail)
	case engine.LogNaN, engine.LogAbort, engine.LogDevice:
		l.count(0, 1)
		l.end(whyFault, ev.Detail)
	}
}

// probe asks for two identical answers on the quiet server.
func (l *life) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Duration(l.plan.Load.RequestDeadline))
	defer cancel()
	err := engine.Probe(ctx, l.client)
	var bad *engine.ProbeError
	switch {
	case err == nil:
		l.put(recordProbe, probeRecord{}, false)
	case errors.As(err, &bad):
		l.awaitEnd(ctx)
		l.put(recordProbe, probeRecord{bad.Face, bad.Detail}, true)
	default:
		l.fail(err)
	}
}

// teardown ends the server and everything it started.
func (l *life) teardown(ctx context.Context) error {
	if l.server == nil {
		return nil
	}
	select {
	case <-l.server.Exited():
		if l.exitSeen != nil {
			<-l.exitSeen // it ended by itself, and that is being recorded
		}
	default:
	}
	l.mu.Lock()
	l.stopped = true
	grace := faultGrace
	if l.why == whyDone {
		grace = stopGrace
	}
	l.mu.Unlock()
	return l.server.Stop(ctx, grace)
}

// close writes the end of the life.
func (l *life) close(bench *benchLoop, trouble error) {
	if trouble != nil {
		l.fail(trouble)
	}
	l.mu.Lock()
	rec := endRecord{Why: l.why, Detail: l.detail}
	from, to := l.from, l.to
	l.mu.Unlock()
	rec.Shape = l.log.shape()
	rec.LogLines, rec.ServerLogSHA256 = l.log.totals()
	rec.LoadFromUS, rec.LoadUS = from, max(0, to-from)
	if bench != nil {
		rec.Neighbour = bench.summary(from, to)
	}
	if trouble != nil {
		rec.Teardown = trouble.Error()
	}
	l.put(recordEnd, rec, true)
}

// count adds to what Progress shows.
func (l *life) count(ended, faults int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended += ended
	l.faults += faults
}

func (l *life) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

func (l *life) setPhase(phase string) {
	l.mu.Lock()
	l.phase = phase
	l.mu.Unlock()
	l.tell()
}

// every calls f until the context ends.
func (l *life) every(ctx context.Context, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
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

package acceptance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// RunOptions say what to soak and where to put the evidence.
type RunOptions struct {
	Plan     *Plan
	Package  *store.Package
	Baseline *store.Package                                               // what arms of the role baseline run; nil: none
	Find     func(ctx context.Context, id string) (*store.Package, error) // packages by name, every byte of them compared with the manifest
	Evidence string                                                       // folder; made if it is not there
	Bus      *systemd.Manager                                             // makes scopes for what is started; nil: process groups
	Progress func(Progress)                                               // called a few times a second, never twice at once; nil: nobody looks
	Log      *slog.Logger                                                 // nil discards
	Now      func() time.Time                                             // nil is time.Now
	Env      []string                                                     // KEY=value; PATH, HOME and a few more of it are passed to the programs
	Root     string                                                       // where proc and sys are; "" is /
	Runner   string                                                       // version of the program that runs this
}

// Run carries out a plan and judges it. The packages are not changed. Whatever
// happens, also when the context ends, nothing it started is left running.
//
// A run that could be made gives a verdict and no error, whatever the verdict
// is; one that is interrupted gives an inconclusive verdict and can be resumed.
// An error that wraps ErrPlan, ErrEvidence or ErrRunning means that nothing was
// started.
func Run(ctx context.Context, o RunOptions) (*Verdict, error) {
	o = o.withDefaults()
	v, err := func() (*Verdict, error) {
		if err := errors.Join(o.Plan.CheckHost(ctx, o.sensors()), o.Plan.checkDescriptors()); err != nil {
			return nil, err
		}
		// A folder that is there already is held while models are read, which
		// takes long: who watches it sees that somebody is at it.
		hold, err := holdFolder(o.Evidence)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		r, err := resolve(ctx, o)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			hold.Close() // of none it does nothing
			return nil, err
		}
		run, err := beginRun(o, r, hold)
		if err != nil {
			return nil, err
		}
		return run.finish(ctx, run.walk(ctx))
	}()
	if err != nil {
		return nil, fmt.Errorf("soak %s: %w", o.Package.Name, err)
	}
	return v, nil
}

// Check finds what would keep Run from starting: what the plan asks of this
// host, of its files and of the packages. It reads the models whole, and starts
// nothing.
func Check(ctx context.Context, o RunOptions) error {
	o = o.withDefaults()
	err := errors.Join(o.Plan.CheckHost(ctx, o.sensors()), o.Plan.checkDescriptors())
	if err == nil {
		_, err = resolve(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("soak %s: %w", o.Package.Name, err)
	}
	return nil
}

func (o RunOptions) withDefaults() RunOptions {
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Root == "" {
		o.Root = "/"
	}
	return o
}

// A walk is a run while it goes on: one life after the other, in the order of
// the plan, until each has been lived, a fault ends it, or there have been as
// many as the plan allows.
type walk struct {
	o       RunOptions
	plan    *Plan
	r       *resolved
	lives   []PlannedLife
	run     string   // names it among all runs
	hold    *os.File // of the evidence folder: a run is alive
	ledger  *ledger
	faces   *faceTable
	past    []attempt // the lives so far
	gtt     *float64  // GiB in use before the life that ended last
	tracker *tracker
}

// An attempt is a life that has been lived, well or not.
type attempt struct {
	start startRecord
	state ArmState
}

func newWalk(o RunOptions, r *resolved, run string, hold *os.File) *walk {
	w := &walk{o: o, plan: o.Plan, r: r, lives: o.Plan.Lives(), run: run, hold: hold, faces: newFaceTable(o.Plan)}
	w.tracker = newTracker(w)
	return w
}

// beginRun makes the evidence folder, unless it is held already, and its first
// records.
func beginRun(o RunOptions, r *resolved, hold *os.File) (w *walk, err error) {
	defer func() {
		if err != nil {
			hold.Close()
		}
	}()
	plan, err := r.encode()
	if err != nil {
		return nil, err
	}
	if hold == nil {
		if err := os.MkdirAll(o.Evidence, 0o755); err != nil {
			return nil, fmt.Errorf("make evidence folder: %w", err)
		}
		if hold, err = holdFolder(o.Evidence); err != nil {
			return nil, err
		}
	}
	w = newWalk(o, r, runID(), hold)
	if w.ledger, err = createLedger(o.Evidence, o.Now); err != nil {
		return nil, err
	}
	// The plan is on the disk before anything is asked of a server.
	if err := atomicfile.Write(filepath.Join(o.Evidence, PlanName), o.Plan.file, 0o644); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(filepath.Join(o.Evidence, ResolvedName), plan, 0o644); err != nil {
		return nil, err
	}
	if err := w.ledger.append(recordOpen, openRecord{
		Schema: ledgerSchema, Run: w.run, PlanFileSHA256: o.Plan.FileSHA256(), PlanSHA256: sumOf(plan),
		Package: o.Package.Name, PackageDigest: o.Package.Digest, EngineVersion: r.Arms[0].EngineVersion, Runner: o.Runner,
	}); err != nil {
		return nil, err
	}
	if err := w.recordHost("before", HostBeforeName, readHostFacts(o.Root)); err != nil {
		return nil, err
	}
	return w, w.ledger.sync()
}

// runID makes a name that no other run has.
func runID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// walk lives the lives. The error is the runner's own trouble.
func (w *walk) walk(ctx context.Context) error {
	for ctx.Err() == nil {
		next, start := w.next()
		if next == nil {
			return w.recordHost("after", HostAfterName, readHostFacts(w.o.Root))
		}
		if err := w.live(ctx, *next, start); err != nil {
			return err
		}
	}
	return nil
}

// live lives one life and has it judged as the verdict will.
func (w *walk) live(ctx context.Context, p PlannedLife, start startRecord) error {
	from, err := w.ledger.size()
	if err != nil {
		return err
	}
	l, err := newLife(w, p, start)
	if err != nil {
		return err
	}
	missing := awaitGTT(ctx, w.o.Root, w.gtt, settleGTT)
	changed, err := w.r.sums.changed(ctx)
	if ctx.Err() != nil {
		return nil // nothing has begun
	}
	w.gtt = readHostFacts(w.o.Root).GTTUsedGiB // what is not given back costs one life, and then it is the host's
	switch {
	case err != nil:
	case changed != "":
		err = l.refuse(endRecord{Why: whyChanged, Detail: changed, Changed: changed})
	case missing != "":
		err = l.refuse(endRecord{Why: whyTeardown, Detail: missing})
	default:
		err = l.run(ctx)
	}
	if err != nil {
		return err
	}
	to, err := w.ledger.size()
	if err != nil {
		return err
	}
	state, err := judgeLife(w.plan.of(p), w.faces, filepath.Join(w.o.Evidence, LedgerName), from, to)
	if err != nil {
		return err
	}
	w.past = append(w.past, attempt{start, state})
	w.tracker.lived(l, state)
	w.o.Log.Info("arm has ended", "arm", start.Arm, "name", start.Name, "state", state.State, "reason", state.Reason)
	return nil
}

// next gives the life to live now: the first of the plan that has no evidence
// yet. What was no evidence is lived again, up to the plan's attempts; nothing
// else is, and never more than the plan asked for.
func (w *walk) next() (*PlannedLife, startRecord) {
	if len(w.past) >= w.plan.Attempts {
		return nil, startRecord{}
	}
	last := map[[2]int]attempt{}
	for _, a := range w.past {
		if a.state.State == stateFault && a.start.Role != RoleBaseline && w.plan.AfterFault == AfterFaultStop || a.hopeless() {
			return nil, startRecord{}
		}
		last[[2]int{a.start.Planned, a.start.Life}] = a
	}
	for _, p := range w.lives {
		before, lived := last[[2]int{p.Arm, p.Life}]
		if lived && (before.state.State == stateClean || before.state.State == stateFault) {
			continue
		}
		arm := w.r.Arms[p.Arm]
		start := startRecord{
			Arm: len(w.past) + 1, Planned: p.Arm, Name: p.Name, Life: p.Life, Role: p.Role,
			Package: arm.Package.Name, PackageDigest: arm.Package.Digest, EngineVersion: arm.EngineVersion, Args: arm.ServerArgs,
		}
		if lived {
			start.Replaces, start.Why = before.start.Arm, before.state.Reason
		}
		return &p, start
	}
	return nil, startRecord{}
}

// hopeless tells whether the same life would end the same way again, and so
// would all others.
func (a attempt) hopeless() bool {
	return a.state.Reason == "invalid(plan)" || a.state.Reason == "invalid(changed)"
}

// finish ends the records of a walk and judges them. A walk that was
// interrupted has no closing record: it can go on.
func (w *walk) finish(ctx context.Context, trouble error) (*Verdict, error) {
	defer w.hold.Close()
	var err error
	if ctx.Err() == nil && trouble == nil {
		err = w.ledger.close()
	} else {
		err = w.ledger.leave()
	}
	if trouble != nil && !errors.Is(trouble, err) {
		err = errors.Join(trouble, err)
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("%w: free space and resume the run", err)
	}
	if err != nil {
		return nil, err
	}
	v, err := JudgeDir(w.o.Evidence)
	if err != nil {
		return nil, err
	}
	return v, writeJSON(filepath.Join(w.o.Evidence, VerdictName), v)
}

func (w *walk) recordHost(when, name string, facts HostFacts) error {
	if err := writeJSON(filepath.Join(w.o.Evidence, name), facts); err != nil {
		return err
	}
	return w.ledger.append(recordHost, hostRecord{when, facts})
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return atomicfile.Write(path, append(b, '\n'), 0o644)
}

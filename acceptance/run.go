package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// RunOptions say what to soak and where to put the evidence.
type RunOptions struct {
	Plan     *Plan
	Package  *store.Package
	Baseline *store.Package                                               // what arms of the role baseline run; nil: none
	Find     func(ctx context.Context, id string) (*store.Package, error) // installed packages that the plan's arms name
	Bus      *systemd.Manager                                             // makes scopes of what is started; nil: process groups
	Evidence string                                                       // folder; made if it is not there
	Progress func(Progress)                                               // called a few times a second, never twice at once; nil: nobody looks
	Log      *slog.Logger                                                 // nil discards
	Now      func() time.Time                                             // nil is time.Now
	Env      []string                                                     // KEY=value; PATH, HOME and a few more of it are passed to the programs
	Root     string                                                       // where proc and sys are; "" is /
	Runner   string                                                       // version of the program that runs this
}

// Run carries out a plan and judges it. The package is not changed. Whatever
// happens, also when the context ends, nothing it started is left running.
//
// A run that could be made gives a verdict and no error, whatever the verdict
// is; one that is interrupted gives an inconclusive verdict. An error that
// wraps ErrPlan or ErrEvidence means that nothing was started.
func Run(ctx context.Context, o RunOptions) (*Verdict, error) {
	o = o.withDefaults()
	if o.Package.State == store.StateBroken {
		return nil, fmt.Errorf("soak %s: %w: %s", o.Package.Name, packager.ErrIntegrity, o.Package.Detail)
	}
	if err := o.Plan.CheckHost(o.Root); err != nil {
		return nil, fmt.Errorf("soak %s: %w", o.Package.Name, err)
	}
	r, err := resolve(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("soak %s: %w", o.Package.Name, err)
	}
	// A program that cannot say its version is judged by its start.
	if r.EngineVersion, err = engine.Version(ctx, r.paths.server, r.paths.env); err != nil {
		o.Log.Info("read engine version", "error", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("soak %s: %w", o.Package.Name, err)
	}
	if err := record(ctx, o, r); err != nil {
		return nil, fmt.Errorf("soak %s: %w", o.Package.Name, err)
	}
	v, err := JudgeDir(o.Evidence)
	if err != nil {
		return nil, err
	}
	if err := writeJSON(filepath.Join(o.Evidence, VerdictName), v); err != nil {
		return nil, err
	}
	return v, nil
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

// record makes the evidence folder and fills it.
func record(ctx context.Context, o RunOptions, r *resolved) (err error) {
	plan, err := r.encode()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Evidence, 0o755); err != nil {
		return fmt.Errorf("make evidence folder: %w", err)
	}
	l, err := createLedger(o.Evidence, o.Now)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := l.close(); cerr != nil && !errors.Is(err, cerr) {
			err = errors.Join(err, cerr)
		}
	}()
	// The plan is on the disk before anything is asked of the server.
	if err := atomicfile.Write(filepath.Join(o.Evidence, PlanName), o.Plan.file, 0o644); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(o.Evidence, ResolvedName), plan, 0o644); err != nil {
		return err
	}
	if err := l.append(recordOpen, openRecord{
		Schema: ledgerSchema, PlanFileSHA256: o.Plan.FileSHA256(), PlanSHA256: sumOf(plan),
		Package: o.Package.Name, PackageDigest: o.Package.Digest, EngineVersion: r.EngineVersion, Runner: o.Runner,
	}); err != nil {
		return err
	}
	before := readHostFacts(o.Root)
	if err := recordHostFacts(l, o.Evidence, "before", HostBeforeName, before); err != nil {
		return err
	}
	if err := l.sync(); err != nil {
		return err
	}
	if err := newLife(o, r, l, before).run(ctx); err != nil {
		return err
	}
	return recordHostFacts(l, o.Evidence, "after", HostAfterName, readHostFacts(o.Root))
}

func recordHostFacts(l *ledger, dir, when, name string, facts HostFacts) error {
	if err := writeJSON(filepath.Join(dir, name), facts); err != nil {
		return err
	}
	return l.append(recordHost, hostRecord{when, facts})
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return atomicfile.Write(path, append(b, '\n'), 0o644)
}

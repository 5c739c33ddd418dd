package acceptance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/packager/store"
)

// ErrChanged says that a run cannot go on because something of what it tests is
// no longer what it was.
var ErrChanged = errors.New("not what the run began with")

// Resume goes on with a run whose runner has died or was interrupted. Plan and
// packages are those of the evidence folder: of the options it takes neither
// Plan nor Package nor Baseline, and needs Find. What the run had started and
// left behind is ended first. Packages, models and plan must still have the
// digests that they had: an error that wraps ErrChanged says what has not.
// Another runner may go on; the ledger says so. The error wraps ErrRunning if
// the run still goes on, and ErrLedger if it has ended, or its ledger is damaged
// or tells of less than lies in the folder.
func Resume(ctx context.Context, o RunOptions) (*Verdict, error) {
	o = o.withDefaults()
	v, err := func() (*Verdict, error) {
		hold, err := holdFolder(o.Evidence)
		if err != nil {
			return nil, err
		}
		w, err := reopenRun(ctx, o, hold)
		if err != nil {
			return nil, errors.Join(err, hold.Close())
		}
		return w.finish(ctx, w.walk(ctx))
	}()
	if err != nil {
		return nil, fmt.Errorf("resume %s: %w", o.Evidence, err)
	}
	return v, nil
}

// reopenRun makes of an evidence folder the walk that it is of.
func reopenRun(ctx context.Context, o RunOptions, hold *os.File) (_ *walk, err error) {
	r, err := reopenPlan(&o)
	if err != nil {
		return nil, err
	}
	if err := r.unchanged(ctx, &o); err != nil {
		return nil, err
	}
	if err := o.Plan.checkDescriptors(); err != nil {
		return nil, err
	}
	past, err := newPast(o.Evidence)
	if err != nil {
		return nil, err
	}
	l, summary, err := reopenLedger(o.Evidence, o.Now, past.take)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.leave())
		}
	}()
	if err := errors.Join(past.isOf(o.Evidence, o.Plan), past.isWhole(o.Evidence)); err != nil {
		return nil, err
	}
	w := newWalk(o, r, past.open.Run, hold)
	w.ledger = l
	ended, err := leftovers{o.Bus, o.Root, w.run, past.starts, past.processes}.end(ctx)
	if err != nil {
		return nil, err
	}
	notes := summary.Notes
	for _, what := range ended {
		notes = append(notes, "ended what was left of it: "+what)
	}
	if o.Runner != past.open.Runner {
		notes = append(notes, fmt.Sprintf("begun by %s", cmp.Or(past.open.Runner, "an unnamed runner")))
	}
	if err := past.judge(w); err != nil {
		return nil, err
	}
	if err := l.append(recordResume, resumeRecord{Runner: o.Runner, Note: strings.Join(notes, "; ")}); err != nil {
		return nil, err
	}
	return w, l.sync()
}

// reopenPlan reads plan and resolved plan of an evidence folder.
func reopenPlan(o *RunOptions) (*resolved, error) {
	raw, err := readInput(filepath.Join(o.Evidence, PlanName))
	if err != nil {
		return nil, fmt.Errorf("it is not the evidence of a run: %w", err)
	}
	if o.Plan, err = ParsePlan(raw); err != nil {
		return nil, err
	}
	raw, err = readInput(filepath.Join(o.Evidence, ResolvedName))
	if err != nil {
		return nil, fmt.Errorf("it is not the evidence of a run: %w", err)
	}
	r := &resolved{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", ResolvedName, err)
	}
	if len(r.Arms) != len(o.Plan.Arms) || r.Schema != ledgerSchema {
		return nil, fmt.Errorf("read %s: it is not the resolved plan of schema %d of %s", ResolvedName, ledgerSchema, PlanName)
	}
	o.Plan.path = r.PlanPath
	r.Plan = o.Plan
	return r, nil
}

// unchanged looks for the packages of a run and compares every digest.
func (r *resolved) unchanged(ctx context.Context, o *RunOptions) error {
	if o.Find == nil {
		return fmt.Errorf("%w: there is no store to look for its packages in", ErrPlan)
	}
	r.sums = newSums()
	files := []identity{r.Model}
	if r.Reference != nil {
		files = append(files, r.Reference.Ledger)
	}
	found := map[string]*store.Package{}
	for i := range r.Arms {
		a := &r.Arms[i]
		pkg := found[a.Package.Name]
		if pkg == nil {
			var err error
			if pkg, err = o.Find(ctx, a.Package.Name); err != nil {
				return fmt.Errorf("find package %s: %w", a.Package.Name, err)
			}
			if pkg.Digest != a.Package.Digest {
				return fmt.Errorf("%w: package %s has the digest %s, it had %s", ErrChanged, pkg.Name, pkg.Digest, a.Package.Digest)
			}
			found[pkg.Name] = pkg
		}
		a.pkg = pkg
		files = append(files, a.Server)
		if n := a.Neighbour; n != nil {
			files = append(files, n.Programs...)
			if n.Model != nil {
				files = append(files, *n.Model)
			}
		}
	}
	o.Package = found[r.Package.Name]
	if o.Package == nil {
		o.Package = r.Arms[0].pkg
	}
	for _, f := range files {
		now, err := r.sums.identify(ctx, "file", f.Name)
		if err != nil {
			return err
		}
		if now.Digest != f.Digest {
			return fmt.Errorf("%w: %s has the digest %s, it had %s", ErrChanged, f.Name, now.Digest, f.Digest)
		}
	}
	for _, pkg := range found {
		if err := r.sums.hold(pkg); err != nil {
			return err
		}
	}
	return nil
}

// planned finds the life of the plan that a start was of.
func (w *walk) planned(s startRecord) (PlannedLife, bool) {
	for _, p := range w.lives {
		if p.Arm == s.Planned && p.Life == s.Life && p.Name == s.Name {
			return p, true
		}
	}
	return PlannedLife{}, false
}

// size tells where the next record will begin, in bytes.
func (l *ledger) size() (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := l.f.Stat()
	if err != nil {
		return 0, fmt.Errorf("measure the ledger: %w", err)
	}
	return info.Size(), nil
}

// leave syncs and closes the file without a closing record: the run can go on.
// A ledger that has failed has said so.
func (l *ledger) leave() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.err != nil {
		return l.f.Close()
	}
	return errors.Join(l.flush(), l.f.Close())
}

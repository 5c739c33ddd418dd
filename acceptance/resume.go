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
// the run still goes on, and ErrLedger if it has ended or its ledger is damaged.
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
	past := &past{}
	l, summary, err := reopenLedger(o.Evidence, o.Now, past.take)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.leave())
		}
	}()
	if err := past.isOf(o.Evidence, o.Plan); err != nil {
		return nil, err
	}
	w := newWalk(o, r, past.open.Run, hold)
	w.ledger, w.before = l, past.before
	ended, err := endLeftovers(ctx, o, w.run, past.processes)
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
	if o.Plan, err = parsePlan(raw); err != nil {
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
	known := newSums()
	files := []identity{r.Model}
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
		now, err := known.identify(ctx, f.Name, f.Name)
		if err != nil {
			return err
		}
		if now.Digest != f.Digest {
			return fmt.Errorf("%w: %s has the digest %s, it had %s", ErrChanged, f.Name, now.Digest, f.Digest)
		}
	}
	return nil
}

// past is what the ledger of a run tells a runner that goes on.
type past struct {
	open      openRecord
	before    HostFacts
	processes []processRecord // of the life that was not ended
	starts    []startRecord
	requests  []int // of each life
	offsets   []int64
	size      int64
}

// take takes one record.
func (p *past) take(r *record) error {
	at := p.size
	p.size += int64(r.size)
	var err error
	switch r.Kind {
	case recordOpen:
		err = json.Unmarshal(r.Data, &p.open)
	case recordHost:
		var h *hostRecord
		if h, err = decode[hostRecord](r.line); err == nil && h.When == "before" {
			p.before = h.Host
		}
	case recordStart:
		var s *startRecord
		if s, err = decode[startRecord](r.line); err == nil {
			p.starts, p.requests, p.offsets = append(p.starts, *s), append(p.requests, 0), append(p.offsets, at)
			p.processes = nil
		}
	case recordProcess:
		var q *processRecord
		if q, err = decode[processRecord](r.line); err == nil {
			p.processes = append(p.processes, *q)
		}
	case recordEnd:
		p.processes = nil
	case recordRequest:
		if n := len(p.requests); n > 0 {
			p.requests[n-1]++
		}
	}
	return err
}

// isOf looks whether ledger and plan belong together.
func (p *past) isOf(dir string, plan *Plan) error {
	resolved, err := readInput(filepath.Join(dir, ResolvedName))
	if err != nil {
		return err
	}
	if p.open.PlanFileSHA256 != plan.FileSHA256() || p.open.PlanSHA256 != sumOf(resolved) {
		return fmt.Errorf("%w: %s or %s is not the one that the ledger names", ErrChanged, PlanName, ResolvedName)
	}
	return nil
}

// judge judges the lives so far.
func (p *past) judge(w *walk) error {
	for i, start := range p.starts {
		planned, ok := w.planned(start)
		if !ok {
			return fmt.Errorf("%w: the ledger has a life of arm %s that the plan does not have", ErrChanged, start.Name)
		}
		to := p.size
		if i+1 < len(p.offsets) {
			to = p.offsets[i+1]
		}
		state, err := judgeLife(w.plan.of(planned), w.faces, filepath.Join(w.o.Evidence, LedgerName), p.offsets[i], to)
		if err != nil {
			return err
		}
		w.past = append(w.past, attempt{start, state})
		w.tracker.inherit(planned.Load, state, p.requests[i])
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
func (l *ledger) leave() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return errors.Join(l.flush(), l.f.Close())
}

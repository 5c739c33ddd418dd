package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// SwitchOptions says how a switch is done.
type SwitchOptions struct {
	Restart bool          // restart the service afterwards, with health check and return
	Watch   time.Duration // how long the restarted service is watched after it answered; 0: not
	DryRun  bool          // only say what would happen
	Verify  bool          // check every file of the package, also when nothing looks touched

	// Notes adds to what the owner should know, from the package that is armed ("" for none): such as a downgrade.
	Notes func(from string) []string
	// Proposal is the one that is taken: it must be of this unit and of exactly this package.
	Proposal *Proposed
}

// Switch arms a package for a unit: its next start uses it. Nothing is restarted unless opts say so. The error
// wraps [ErrRefused] where a setting of the unit would win, the package is blocked, the service is held or the host
// lacks something; then nothing has changed.
func (h *Host) Switch(ctx context.Context, unit string, pkg *store.Package, opts SwitchOptions) (*Outcome, error) {
	act := fmt.Sprintf("switch %s to %s", unit, pkg.Name)
	if opts.Restart {
		act += " and restart it"
	}
	var shown findings
	return h.perform(ctx, unit, act, opts.DryRun, func(s *session) ([]string, error) {
		_, p, err := s.workOut(ctx, pkg, opts)
		if err != nil {
			return nil, fmt.Errorf("switch %s to %s: %w", s.unit, pkg.Name, err)
		}
		shown = findings{true, p.from, p.notes}
		if p.next != nil {
			return shown.notes, nil
		}
		if !opts.Restart {
			return nil, errNothingToAsk
		}
		return append(shown.notes, fmt.Sprintf("%s is armed already", pkg.Name)), nil
	}, func(s *session, out *Outcome) error {
		if err := s.arm(ctx, pkg, opts, shown, out); err != nil || opts.DryRun || !opts.Restart {
			return err
		}
		return s.restart(ctx, opts.Watch, out)
	})
}

// arm is the switch itself: steps 2 to 9 of the design, under the locks.
func (s *session) arm(ctx context.Context, pkg *store.Package, opts SwitchOptions, shown findings, out *Outcome) error {
	h := s.h
	v, plan, err := s.workOut(ctx, pkg, opts)
	if err == nil {
		err = shown.same(plan)
	}
	if err != nil {
		return fmt.Errorf("switch %s to %s: %w", s.unit, pkg.Name, err)
	}
	out.From, out.To, out.DryRun = plan.from.Name, pkg.Name, opts.DryRun
	out.Notes = append(out.Notes, plan.notes...)
	if plan.next == nil {
		out.Notes = append(out.Notes, fmt.Sprintf("%s is armed already", pkg.Name))
	}
	if opts.DryRun {
		return nil
	}
	if plan.next != nil {
		if err := s.write(ctx, v, plan, out); err != nil {
			return fmt.Errorf("switch %s to %s: %w", s.unit, pkg.Name, err)
		}
		h.log().Info("switched", "unit", s.unit, "from", out.From, "to", out.To)
	}
	s.fulfil(refOf(pkg), out)
	return nil
}

// workOut checks all that can be checked before the first change, and works the switch out.
func (s *session) workOut(ctx context.Context, pkg *store.Package, opts SwitchOptions) (*view, *plan, error) {
	if err := opts.Proposal.of(s.h.Scope, s.unit, refOf(pkg)); err != nil {
		return nil, nil, err
	}
	if err := s.h.unheld(s.unit); err != nil {
		return nil, nil, err
	}
	v, p, err := s.scan(ctx, pkg, opts.Verify, opts.Notes)
	if err != nil || !opts.Restart {
		return v, p, err
	}
	p.notes = append(p.notes, s.takesDown(ctx)...)
	return v, p, s.checkable(ctx, v.loaded)
}

// scan is the whole look before a switch, less who may do it.
func (s *session) scan(ctx context.Context, pkg *store.Package, verify bool, notes func(from string) []string) (*view, *plan, error) {
	// It may have been removed since the caller looked; from here on the store's lock keeps it.
	if now := s.place.pkg(pkg.Path); now == nil || now.Digest != pkg.Digest {
		return nil, nil, store.ErrNotInstalled
	}
	v, p, err := s.prepare(ctx, pkg, verify)
	if err == nil && notes != nil && !p.from.isZero() && !p.from.same(refOf(pkg)) {
		p.notes = append(p.notes, notes(p.from.Name)...)
	}
	return v, p, err
}

// prepare does all that comes before the first change. The package is verified and other units are asked for
// pending edits while the switch is worked out.
func (s *session) prepare(ctx context.Context, pkg *store.Package, all bool) (*view, *plan, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var others []string
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.h.verify(gctx, pkg, all) })
	group.Go(func() (err error) { others, err = s.m.Pending(gctx, s.unit); return err })
	var p *plan
	v, err := s.view(ctx)
	if err == nil {
		p, err = s.plan(ctx, v, pkg)
	}
	if err != nil {
		cancel()
		_ = group.Wait()
		return nil, nil, err
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for _, other := range others {
		if p.next != nil {
			p.notes = append(p.notes, fmt.Sprintf("the reload also loads pending edits of %s", other))
		}
	}
	return v, p, nil
}

// verify checks a package as far as it must be before a service is switched to it.
func (h *Host) verify(ctx context.Context, pkg *store.Package, all bool) error {
	if pkg.State == store.StateBroken {
		return fmt.Errorf("%w: %s: %s", packager.ErrIntegrity, pkg.Detail, mend(pkg))
	}
	digest, err := pkg.Manifest.Digest()
	if err != nil {
		return err
	}
	if digest != pkg.Digest {
		return fmt.Errorf("%w: its manifest has the digest %s, not %s", packager.ErrIntegrity, digest, pkg.Digest)
	}
	if !all && pkg.State == store.StateOK {
		return nil
	}
	result, err := h.Store.Verify(ctx, pkg, nil)
	if err != nil {
		return err
	}
	// What the host lacks is no damage: a switch refuses that by itself, and a rollback goes on.
	if damaged := result.Damaged(); len(damaged) > 0 {
		return fmt.Errorf("%w: %s: %s (%d problems): %s", packager.ErrIntegrity, damaged[0].Path, damaged[0].What, len(damaged), mend(pkg))
	}
	return nil
}

// mend says how a damaged package becomes whole.
func mend(pkg *store.Package) string {
	if pkg.Imported {
		return fmt.Sprintf("restore the folder, or take it in as it is now (1bit pkg import %s says how)", pkg.Path)
	}
	return fmt.Sprintf("1bit pkg verify %s shows them all; remove it and install it again", pkg.Name)
}

// write puts a plan on disk, has it loaded and reads it back. On any failure the old files are back in place.
func (s *session) write(ctx context.Context, v *view, p *plan, out *Outcome) error {
	next, err := p.next.Encode()
	if err != nil {
		return err
	}
	var prev []byte
	if p.prev != nil {
		if prev, err = p.prev.Encode(); err != nil {
			return err
		}
	}
	intent, err := s.h.intend(ctx, entry{
		Unit: s.unit, Act: p.next.Act, From: p.from.Name, To: p.next.Package.Name, Digest: p.next.Package.Digest,
		Old: sum(v.activeData), New: sum(next),
	})
	if err != nil {
		return fmt.Errorf("record the intent: %w", unwritable(s.h.StateDir, err))
	}
	ctx, cancel := begun(ctx)
	defer cancel()
	files := pair{s.h.dropInDir(s.unit)}
	unsure, err := s.replace(ctx, files, p.next, next, prev)
	if err != nil {
		if rerr := s.restore(ctx, files, next, v.activeData); rerr != nil {
			return errors.Join(err, rerr) // the intent stays open, for the next command
		}
		if jerr := s.h.close(ctx, intent, closing{phase: phaseAbort, reason: err.Error()}); jerr != nil {
			s.h.log().Warn("abort not recorded", "unit", s.unit, "error", jerr)
		}
		return err
	}
	out.Changed = true
	out.Notes = append(out.Notes, unsure...)
	if err := files.clean(); err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("the files of the state before could not be removed, the next command does it: %v", err))
	} else if p.prev == nil {
		// A .prev that remembered blocks has nothing left to remember: they are in the active file now.
		if err := files.removePrev(); err != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("%s could not be removed: %v", files.path(prevName), err))
		}
	}
	if err := s.h.close(ctx, intent, closing{phase: phaseCommit, result: resultArmed}); err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("done, but not recorded: %v", err))
	}
	return nil
}

// replace stages the new pair, puts it in place, and has it loaded and read back.
func (s *session) replace(ctx context.Context, files pair, d *DropIn, next, prev []byte) (unsure []string, err error) {
	if err := files.stage(next, prev); err != nil {
		return nil, unwritable(files.dir, err)
	}
	if err := files.swap(); err != nil {
		return nil, fmt.Errorf("put the drop-in in place: %w", err)
	}
	if err := s.reload(ctx); err != nil {
		return nil, err
	}
	if s.loaded, unsure, err = s.h.readBack(ctx, s.m, s.unit, d, s.specs); err != nil {
		return nil, fmt.Errorf("read back what was loaded: %w", err)
	}
	if s.proof != nil {
		if err := s.proof(s.loaded); err != nil {
			return nil, fmt.Errorf("compare what was loaded with what was before: %w", err)
		}
	}
	return unsure, nil
}

// restore goes back to the files of before, wherever replace got to, and has them loaded.
func (s *session) restore(ctx context.Context, files pair, next, old []byte) error {
	err := errors.Join(files.revert(next, old), s.reload(ctx))
	if err == nil {
		err = files.clean()
	}
	if err != nil {
		return fmt.Errorf("go back to the state before (the next command tries again): %w", err)
	}
	return nil
}

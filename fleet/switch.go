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
}

// Switch arms a package for a unit: its next start uses it. Nothing is restarted unless opts say so. The error
// wraps [ErrRefused] where a setting of the unit would win, the package is blocked or the host lacks something;
// then nothing has changed.
func (h *Host) Switch(ctx context.Context, unit string, pkg *store.Package, opts SwitchOptions) (*Outcome, error) {
	act := fmt.Sprintf("switch %s to %s", unit, pkg.Name)
	if opts.Restart {
		act += " and restart it"
	}
	s, err := h.begin(ctx, unit, act, opts.DryRun)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		if err := s.arm(ctx, pkg, opts, out); err != nil || opts.DryRun || !opts.Restart {
			return err
		}
		return s.restart(ctx, opts.Watch, out)
	})
}

// arm is the switch itself: steps 2 to 9 of the design, under the locks.
func (s *session) arm(ctx context.Context, pkg *store.Package, opts SwitchOptions, out *Outcome) error {
	h := s.h
	// It may have been removed since the caller looked; from here on the store's lock keeps it.
	if now := s.place.pkg(pkg.Path); now == nil || now.Digest != pkg.Digest {
		return fmt.Errorf("switch %s to %s: %w", s.unit, pkg.Name, store.ErrNotInstalled)
	}
	v, plan, err := s.prepare(ctx, pkg, opts.Verify)
	if err != nil {
		return fmt.Errorf("switch %s to %s: %w", s.unit, pkg.Name, err)
	}
	out.From, out.To, out.DryRun = plan.from.Name, pkg.Name, opts.DryRun
	out.Notes = append(out.Notes, plan.notes...)
	if opts.DryRun || plan.next == nil {
		if plan.next == nil {
			out.Notes = append(out.Notes, fmt.Sprintf("%s is armed already", pkg.Name))
		}
		return nil
	}
	if err := s.write(ctx, v, plan, out); err != nil {
		return fmt.Errorf("switch %s to %s: %w", s.unit, pkg.Name, err)
	}
	h.log().Info("switched", "unit", s.unit, "from", out.From, "to", out.To)
	return nil
}

// prepare does all that comes before the first change. The package is verified and other units are asked for
// pending edits while the switch is worked out.
func (s *session) prepare(ctx context.Context, pkg *store.Package, all bool) (*view, *plan, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var others []string
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.h.verify(gctx, pkg, all) })
	group.Go(func() (err error) {
		others, err = s.m.Pending(gctx)
		return err
	})
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
		if other != s.unit && p.next != nil {
			p.notes = append(p.notes, fmt.Sprintf("the reload also loads pending edits of %s", other))
		}
	}
	return v, p, nil
}

// verify checks a package as far as it must be before a service is switched to it.
func (h *Host) verify(ctx context.Context, pkg *store.Package, all bool) error {
	if pkg.State == store.StateBroken {
		return fmt.Errorf("%w: %s", packager.ErrIntegrity, pkg.Detail)
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
		return fmt.Errorf("%w: %s: %s (%d problems)", packager.ErrIntegrity, damaged[0].Path, damaged[0].What, len(damaged))
	}
	return nil
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
		Unit: s.unit, Act: actSwitch, From: p.from.Name, To: p.next.Package.Name, Digest: p.next.Package.Digest,
		Old: sum(v.activeData), New: sum(next),
	})
	if err != nil {
		return fmt.Errorf("record the intent: %w", err)
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
		return nil, fmt.Errorf("write the drop-in: %w", err)
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
	return unsure, nil
}

// restore goes back to the files of before, wherever replace got to, and has them loaded.
func (s *session) restore(ctx context.Context, files pair, next, old []byte) error {
	if err := errors.Join(files.revert(next, old), s.reload(ctx)); err != nil {
		return fmt.Errorf("go back to the state before (the next command tries again): %w", err)
	}
	return nil
}

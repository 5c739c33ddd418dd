package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// RollbackOptions says how a rollback is done.
type RollbackOptions struct {
	Restart bool          // restart the service afterwards, with health check
	Watch   time.Duration // how long the restarted service is watched after it answered; 0: not
}

// Rollback arms the last package that the unit was seen serving from before the armed one, and blocks the armed
// one. Repeated, it changes nothing. It needs neither a manager (Outcome.Loaded is then false), nor space on the
// disk, nor the journal. It refuses only a target that is damaged; the error then wraps [packager.ErrIntegrity].
func (h *Host) Rollback(ctx context.Context, unit string, opts RollbackOptions) (*Outcome, error) {
	act := "roll back " + unit
	if opts.Restart {
		act += " and restart it"
	}
	s, err := h.beginRollback(ctx, unit, act)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		if err := s.disarm(ctx, actRollback, "", out); err != nil {
			return fmt.Errorf("roll back %s: %w", s.unit, err)
		}
		if !opts.Restart {
			return nil
		}
		if s.m == nil {
			return fmt.Errorf("restart %s: %w", s.unit, systemd.ErrNoBus)
		}
		return s.restart(ctx, opts.Watch, out)
	})
}

// beginRollback is begin for an act that goes on where others must stop: without a manager, without the store's
// lock file.
func (h *Host) beginRollback(ctx context.Context, unit, act string) (*session, error) {
	s := &session{h: h, began: h.Now(), place: h.place()}
	ok := false
	defer func() {
		if !ok {
			s.end()
		}
	}()
	fail := func(err error) (*session, error) { return nil, fmt.Errorf("%s: %w", act, err) }
	var err error
	if s.unit, err = unitName(unit); err != nil {
		return fail(err)
	}
	m, err := h.Connect(ctx)
	switch {
	case err == nil:
		s.m = m
		s.undo = append(s.undo, m.Close)
		if s.specs, err = m.Specifiers(ctx); err != nil {
			return fail(err)
		}
		u, err := m.Unit(ctx, s.unit)
		if err == nil {
			s.unit = u.ID
		} else if !errors.Is(err, systemd.ErrNoUnit) || !h.exists(s.unit) {
			return fail(err)
		}
	case errors.Is(err, systemd.ErrNoBus) && h.exists(s.unit):
		s.notes = append(s.notes, fmt.Sprintf("written, not loaded: %v", err))
	default:
		return fail(err)
	}
	if !h.exists(s.unit) {
		return fail(fmt.Errorf("%w: %s was never switched by this program", ErrRefused, s.unit))
	}
	if err := h.authorise(act); err != nil {
		return fail(err)
	}
	unlock, err := h.Store.LockShared(ctx)
	switch {
	case err == nil:
		s.undo = append(s.undo, unlock)
	case errors.Is(err, store.ErrBusy):
		return fail(err)
	default:
		s.notes = append(s.notes, fmt.Sprintf("the store is not locked meanwhile: %v", err))
	}
	unlock, err = h.lockUnit(ctx, s.unit)
	if err != nil {
		return fail(err)
	}
	s.undo = append(s.undo, unlock)
	notes, err := h.recover(ctx, s.m, s.unit)
	s.notes = append(s.notes, notes...)
	if err != nil {
		return fail(err)
	}
	ok = true
	return s, nil
}

// disarm puts the rollback file in place of the active one, or puts the active one away where there was none
// before it. act is actRollback or actReturn; reason is why the package is blocked, "" for a rollback by hand.
func (s *session) disarm(ctx context.Context, act, reason string, out *Outcome) error {
	files := pair{s.h.dropInDir(s.unit)}
	v := &view{place: s.place}
	if err := v.readPair(files); err != nil {
		return err
	}
	if errors.Is(v.activeErr, ErrRefused) {
		return v.activeErr
	}
	switch {
	case v.activeErr != nil:
		out.Notes = append(out.Notes, fmt.Sprintf("it was edited: %v", v.activeErr))
	case v.active == nil && v.prev == nil:
		return fmt.Errorf("%w: there is no switch to roll back", ErrRefused)
	case v.active == nil:
		out.Notes = append(out.Notes, fmt.Sprintf("%s was rolled back already; nothing of this program is in force", v.prev.Package.Name))
		return nil
	case !v.active.RolledBackFrom.isZero():
		out.From, out.To = v.active.Package.Name, v.active.Package.Name
		out.Notes = append(out.Notes, fmt.Sprintf("%s was rolled back to %s already", v.active.RolledBackFrom.Name, v.active.Package.Name))
		return nil
	}
	w, err := s.away(v, files)
	if err != nil {
		return err
	}
	if err := s.verifyTarget(ctx, w.to, w.from); err != nil {
		return err
	}
	out.From, out.To = w.from.Name, w.to.Name
	if pkg := s.place.pkg(w.to.Path); pkg != nil {
		for _, problem := range s.h.missing(pkg.Manifest) {
			out.Notes = append(out.Notes, fmt.Sprintf("%s wants something of this host: %s", w.to.Name, problem))
		}
	}
	return s.putAway(ctx, files, v, w, act, reason, out)
}

// away is a rollback worked out.
type away struct {
	from, to PackageRef
	file     []byte // what comes in place, nil: nothing does
	rebuilt  bool   // .prev is missing or another switch's: file has to be written
}

// away works out where a rollback goes.
func (s *session) away(v *view, files pair) (away, error) {
	if v.active == nil { // edited: only .prev can say
		if v.prev != nil && !v.prev.RolledBackFrom.isZero() {
			data, err := files.read(prevName)
			return away{from: v.prev.RolledBackFrom, to: v.prev.Package, file: data}, err
		}
		return away{}, nil
	}
	w := away{from: v.active.Package, to: v.active.ServedBefore}
	if v.active.Rollback == rollbackRemove {
		return w, nil
	}
	if d := v.rollbackFile(); d != nil {
		data, err := files.read(prevName)
		w.to, w.file = d.Package, data
		return w, err
	}
	// The file that was written ahead is gone. The active one still says where to go.
	if w.to.isZero() {
		return w, nil
	}
	p := past{active: v.active}
	next := *v.active
	d, err := p.file(w.to, &next, func(env []Assignment, to PackageRef) ([]Assignment, error) {
		return binding(env).move(v.place, to.Path)
	})
	if err != nil {
		return w, err
	}
	w.rebuilt = true
	w.file, err = d.Encode()
	return w, err
}

// verifyTarget refuses a target that is not there or not as its digest says.
func (s *session) verifyTarget(ctx context.Context, to, from PackageRef) error {
	if to.isZero() {
		return nil
	}
	err := func() error {
		pkg := s.place.pkg(to.Path)
		if pkg == nil {
			if _, err := os.Stat(to.Path); err != nil {
				return fmt.Errorf("%w: %w", packager.ErrIntegrity, err)
			}
			return nil // never imported: nothing to compare with
		}
		if to.Digest != "" && pkg.Digest != to.Digest {
			return fmt.Errorf("%w: it has the digest %s, not %s", packager.ErrIntegrity, pkg.Digest, to.Digest)
		}
		return s.h.verify(ctx, pkg, false)
	}()
	if err == nil {
		return nil
	}
	var others []string
	if all, lerr := s.h.Store.List(ctx); lerr == nil {
		for _, p := range all {
			if p.State == store.StateOK && !refOf(p).same(to) && !refOf(p).same(from) {
				others = append(others, p.Name)
			}
		}
	}
	offer := "no other good package is installed"
	if len(others) > 0 {
		offer = "switch to one of these instead: " + strings.Join(others, ", ")
	}
	return fmt.Errorf("%s cannot be gone back to: %w; %s", to.Name, err, offer)
}

// putAway makes the change of a rollback: one rename, which needs no space. Everything around it (the records, a
// better reason in the block, the reload) only notes its failures.
func (s *session) putAway(ctx context.Context, files pair, v *view, w away, act, reason string, out *Outcome) error {
	ctx, cancel := begun(ctx)
	defer cancel()
	note := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	w = s.withReason(files, w, reason)
	intent, err := s.h.intend(ctx, entry{
		Unit: s.unit, Act: act, From: w.from.Name, To: w.to.Name, Digest: w.to.Digest,
		Old: sum(v.activeData), New: sum(w.file), Reason: reason,
	})
	recorded := err == nil
	if err != nil {
		note("not recorded: %v", err)
	}
	if w.rebuilt {
		err = atomicfile.Write(files.path(prevName), w.file, 0o644)
	} else {
		err = nil
	}
	if err == nil {
		err = files.putAway(w.file != nil)
	}
	if now, rerr := files.read(dropInName); rerr != nil || sum(now) != sum(w.file) {
		if err == nil {
			err = errors.New("the file in place is not the expected one")
		}
		if recorded {
			_ = s.h.close(ctx, intent, closing{phase: phaseAbort, reason: err.Error()})
		}
		return errors.Join(err, rerr)
	}
	if err != nil {
		note("it may not outlive a power loss: %v", err)
	}
	out.Changed = true
	if w.file == nil && v.active != nil {
		// The file lies beside as .prev now and remembers the block, with the reason where there is room for it.
		v.active.block(w.from, or(reason, blockedByRollback))
		if data, err := v.active.Encode(); err == nil {
			_ = atomicfile.Write(files.path(prevName), data, 0o644)
		}
	}
	result := s.load(ctx, w, out)
	s.h.log().Info("rolled back", "unit", s.unit, "act", act, "from", w.from.Name, "to", w.to.Name, "reason", reason)
	if recorded {
		if err := s.h.close(ctx, intent, closing{phase: phaseCommit, result: result, reason: reason}); err != nil {
			note("not recorded: %v", err)
		}
	}
	return nil
}

// withReason puts the reason of the block into the files where there is room for it.
func (s *session) withReason(files pair, w away, reason string) away {
	if reason == "" || w.file == nil {
		return w
	}
	d, err := DecodeDropIn(w.file)
	if err != nil {
		return w
	}
	d.block(w.from, reason)
	data, err := d.Encode()
	if err != nil {
		return w
	}
	if w.rebuilt {
		w.file = data
	} else if atomicfile.Write(files.path(prevName), data, 0o644) == nil {
		w.file = data
	}
	return w
}

// load has the change loaded and says how that went.
func (s *session) load(ctx context.Context, w away, out *Outcome) (result string) {
	if s.m == nil {
		out.Loaded = false
		return resultWritten
	}
	if err := s.reload(ctx); err != nil {
		out.Loaded = false
		out.Notes = append(out.Notes, fmt.Sprintf("written, not loaded: %v", err))
		return resultWritten
	}
	if w.file != nil {
		d, err := DecodeDropIn(w.file)
		if err == nil {
			s.loaded, _, err = s.h.readBack(ctx, s.m, s.unit, d, s.specs)
		}
		if err != nil {
			out.Notes = append(out.Notes, err.Error())
		}
	}
	return resultArmed
}

// putAway exchanges the active file with .prev, or moves it there where no file of ours comes in its place.
func (p pair) putAway(exchange bool) error {
	if exchange {
		return atomicfile.Exchange(p.path(prevName), p.path(dropInName))
	}
	err := atomicfile.Move(p.path(dropInName), p.path(prevName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

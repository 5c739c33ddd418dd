package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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
	if s.m, err = h.Connect(ctx); err == nil {
		s.undo = append(s.undo, s.m.Close)
		err = s.known(ctx)
	}
	if err != nil {
		if ctx.Err() != nil || !h.exists(s.unit) {
			return fail(err)
		}
		s.m = nil
		s.notes = append(s.notes, fmt.Sprintf("written, not loaded: %v", err))
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
	if err := s.lock(ctx); err != nil {
		return fail(err)
	}
	notes, err := h.recover(ctx, s.m, s.unit)
	if err != nil && s.m != nil { // the manager may be what is wrong: the files can be settled without it
		notes = append(notes, err.Error())
		var more []string
		more, err = h.recover(ctx, nil, s.unit)
		notes = append(notes, more...)
	}
	if err != nil {
		notes = append(notes, err.Error())
	}
	s.notes = append(s.notes, notes...)
	ok = true
	return s, nil
}

// known asks the manager for what a rollback can do without. A unit of which only our files are left is no error.
func (s *session) known(ctx context.Context) (err error) {
	if s.specs, err = s.m.Specifiers(ctx); err != nil {
		return err
	}
	u, err := s.m.Unit(ctx, s.unit)
	if err == nil {
		s.unit = u.ID
	} else if errors.Is(err, systemd.ErrNoUnit) && s.h.exists(s.unit) {
		err = nil
	}
	return err
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
	if v.active == nil && v.activeErr == nil && v.prev == nil && v.prevErr == nil {
		return fmt.Errorf("%w: there is no switch to roll back", ErrRefused)
	}
	w, done := v.away()
	if done != "" {
		out.From, out.To = w.to.Name, w.to.Name
		out.Notes = append(out.Notes, done)
		return nil
	}
	if w.rebuilt {
		d, err := v.rebuild(w.to)
		if err == nil {
			w.file, err = d.Encode()
		}
		if err != nil {
			return err
		}
	}
	if err := s.verifyTarget(ctx, w.to, w.from); err != nil {
		return err
	}
	if w.file == nil {
		w.from, w.to = s.bare(ctx, w)
	}
	out.From, out.To = w.from.Name, w.to.Name
	if pkg := s.place.pkg(w.to.Path); pkg != nil {
		for _, problem := range s.h.missing(pkg.Manifest) {
			out.Notes = append(out.Notes, fmt.Sprintf("%s wants something of this host: %s", w.to.Name, problem))
		}
	}
	return s.putAway(ctx, files, v, w, act, reason, out)
}

// bare names what is armed, and what the unit's own files arm when ours is gone, as far as that can be told.
func (s *session) bare(ctx context.Context, w away) (from, to PackageRef) {
	if s.m == nil {
		return w.from, w.to
	}
	v, err := s.view(ctx)
	if err != nil {
		return w.from, w.to
	}
	if from = w.from; from.isZero() {
		from = v.armed.pkg(v.place)
	}
	settings, err := v.without()
	if err != nil {
		return from, w.to
	}
	return from, ofSettings(settings, v.place).pkg(v.place)
}

// away is a rollback worked out.
type away struct {
	from, to PackageRef
	file     []byte // what comes in place, nil: nothing does
	rebuilt  bool   // .prev is missing or another switch's: file has to be made, and written
}

// away decides where a rollback goes, from what our files say alone. done says why it changes nothing.
func (v *view) away() (w away, done string) {
	switch a := v.active; {
	case a == nil && v.activeErr == nil:
		name := "a package"
		if v.prev != nil {
			name = v.prev.Package.Name
		}
		return away{}, fmt.Sprintf("%s was rolled back already; nothing of this program is in force", name)
	case a == nil && v.prev != nil && !v.prev.rolledBack():
		// Only a rollback leaves such a .prev: it is what was put away.
		return away{}, fmt.Sprintf("%s was rolled back already, and what is in force cannot be read: %v", v.prev.Package.Name, v.activeErr)
	case a == nil && v.prev != nil:
		return away{from: v.prev.RolledBackFrom, to: v.prev.Package, file: v.prevData}, ""
	case a == nil:
		return away{}, ""
	case a.rolledBack():
		return away{to: a.Package}, fmt.Sprintf("%s was rolled back to %s already", a.RolledBackFrom.Name, a.Package.Name)
	}
	w = away{from: v.active.Package, to: v.active.ServedBefore}
	if v.active.Rollback == rollbackRemove {
		return w, ""
	}
	if d := v.rollbackFile(); d != nil {
		w.to, w.file = d.Package, v.prevData
		return w, ""
	}
	w.rebuilt = !w.to.isZero() // the file that was written ahead is gone, and the active one still says where to go
	return w, ""
}

// rebuild makes the file that a rollback of the active one puts in place.
func (v *view) rebuild(to PackageRef) (*DropIn, error) {
	next := *v.active
	return past{active: v.active}.file(to, &next, func(env []Assignment, to PackageRef) ([]Assignment, error) {
		return binding(env).move(v.place, to.Path)
	})
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
	// A return is no rollback by hand: another one may follow. The file that was written ahead does not know of
	// returns, so where there is room a better one comes in place.
	if file := s.returning(v, w, act, reason); file != nil {
		better := w
		better.file = file
		err := s.put(ctx, v, better, act, reason, out, func() error {
			return atomicfile.Write(files.path(dropInName), file, 0o644)
		})
		if err == nil {
			s.writeAhead(files, out)
			return nil
		}
		s.h.log().Info("return falls back on the file that was written ahead", "unit", s.unit, "error", err)
	}
	if w.file == nil || w.rebuilt {
		if err := s.setAside(files, v, out); err != nil {
			return err
		}
	}
	if w.file != nil && reason != "" {
		if file := withBlock(w.file, w.from, reason); w.rebuilt || atomicfile.Write(files.path(prevName), file, 0o644) == nil {
			w.file = file
		}
	}
	return s.put(ctx, v, w, act, reason, out, func() error {
		if w.rebuilt {
			if err := atomicfile.Write(files.path(prevName), w.file, 0o644); err != nil {
				return err
			}
		}
		if err := files.putAway(w.file != nil); err != nil || w.file != nil || v.active == nil {
			return err
		}
		// It lies beside as .prev now and remembers the block, with the reason where there is room for it.
		_ = atomicfile.Write(files.path(prevName), withBlock(v.activeData, w.from, or(reason, blockedByRollback)), 0o644)
		return nil
	})
}

// put makes a change and has it loaded, with its records around it.
func (s *session) put(ctx context.Context, v *view, w away, act, reason string, out *Outcome, change func() error) error {
	note := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	intent, err := s.h.intend(ctx, entry{
		Unit: s.unit, Act: act, From: w.from.Name, To: w.to.Name, Digest: w.to.Digest,
		Old: sum(v.activeData), New: sum(w.file), Reason: reason,
	})
	recorded := err == nil
	if err != nil {
		note("not recorded: %v", err)
	}
	err = change()
	if now, rerr := (pair{s.h.dropInDir(s.unit)}).read(dropInName); rerr != nil || sum(now) != sum(w.file) {
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
	if edited := or(errText(v.activeEdited), errText(v.activeErr)); edited != "" {
		note("it was edited by hand (%s): all of it lies in %s now", edited, prevName)
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

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// returning is the file that a return puts in place, nil where the act is none, or where a line of a person's would
// be lost.
func (s *session) returning(v *view, w away, act, reason string) []byte {
	if act != actReturn || w.file == nil || v.active == nil || v.activeEdited != nil {
		return nil
	}
	d, err := DecodeDropIn(w.file)
	if err != nil {
		return nil
	}
	d.Act, d.By, d.At = actReturn, s.h.User, s.h.Now().UTC().Truncate(time.Second)
	d.block(w.from, reason)
	data, err := d.Encode()
	if err != nil {
		return nil
	}
	return data
}

// writeAhead brings .prev up to date after a return: the file of the next rollback, or none where that removes
// ours. Where it fails a rollback makes that file itself.
func (s *session) writeAhead(files pair, out *Outcome) {
	v := &view{place: s.place}
	err := v.readPair(files)
	if err == nil && v.active != nil && v.prevErr == nil && v.prevEdited == nil {
		var d *DropIn
		switch {
		case v.active.Rollback == rollbackRemove || v.active.ServedBefore.isZero():
			err = files.removePrev()
		default:
			if d, err = v.rebuild(v.active.ServedBefore); err == nil {
				err = writeDropIn(files, prevName, d)
			}
		}
	}
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("the file of the next rollback is not written ahead: %v", err))
	}
}

// setAside makes way for a file that is put away as .prev: what lies there and is not plainly ours stays, under
// another name.
func (s *session) setAside(files pair, v *view, out *Outcome) error {
	why := v.prevErr
	if why == nil {
		why = v.prevEdited
	}
	if why == nil {
		return nil
	}
	as, err := files.setAside(prevName)
	if err != nil && as == "" {
		return err
	}
	out.Notes = append(out.Notes, fmt.Sprintf("what lay at %s is %s now (%v)", prevName, as, why))
	return nil
}

// withBlock adds a block to a file as one line, and leaves every other as it is.
func withBlock(file []byte, p PackageRef, reason string) []byte {
	if d, err := DecodeDropIn(file); err == nil {
		d.block(p, reason)
		if data, err := d.Encode(); err == nil {
			return data
		}
	}
	head, tail, ok := bytes.Cut(file, []byte("\n["+section+"]\n"))
	if !ok || p.isZero() {
		return file
	}
	line := fmt.Sprintf("\n[%s]\nBlocked=%s %s %s\n", section, quoteField(p.Name), quoteField(p.Digest), quoteField(reason))
	return slices.Concat(head, []byte(line), tail)
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
		d, _, err := readDropIn(w.file)
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

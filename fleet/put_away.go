package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/internal/atomicfile"
)

// putAway makes the change of a rollback or of its undoing: one rename, which needs no space, but for a way that
// writes both files anew. Everything around it (the records, a better reason in the block, the reload) only notes
// its failures.
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
	if w.way == wayAway || w.way == wayAnew || w.rebuilt {
		if err := s.setAside(files, v, out); err != nil {
			return err
		}
	}
	if w.way == wayExchange && !w.undo {
		w.file = s.blockIn(files, w, reason, out)
	}
	err := s.put(ctx, v, w, act, reason, out, func() error {
		switch w.way {
		case wayAnew:
			return files.renew(w.file, w.left, v.activeData)
		case wayBack:
			return atomicfile.Move(files.path(prevName), files.path(dropInName))
		case wayExchange:
			if w.rebuilt {
				if err := atomicfile.Write(files.path(prevName), w.file, 0o644); err != nil {
					return err
				}
			}
			return atomicfile.Exchange(files.path(prevName), files.path(dropInName))
		}
		err := atomicfile.Move(files.path(dropInName), files.path(prevName))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || v.active == nil {
			return err
		}
		// It lies beside as .prev now and remembers the block, with the reason where there is room for it.
		if err := atomicfile.Write(files.path(prevName), withBlock(v.activeData, w.from, or(reason, blockedByRollback)), 0o644); err != nil && v.active.rolledBack() {
			out.Notes = append(out.Notes, fmt.Sprintf("%s is not blocked: %v", w.from.Name, err))
		}
		return nil
	})
	if err == nil && w.undo {
		s.nearer(files, out)
	}
	return err
}

// nearer brings .prev up to date after the undoing of a rollback --again that passed a package over: the next
// rollback goes to that one. Where it fails, a rollback goes one further, or makes that file itself.
func (s *session) nearer(files pair, out *Outcome) {
	v := &view{place: s.place}
	if err := v.readPair(files); err != nil || v.prevErr != nil || v.prevEdited != nil {
		return
	}
	a, far := v.active, v.rollbackFile()
	if a == nil || a.rolledBack() || a.Rollback == rollbackRemove || a.ServedBefore.isZero() || far != nil && a.ServedBefore.same(far.Package) {
		return
	}
	d, err := v.rebuild(a.ServedBefore)
	if err == nil {
		if far != nil {
			d.ServedBefore, d.Rollback = far.Package, rollbackExchange
		}
		err = writeDropIn(files, prevName, d)
	}
	if err != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("the way back to %s is not written ahead: %v", a.ServedBefore.Name, err))
	}
}

// blockIn sees to it that the file of a rollback blocks what is left, and with the reason where there is one. It was
// written ahead with that block, but an owner may have lifted it while the rollback was in force.
func (s *session) blockIn(files pair, w away, reason string, out *Outcome) []byte {
	has := false
	if d, _, err := readDropIn(w.file); err == nil {
		_, has = blocked(d.Blocks, w.from)
	}
	if has && reason == "" || w.from.isZero() {
		return w.file
	}
	file := withBlock(w.file, w.from, or(reason, blockedByRollback))
	if w.rebuilt {
		return file
	}
	if err := atomicfile.Write(files.path(prevName), file, 0o644); err != nil {
		if !has {
			out.Notes = append(out.Notes, fmt.Sprintf("%s is not blocked: %v", w.from.Name, err))
		}
		return w.file
	}
	return file
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
	files := pair{s.h.dropInDir(s.unit)}
	if now, rerr := files.read(dropInName); rerr != nil || sum(now) != sum(w.file) {
		if err == nil {
			err = errors.New("the file in place is not the expected one")
		}
		if recorded {
			_ = s.h.close(ctx, intent, closing{phase: phaseAbort, reason: err.Error()})
		}
		return errors.Join(unwritable(files.dir, err), rerr)
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
	if p.isZero() {
		return file
	}
	if d, err := DecodeDropIn(file); err == nil {
		d.block(p, reason)
		if data, err := d.Encode(); err == nil {
			return data
		}
	}
	head, tail, ok := bytes.Cut(file, []byte("\n["+section+"]\n"))
	if !ok {
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
		return resultArmed
	}
	// The unit's own files decide now, and only the manager knows all of them.
	if v, err := s.view(ctx); err == nil {
		if armed := v.armedPackage().Name; armed != out.To {
			if out.To != "" {
				out.Notes = append(out.Notes, fmt.Sprintf("without our file it is armed with %s, not with %s as its files were read", orNothing(armed), out.To))
			}
			out.To = armed
		}
	}
	return resultArmed
}

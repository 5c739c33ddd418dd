package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/systemd"
)

// Unblock lifts the block of a package, by its name, so that the service may be switched to it again. The error
// wraps [fs.ErrNotExist] where it is not blocked.
func (h *Host) Unblock(ctx context.Context, unit, name string) (*Outcome, error) {
	act := fmt.Sprintf("unblock %s for %s", name, unit)
	return h.perform(ctx, unit, act, false, func(s *session) ([]string, error) {
		if _, err := s.mayUnblock(name); err != nil {
			return nil, fmt.Errorf("unblock %s for %s: %w", name, s.unit, err)
		}
		return nil, nil
	}, func(s *session, out *Outcome) error {
		if err := s.unblock(ctx, name, out); err != nil {
			return fmt.Errorf("unblock %s for %s: %w", name, s.unit, err)
		}
		return nil
	})
}

// mayUnblock reads our files of the unit, and refuses what is not blocked.
func (s *session) mayUnblock(name string) (*view, error) {
	v := &view{}
	if err := v.readPair(pair{s.h.dropInDir(s.unit)}); err != nil {
		return nil, err
	}
	if _, ok := blocked(v.blocks(), PackageRef{Name: name}); !ok && v.activeErr == nil {
		return nil, notBlocked{v.blocks()}
	}
	return v, v.foreign()
}

// notBlocked names what is.
type notBlocked struct{ blocks []Block }

func (e notBlocked) Error() string {
	if len(e.blocks) == 0 {
		return "it is not blocked, and nothing else is"
	}
	names := make([]string, len(e.blocks))
	for i, b := range e.blocks {
		names[i] = b.Name
	}
	return "it is not blocked: blocked is " + strings.Join(names, ", ")
}

func (notBlocked) Unwrap() error { return fs.ErrNotExist }

func (s *session) unblock(ctx context.Context, name string, out *Outcome) error {
	v, err := s.mayUnblock(name)
	if err != nil {
		return err
	}
	files, ref := pair{s.h.dropInDir(s.unit)}, PackageRef{Name: name}
	out.Changed = true
	if lone := v.lone(); lone != nil {
		lone.Blocks, lone.Lifted = without(lone.Blocks, ref), lone.Lifted || lone.Package.same(ref)
		return writeDropIn(files, prevName, lone)
	}
	// .prev first: neither the rollback nor the undo that puts it in place must bring the block back.
	if d := v.prev; d != nil {
		if _, has := blocked(d.Blocks, ref); has {
			d.Blocks = without(d.Blocks, ref)
			if err := writeDropIn(files, prevName, d); err != nil {
				return err
			}
		}
	}
	v.active.Blocks = without(v.active.Blocks, ref)
	if err := writeDropIn(files, dropInName, v.active); err != nil {
		return err
	}
	if s.m == nil {
		return nil
	}
	return s.reload(ctx) // nothing it reads has changed, but it would ask for one
}

func writeDropIn(files pair, name string, d *DropIn) error {
	data, err := d.Encode()
	if err != nil {
		return err
	}
	return atomicfile.Write(files.path(name), data, 0o644)
}

// Unswitch removes every file of ours from a unit, which then is what its own files say. Blocks and a hold are
// forgotten. It also works where no manager answers (Outcome.Loaded is then false), and for a unit that is masked or
// of which only our files are left. The error wraps [ErrRefused] where something in those files is not ours.
func (h *Host) Unswitch(ctx context.Context, unit string) (*Outcome, error) {
	s, err := h.beginUnswitch(ctx, unit)
	if err != nil {
		return nil, fmt.Errorf("unswitch %s: %w", unit, err)
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		if err := s.letGo(ctx, actUnswitch, out); err != nil {
			return fmt.Errorf("unswitch %s: %w", s.unit, err)
		}
		return nil
	})
}

func (h *Host) beginUnswitch(ctx context.Context, unit string) (s *session, err error) {
	s = &session{h: h, began: h.Now(), place: h.place()}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	if err := s.find(ctx, unit); err != nil {
		return s, err
	}
	if !h.traces(s.unit) {
		return s, nil
	}
	note := "removes every file of ours: the unit's own files decide again"
	shown, err := (pair{h.dropInDir(s.unit)}).read(dropInName)
	if err != nil {
		shown = nil // letGo says what is wrong with it
	}
	if err := h.authorise(s.unit, "unswitch "+s.unit, note); err != nil {
		return s, err
	}
	if err := s.lockStore(ctx, false); err != nil {
		return s, err
	}
	if err := s.lockIdle(ctx); err != nil {
		return s, err
	}
	now, err := (pair{h.dropInDir(s.unit)}).read(dropInName)
	if h.Authorise != nil && err == nil && !bytes.Equal(now, shown) {
		return s, fmt.Errorf("%w: while the owner was asked our file of it was changed: see what is true now and ask again", ErrRefused)
	}
	s.settle(ctx)
	return s, nil
}

// letGo removes every file of ours, with actUnswitch also a hold; the other act is actUnadopt. What a crash leaves
// reads as before, less the file of the rollback, until the active file is gone.
func (s *session) letGo(ctx context.Context, act string, out *Outcome) error {
	files := pair{s.h.dropInDir(s.unit)}
	v := &view{place: s.place}
	if err := v.readPair(files); err != nil {
		return err
	}
	if err := s.mine(v, files, act); err != nil {
		return err
	}
	s.nameBoth(ctx, v, out)
	for _, b := range v.blocks() {
		out.Notes = append(out.Notes, fmt.Sprintf("forgets that %s is blocked: %s", b.Name, b.Reason))
	}
	if !s.h.traces(s.unit) {
		return nil
	}
	var intent entry
	recorded := v.activeData != nil // else nothing moves
	if recorded {
		var err error
		if intent, err = s.h.intend(ctx, entry{Unit: s.unit, Act: act, From: out.From, To: out.To, Old: sum(v.activeData)}); err != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("not recorded: %v", err))
			recorded = false
		}
	}
	ctx, cancel := begun(ctx)
	defer cancel()
	out.Changed = true
	gone := func(err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return unwritable(files.dir, err)
	}
	if err := errors.Join(files.removePrev(), gone(atomicfile.Remove(files.path(dropInName)))); err != nil {
		if now, rerr := files.read(dropInName); rerr != nil || now != nil {
			return err // the intent stays open, for the next command
		}
		out.Notes = append(out.Notes, fmt.Sprintf("it may not outlive a power loss: %v", err))
	}
	result := s.load(ctx, away{}, out)
	var err error
	if act == actUnswitch {
		err = gone(s.h.removeHold(s.unit))
	}
	if recorded {
		err = errors.Join(err, s.h.close(ctx, intent, closing{phase: phaseCommit, result: result}))
	}
	// The folder goes last: its lock goes with it, and then no command must take this one for one that was cut off.
	if ferr := files.removeFolder(); ferr != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("it may not outlive a power loss: %v", ferr))
	}
	return err
}

// mine refuses to remove what is not plainly ours.
func (s *session) mine(v *view, files pair, act string) error {
	if err := v.foreign(); err != nil {
		return err
	}
	if files.staged() {
		return fmt.Errorf("%w: what an earlier command left in %s cannot be settled: remove %s and %s", ErrRefused, files.dir, nextName, prevNextName)
	}
	if act != actUnswitch {
		return nil
	}
	if _, err := s.h.hold(s.unit); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// nameBoth names what is armed and what will be without our files, as far as that can be told.
func (s *session) nameBoth(ctx context.Context, v *view, out *Outcome) {
	if v.active != nil {
		out.From = v.active.Package.Name
	}
	if s.m == nil {
		return
	}
	now, err := s.view(ctx)
	if err != nil {
		return // masked or gone
	}
	out.From = now.armedPackage().Name
	if base, err := now.base(); err == nil {
		out.To = base.Name
	}
}

// ofSettings keeps of settings the variables that point into a package.
func ofSettings(s *systemd.Settings, pl *place) binding {
	env := map[string]string{}
	for key, setting := range s.Environment() {
		env[key] = setting.Value
	}
	return inEnvironment(env, pl)
}

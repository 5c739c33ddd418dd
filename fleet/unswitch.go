package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/systemd"
)

// Unblock lifts the block of a package, by its name, so that the service may be switched to it again. The error
// wraps [fs.ErrNotExist] where it is not blocked.
func (h *Host) Unblock(ctx context.Context, unit, name string) (*Outcome, error) {
	s, err := h.begin(ctx, unit, fmt.Sprintf("unblock %s for %s", name, unit), false)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		if err := s.unblock(ctx, name, out); err != nil {
			return fmt.Errorf("unblock %s for %s: %w", name, s.unit, err)
		}
		return nil
	})
}

func (s *session) unblock(ctx context.Context, name string, out *Outcome) error {
	files := pair{s.h.dropInDir(s.unit)}
	v := &view{}
	if err := v.readPair(files); err != nil {
		return err
	}
	ref := PackageRef{Name: name}
	if _, ok := blocked(v.blocks(), ref); !ok && v.activeErr == nil {
		return fmt.Errorf("it is not blocked: %w", fs.ErrNotExist)
	}
	if err := v.foreign(); err != nil {
		return err
	}
	out.Changed = true
	if lone := v.lone(); lone != nil {
		if lone.Package.same(ref) {
			return files.removePrev() // what it was there for
		}
		lone.Blocks = without(lone.Blocks, ref)
		return writeDropIn(files, prevName, lone)
	}
	// The rollback file first: it must not bring the block back. The one that it sets itself stays.
	if d := v.rollbackFile(); d != nil && !d.RolledBackFrom.same(ref) {
		d.Blocks = without(d.Blocks, ref)
		if err := writeDropIn(files, prevName, d); err != nil {
			return err
		}
	}
	v.active.Blocks = without(v.active.Blocks, ref)
	if err := writeDropIn(files, dropInName, v.active); err != nil {
		return err
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

// Unswitch removes every file of ours from a unit, which then is what its own files say. Blocks are forgotten.
func (h *Host) Unswitch(ctx context.Context, unit string) (*Outcome, error) {
	s, err := h.begin(ctx, unit, "unswitch "+unit, false)
	if err != nil {
		return nil, err
	}
	defer s.end()
	return s.outcome(ctx, func(out *Outcome) error {
		if err := s.letGo(ctx, actUnswitch, out); err != nil {
			return fmt.Errorf("unswitch %s: %w", s.unit, err)
		}
		return nil
	})
}

// letGo removes every file of ours; act is actUnswitch or actUnadopt.
func (s *session) letGo(ctx context.Context, act string, out *Outcome) error {
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	files, data := pair{s.h.dropInDir(s.unit)}, v.activeData
	if err := v.foreign(); err != nil {
		return err
	}
	base, err := v.base()
	if err != nil {
		return err
	}
	out.From = v.armed.pkg(v.place).Name
	out.To = base.Name
	if data == nil {
		out.To = out.From
		out.Changed = v.prev != nil
		return files.removeAll()
	}
	intent, err := s.h.intend(ctx, entry{Unit: s.unit, Act: act, From: out.From, To: out.To, Old: sum(data)})
	if err != nil {
		return fmt.Errorf("record the intent: %w", err)
	}
	ctx, cancel := begun(ctx)
	defer cancel()
	if err := atomicfile.Remove(files.path(dropInName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out.Changed = true
	err = errors.Join(files.removeAll(), s.reload(ctx), s.h.close(ctx, intent, closing{phase: phaseCommit, result: resultArmed}))
	return err
}

// ofSettings keeps of settings the variables that point into a package.
func ofSettings(s *systemd.Settings, pl *place) binding {
	env := map[string]string{}
	for key, setting := range s.Environment() {
		env[key] = setting.Value
	}
	return inEnvironment(env, pl)
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/systemd"
)

// begunTime bounds what must not be cut off half-way once files have changed: the manager's answers.
const begunTime = time.Minute

// begun is the context of an act that has changed files: the caller's end no longer ends it.
func begun(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), begunTime)
}

// recover finishes or undoes what an earlier command on the unit left behind. The caller holds the unit's lock. m
// is nil where no manager answers: then the files are settled and nothing is loaded.
func (h *Host) recover(ctx context.Context, m *systemd.Manager, unit string) (notes []string, err error) {
	ctx, cancel := begun(ctx)
	defer cancel()
	p := pair{h.dropInDir(unit)}
	entries, jerr := h.journal().entries(string(h.Scope), unit)
	if jerr != nil {
		notes = append(notes, fmt.Sprintf("the journal cannot be read: %v", jerr))
	}
	intent, open := unfinished(entries, h.journal().held)
	changed, inPlace, err := p.settle()
	if err != nil {
		return notes, fmt.Errorf("settle what an earlier command left in %s: %w", p.dir, err)
	}
	if !open && !changed && !inPlace {
		note, err := h.loadWritten(ctx, m, unit, entries)
		if note != "" {
			notes = append(notes, note)
		}
		return notes, err
	}
	data, err := p.read(dropInName)
	if err != nil {
		return notes, fmt.Errorf("read our drop-in: %w", err)
	}
	end := closing{phase: phaseAbort, reason: "cut off; the next command undid it"}
	if inPlace || open && intent.Act != actRestart && sum(data) == intent.New && intent.New != intent.Old {
		end, err = h.finish(ctx, m, unit, p, data, inPlace, intent)
		if err != nil {
			return notes, err
		}
	} else if m != nil {
		if err := m.Reload(ctx); err != nil {
			return notes, err
		}
	}
	if open && intent.Act == actRestart {
		end.reason = "cut off; its result is not known"
	}
	if open && end.phase == phaseCommit && overtaken(entries, intent) {
		end = closing{phase: phaseAbort, reason: "cut off, and other acts followed"}
	}
	if !open {
		return append(notes, "a switch that was cut off "+end.word()), nil
	}
	h.log().Info("act that was cut off", "unit", unit, "act", intent.Act, "phase", end.phase)
	if intent.Act != actRestart {
		notes = append(notes, fmt.Sprintf("a %s from %s to %s that was cut off %s", intent.Act, orNothing(intent.From), orNothing(intent.To), end.word()))
	}
	if err := h.close(ctx, intent, end); err != nil {
		notes = append(notes, err.Error())
	}
	return notes, nil
}

// loadWritten has the manager load what the last act on a unit could only write, unless somebody else did, or has
// changed our file since.
func (h *Host) loadWritten(ctx context.Context, m *systemd.Manager, unit string, entries []entry) (note string, err error) {
	last, unloaded := written(entries)
	if !unloaded || m == nil {
		return "", nil
	}
	if data, err := (pair{h.dropInDir(unit)}).read(dropInName); err != nil || sum(data) != last.New || !h.stale(ctx, m, unit) {
		return "", nil
	}
	what := fmt.Sprintf("what a %s from %s to %s could only write", last.Act, orNothing(last.From), orNothing(last.To))
	if err := m.Reload(ctx); err != nil {
		return "", fmt.Errorf("load %s: %w", what, err)
	}
	return what + " is loaded now", nil
}

// stale tells whether the manager has loaded something else than the files say. Where that cannot be told, the act
// that comes next says why.
func (h *Host) stale(ctx context.Context, m *systemd.Manager, unit string) bool {
	u, err := m.Unit(ctx, unit)
	if err != nil {
		return false
	}
	specs, err := m.Specifiers(ctx)
	if err != nil {
		return false
	}
	v, err := h.view(u, h.place(), specs)
	return err == nil && (!slices.Equal(v.armed, v.onDisk) || slices.Contains(u.DropInPaths, v.path) != (v.activeData != nil))
}

// overtaken tells whether an act that began after an intent was recorded as done: the history goes on from there.
func overtaken(entries []entry, intent entry) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return e.Phase == phaseCommit && e.Seq > intent.Seq })
}

// finish completes an act whose new file is in place: load it, read it back, and go back if something wins.
func (h *Host) finish(ctx context.Context, m *systemd.Manager, unit string, p pair, data []byte, staged bool, intent entry) (closing, error) {
	done := closing{phase: phaseCommit, result: resultFinished, reason: "cut off; the next command finished it"}
	if m == nil {
		done.result = resultWritten
		return done, p.clean()
	}
	if err := m.Reload(ctx); err != nil {
		return closing{}, err
	}
	specs, err := m.Specifiers(ctx)
	if err != nil {
		return closing{}, err
	}
	var refusal error
	// A file that a person edited since is not taken away any more.
	if d, err := DecodeDropIn(data); err == nil && d.RolledBackFrom.isZero() {
		if _, _, refusal = h.readBack(ctx, m, unit, d, specs); refusal != nil && !errors.Is(refusal, ErrRefused) {
			return closing{}, refusal
		}
	}
	if refusal == nil {
		return done, p.clean()
	}
	switch {
	case staged:
		old, err := p.read(nextName)
		if err == nil {
			err = p.revert(data, old)
		}
		if err != nil {
			return closing{}, err
		}
	case intent.Old == "" && (intent.Act == actSwitch || intent.Act == actAdopt):
		if err := atomicfile.Remove(p.path(dropInName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return closing{}, err
		}
	default:
		return done, nil // it was loaded and read back before; status shows what wins over it now
	}
	if err := m.Reload(ctx); err != nil {
		return closing{}, err
	}
	return closing{phase: phaseAbort, reason: refusal.Error()}, p.clean()
}

// closing is how an intent ends.
type closing struct{ phase, result, reason string }

func (c closing) word() string {
	if c.phase == phaseCommit {
		return "was finished"
	}
	return "was undone"
}

// close writes the commit or abort of an intent.
func (h *Host) close(ctx context.Context, intent entry, c closing) error {
	intent.Phase, intent.Result, intent.Reason, intent.At = c.phase, c.result, c.reason, h.Now().UTC()
	return h.journal().append(ctx, intent)
}

// intend writes an intent and returns it. Where the unit is not where the last record left it, somebody else
// moved it, and a record says so first.
func (h *Host) intend(ctx context.Context, e entry) (entry, error) {
	entries, err := h.journal().entries(string(h.Scope), e.Unit)
	if err != nil {
		return e, err
	}
	e.Scope, e.By, e.At = string(h.Scope), h.User, h.Now().UTC()
	e.Seq = lastSeq(entries) + 1
	if done := fold(entries); len(done) > 0 && done[len(done)-1].To != e.From {
		moved := entry{
			Seq: e.Seq, At: e.At, Scope: e.Scope, Unit: e.Unit, Act: actOutside, Phase: phaseCommit,
			From: done[len(done)-1].To, To: e.From, Result: resultSeen, Reason: "changed by something else than this program",
		}
		if err := h.journal().append(ctx, moved); err != nil {
			return e, err
		}
		e.Seq++
	}
	e.Phase = phaseIntent
	return e, h.journal().append(ctx, e)
}

func orNothing(name string) string {
	if name == "" {
		return "nothing"
	}
	return name
}

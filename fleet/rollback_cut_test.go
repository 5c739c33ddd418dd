package fleet

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
)

// A way that writes both files is cut off at every step, with and without a journal: the next command leaves the
// state before, byte for byte, or the one after, whole, and every way from there is open.
func TestAnewCutOff(t *testing.T) {
	for name, tt := range map[string]struct {
		acts string
		opts RollbackOptions
	}{
		"one further at once":           {"+b +c d", RollbackOptions{Again: true}},
		"one further after a rollback":  {"+b +c d <", RollbackOptions{Again: true}},
		"undo of a return":              {"+b +c !d", RollbackOptions{Undo: true}},
		"undo of a return to the first": {"+b !c", RollbackOptions{Undo: true}},
	} {
		for _, edited := range []bool{false, true} {
			if edited && tt.opts.Undo {
				continue // refused: the person's line would be lost
			}
			for step := range 6 {
				for _, known := range []bool{true, false} {
					where := fmt.Sprintf("%s, edited %v, after step %d, journal %v", name, edited, step, known)
					u := newUnitFiles(t, "a", "b", "c", "d")
					for _, act := range strings.Fields(tt.acts) {
						if err := u.do(act); err != nil {
							t.Fatal(where, err)
						}
					}
					if edited {
						if err := os.WriteFile(u.files().path(dropInName), edit(u.view().activeData), 0o644); err != nil {
							t.Fatal(err)
						}
					}
					old := u.snapshot()
					next := u.cutOff(tt.opts, step, known)
					if _, err := u.h.recover(t.Context(), nil, modelUnit); err != nil {
						t.Fatal(where, err)
					}
					now, want := u.snapshot(), old
					if step >= 4 {
						want = next
					}
					if !maps.Equal(now, want) {
						t.Fatalf("%s: %v\nwant %v", where, now, want)
					}
					if entries, err := u.h.journal().entries(string(u.h.Scope), modelUnit); err != nil {
						t.Fatal(err)
					} else if e, open := unfinished(entries, nil); open {
						t.Errorf("%s: %+v is open", where, e)
					}
					for _, opts := range []RollbackOptions{{Undo: true}, {}, {Undo: true}} {
						if _, err := u.rollback(opts); err != nil && !errors.Is(err, ErrRefused) {
							t.Errorf("%s, then %+v: %v", where, opts, err)
						}
					}
				}
			}
		}
	}
}

// cutOff does the first steps of a way that writes both files: the intent, two staged files, two exchanges, and
// after five the removal of one leftover. It returns the files as the whole way leaves them.
func (u *unitFiles) cutOff(opts RollbackOptions, steps int, known bool) (whole map[string]string) {
	u.Helper()
	v, s, p := u.view(), u.session(), u.files()
	w, done, err := v.goingBack(opts)
	if err != nil || done != "" || w.way != wayAnew {
		u.Fatalf("%+v: %+v, %s, %v", opts, w, done, err)
	}
	if err := s.anew(v, &w, ""); err != nil {
		u.Fatal(err)
	}
	act := map[bool]string{false: actRollback, true: actUndo}[opts.Undo]
	if known {
		if _, err := u.h.intend(u.Context(), entry{Unit: modelUnit, Act: act, From: w.from.Name, To: w.to.Name, Old: sum(v.activeData), New: sum(w.file)}); err != nil {
			u.Fatal(err)
		}
	}
	for i, step := range []func() error{
		func() error { return os.WriteFile(p.path(prevNextName), w.left, 0o644) },
		func() error { return os.WriteFile(p.path(nextName), w.file, 0o644) },
		func() error { return p.trade(prevNextName, prevName) },
		func() error { return p.trade(nextName, dropInName) },
		func() error { return os.Remove(p.path(nextName)) },
	} {
		if i == steps {
			break
		}
		if err := step(); err != nil {
			u.Fatal(err)
		}
	}
	return map[string]string{dropInName: string(w.file), prevName: string(w.left)}
}

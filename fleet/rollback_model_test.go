package fleet

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/systemd"
)

// model is what an owner expects of a unit, with a memory that forgets nothing.
type model struct {
	armed  string
	left   []string        // what was rolled away from, the last one last; a switch forgets it
	served []string        // what was seen serving, in order
	blocks map[string]bool // by id
}

// Random acts on one unit, on its files alone, against the model. It may forget less than the files, which hold two
// steps; what it says otherwise must hold after every act.
func TestRollbackModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := map[string]int{}
	for run := range 60 {
		u := newUnitFiles(t, "a", "b", "c", "d", "e")
		m := &model{armed: "a", served: []string{"a"}, blocks: map[string]bool{}}
		var acts []string
		for range 30 {
			act := someAct(random)
			acts = append(acts, act)
			before := u.snapshot()
			err := u.step(m, act)
			if err == nil {
				err = u.holds(m)
			}
			if err != nil {
				t.Fatalf("run %d, %s: %v\nbefore %v\nafter %v", run, strings.Join(acts, " "), err, before, u.snapshot())
			}
			if changed := !maps.Equal(before, u.snapshot()); changed {
				kinds[strings.TrimRight(act, "abcde")]++
			}
		}
		if err := u.unwinds(m); err != nil {
			t.Fatalf("run %d, %s, then undone: %v", run, strings.Join(acts, " "), err)
		}
	}
	for _, kind := range []string{"", "+", "!", "<", "<<", ">", "-", "0"} {
		if kinds[kind] == 0 {
			t.Errorf("no act %q changed anything: %v", kind, kinds)
		}
	}
}

func someAct(r *rand.Rand) string {
	id := string("abcde"[r.IntN(5)])
	return []string{"+" + id, "+" + id, id, "!" + id, "<", "<", "<<", "<<", ">", ">", ">", "-" + id, "-" + id, "0"}[r.IntN(14-r.IntN(2))]
}

// step does an act to the files and to the model, and compares what it did.
func (u *unitFiles) step(m *model, act string) error {
	old, files := m.armed, u.snapshot()
	announced, done := u.view().goingTo()
	err := u.do(act)
	now := u.armed()
	same := maps.Equal(files, u.snapshot())
	id := strings.TrimLeft(act, "+!-")
	switch act {
	case "<":
		switch {
		case done:
			if !same {
				return errors.New("a second rollback changed something")
			}
			return nil
		case err != nil:
			return err
		case announced != "" && now != announced:
			return fmt.Errorf("rolled back to %s, and %s was announced", now, announced)
		}
		m.leave(now)
		if again, err := u.rollback(RollbackOptions{}); err != nil || again.Changed {
			return fmt.Errorf("not done after a rollback: %v", err)
		}
		return nil
	case "<<":
		if err != nil {
			if !errors.Is(err, ErrRefused) && !errors.Is(err, systemd.ErrNoBus) || !same {
				return err
			}
			return nil
		}
		if now != u.base && (now == old || m.blocks[now]) { // what the unit's own files arm only a manager tells
			return fmt.Errorf("one further back than %s is %s, blocked %v", old, now, m.blocks[now])
		}
		m.leave(now)
		return nil
	case ">":
		switch {
		case err != nil && (!errors.Is(err, ErrRefused) && !errors.Is(err, systemd.ErrNoBus) || !same):
			return err
		case same:
			// Of several steps back not every one is remembered, the last one always.
			if len(m.left) > 0 && u.view().rolledBackTo() {
				return fmt.Errorf("%v is there to return to: %w", m.left, err)
			}
			m.left = nil
			return nil
		case len(m.left) == 0:
			return fmt.Errorf("returned to %s, and nothing was left", now)
		}
		last := m.left[len(m.left)-1]
		m.left = m.left[:len(m.left)-1]
		delete(m.blocks, last)
		m.armed = last
		if now != last {
			return fmt.Errorf("returned to %s, and %s was left last", now, last)
		}
		return nil
	case "0":
		if len(files) == 0 {
			return nil // nothing of ours, so a manager would be asked for the unit
		}
		*m = model{armed: u.base, served: m.served, blocks: map[string]bool{}}
		return err
	}
	if act[0] == '-' {
		if m.blocks[id] != (err == nil) {
			return fmt.Errorf("unblocked: %w, blocked %v", err, m.blocks[id])
		}
		delete(m.blocks, id)
		return nil
	}
	// A switch, perhaps with a restart.
	if m.blocks[id] != errors.Is(err, ErrRefused) || err != nil && !m.blocks[id] {
		return fmt.Errorf("blocked %v: %w", m.blocks[id], err)
	}
	if err != nil {
		return nil
	}
	if id != old {
		m.left = nil
	}
	m.armed = id
	switch {
	case act[0] == '+':
		m.served = append(m.served, id)
	case act[0] == '!' && (now != id || !same && u.view().lone() != nil): // it went back by itself
		m.leave(now)
		m.served = append(m.served, now)
	}
	return nil
}

// leave is a step back to another package.
func (m *model) leave(to string) {
	m.left = append(m.left, m.armed)
	m.blocks[m.armed] = true
	m.armed = to
}

// goingTo is the id that a rollback goes to, "" for the unit's own files, and whether there is none.
func (v *view) goingTo() (string, bool) {
	w, done, err := v.goingBack(RollbackOptions{})
	if w.way == wayAway {
		return "", done != "" || err != nil
	}
	return id(w.to), done != "" || err != nil
}

// rolledBackTo tells whether the files say what the last rollback left.
func (v *view) rolledBackTo() bool {
	return v.lone() != nil || v.active != nil && !v.active.RolledBackFrom.isZero()
}

// holds checks what is true after every act.
func (u *unitFiles) holds(m *model) error {
	v := u.view()
	if got := u.armed(); got != m.armed {
		return fmt.Errorf("%s is armed, not %s", got, m.armed)
	}
	if got := u.blocked(); !slices.Equal(got, slices.Sorted(maps.Keys(m.blocks))) {
		return fmt.Errorf("blocked %v, not %v", got, m.blocks)
	}
	if err := v.foreign(); err != nil {
		return err
	}
	for name := range u.snapshot() {
		if name != dropInName && name != prevName {
			return fmt.Errorf("%s is left behind", name)
		}
	}
	to, done := v.goingTo()
	switch {
	case done || to == "":
	case to == m.armed:
		return fmt.Errorf("a rollback would go to %s, which is armed", to)
	case m.blocks[to]:
		return fmt.Errorf("a rollback would go to %s, which is blocked", to)
	case !slices.Contains(m.served, to):
		return fmt.Errorf("a rollback would go to %s, which never served", to)
	case v.rollbackFile() == nil:
		return fmt.Errorf("a rollback to %s would need space", to)
	}
	return nil
}

// unwinds checks that undoing comes to an end, and that a unit can be let go of from wherever it is.
func (u *unitFiles) unwinds(m *model) error {
	for range 12 {
		before := u.snapshot()
		if err := u.step(m, ">"); err != nil {
			return err
		}
		if maps.Equal(before, u.snapshot()) {
			return errors.Join(u.step(m, "0"), u.holds(m))
		}
	}
	return errors.New("it never ends")
}

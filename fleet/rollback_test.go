package fleet

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// A target that is damaged is refused, with a command that works in its place.
func TestRollbackOffers(t *testing.T) {
	u := newUnitFiles(t, "a", "b", "c")
	for _, act := range []string{"+b", "c"} {
		if err := u.do(act); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(u.ref("b").Path); err != nil {
		t.Fatal(err)
	}
	_, err := u.rollback(RollbackOptions{})
	if !errors.Is(err, packager.ErrIntegrity) || !strings.Contains(err.Error(), "1bit pkg rollback --again llm.service") {
		t.Errorf("rollback to a package that is gone: %v", err)
	}
	if out, err := u.rollback(RollbackOptions{Again: true}); err != nil || u.armed() != "a" || out.Loaded {
		t.Errorf("what was offered: %v, %s is armed", err, u.armed())
	}
	if err := os.RemoveAll(u.ref("c").Path); err != nil {
		t.Fatal(err)
	}
	if _, err := u.rollback(RollbackOptions{Undo: true}); !errors.Is(err, packager.ErrIntegrity) || strings.Contains(err.Error(), "--again") {
		t.Errorf("undo to a package that is gone: %v", err)
	}
}

// A reason stands in the block.
func TestRollbackReason(t *testing.T) {
	for _, acts := range [][]string{{"+b", "c"}, {"c"}, {"+b", "+d", "c"}} {
		for _, again := range []bool{false, true} {
			u := newUnitFiles(t, "a", "b", "c", "d")
			for _, act := range acts {
				if err := u.do(act); err != nil {
					t.Fatal(err)
				}
			}
			if again && len(acts) == 1 {
				continue
			}
			if _, err := u.rollback(RollbackOptions{Again: again, Reason: `wrong "tokens" in Greek`}); err != nil {
				t.Fatal(err)
			}
			if b, ok := blocked(u.view().blocks(), u.ref("c")); !ok || b.Reason != `wrong "tokens" in Greek` {
				t.Errorf("%v, again %v: blocks %v", acts, again, u.view().blocks())
			}
		}
	}
}

// A block names a build by its digest: the same build imported again stays blocked, another of that name does not.
func TestBlockByDigest(t *testing.T) {
	d := ourFile("b", "a", rollbackRemove)
	d.block(ref("c"), "bad")
	data, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	v := &view{}
	if err := v.readPair(folder(t, map[string][]byte{dropInName: data})); err != nil {
		t.Fatal(err)
	}
	again, other := ref("c"), ref("c")
	again.Path, other.Digest = "/elsewhere/1bit-hrx-c", "sha256:other"
	if _, is := blocked(v.blocks(), again); !is {
		t.Error("the same build, imported again elsewhere, is not blocked")
	}
	if _, is := blocked(v.blocks(), other); is {
		t.Error("another build of that name is blocked")
	}
}

// A removal of packages holds a rollback up for a moment only. An undo goes to a package that no file of the unit
// keeps from being removed, and has to wait.
func TestRollbackWhileTheStoreIsLocked(t *testing.T) {
	u := newUnitFiles(t, "a", "b", "c")
	for _, act := range []string{"+b", "c"} {
		if err := u.do(act); err != nil {
			t.Fatal(err)
		}
	}
	lock := func(name string) func() {
		t.Helper()
		f, err := os.Open(name)
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() { f.Close() }
	}
	if err := os.WriteFile(filepath.Join(u.h.StateDir, "store.lock"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	free := lock(filepath.Join(u.h.StateDir, "store.lock"))
	out, err := u.rollback(RollbackOptions{})
	if err != nil || u.armed() != "b" || !strings.Contains(strings.Join(out.Notes, "\n"), "the store is not locked meanwhile") {
		t.Errorf("rollback: %v, %s is armed", err, u.armed())
	}
	files := u.snapshot()
	if _, err := u.rollback(RollbackOptions{Undo: true}); !errors.Is(err, store.ErrBusy) || !maps.Equal(u.snapshot(), files) {
		t.Errorf("undo: %v", err)
	}
	free()
	// A command that hangs with the unit's lock ends it after a while.
	u.h.LockWait = 20 * time.Millisecond
	free = lock(u.files().dir)
	if _, err := u.rollback(RollbackOptions{Undo: true}); !errors.Is(err, ErrBusy) || !maps.Equal(u.snapshot(), files) {
		t.Errorf("undo while another command works on the unit: %v", err)
	}
	free()
	if _, err := u.rollback(RollbackOptions{Undo: true}); err != nil || u.armed() != "c" {
		t.Errorf("undo: %v, %s is armed", err, u.armed())
	}
}

// The owner is asked with what would change, and not where nothing does.
func TestRollbackAsks(t *testing.T) {
	u := newUnitFiles(t, "a", "b", "c")
	for _, act := range []string{"+b", "c"} {
		if err := u.do(act); err != nil {
			t.Fatal(err)
		}
	}
	var asked []string
	answer := error(nil)
	u.h.Authorise = func(act string, notes []string) error {
		asked = append(asked, act+"; "+strings.Join(notes, "; "))
		return answer
	}
	for _, tt := range []struct {
		opts RollbackOptions
		want string
	}{
		{RollbackOptions{Undo: true}, ""},
		{RollbackOptions{}, "roll back llm.service; it goes from hrx-c to hrx-b, and hrx-c is blocked for it"},
		{RollbackOptions{}, ""},
		{RollbackOptions{Undo: true}, "undo the rollback of llm.service; it goes from hrx-b to hrx-c, whose block is lifted"},
		{RollbackOptions{Again: true}, "roll back llm.service one further; it goes from hrx-c to hrx-a, and hrx-c is blocked for it"},
		{RollbackOptions{Again: true}, ""},
	} {
		asked = nil
		if _, err := u.rollback(tt.opts); err != nil && !errors.Is(err, ErrRefused) {
			t.Fatal(err)
		}
		if got := strings.Join(asked, "|"); got != tt.want {
			t.Errorf("%+v: asked %q, want %q", tt.opts, got, tt.want)
		}
	}
	answer = fmt.Errorf("%w: the owner said no", ErrRefused)
	files := u.snapshot()
	if _, err := u.rollback(RollbackOptions{Undo: true}); !errors.Is(err, ErrRefused) || !maps.Equal(u.snapshot(), files) {
		t.Errorf("against the owner: %v", err)
	}
	// While he thinks, another command moves the unit.
	u.h.Authorise = nil
	if _, err := u.rollback(RollbackOptions{Undo: true}); err != nil {
		t.Fatal(err)
	}
	u.h.Authorise = func(string, []string) error {
		other := *u.h
		other.Authorise = nil
		_, err := other.Rollback(t.Context(), modelUnit, RollbackOptions{Again: true})
		return err
	}
	if _, err := u.rollback(RollbackOptions{}); !errors.Is(err, ErrRefused) || u.armed() != "a" {
		t.Errorf("moved meanwhile: %v, %s is armed", err, u.armed())
	}
}

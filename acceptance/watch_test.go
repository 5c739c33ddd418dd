package acceptance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A folder in which nothing begins is not waited for without end.
func TestWatchOfNothing(t *testing.T) {
	look := func(dir string, patience time.Duration, f func(Status)) error {
		return watch(t.Context(), dir, time.Millisecond, patience, f)
	}
	if err := look(t.TempDir(), 50*time.Millisecond, func(Status) {}); !errors.Is(err, ErrNotBegun) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := look(filepath.Join(t.TempDir(), "none"), 50*time.Millisecond, func(Status) {}); !errors.Is(err, ErrNotBegun) {
		t.Errorf("no folder: %v", err)
	}
	// A run that is refused while it is watched.
	p := fakePackage(t, "works")
	plan := fakePlan(t, p, "", "")
	if err := os.Remove(filepath.Join(p.Path, "m.gguf")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	hold, err := holdFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	running := false
	if err := look(dir, time.Hour, func(s Status) {
		if running = running || s.Running; s.Running {
			hold.Close()
		}
	}); !errors.Is(err, ErrNotBegun) || !running {
		t.Errorf("a runner that ended before it began: %v, was there %v", err, running)
	}
	if _, err := Run(t.Context(), RunOptions{Plan: plan, Package: p, Evidence: dir}); !errors.Is(err, ErrPlan) {
		t.Errorf("a plan without a model: %v", err)
	}
	if held, err := isHeld(dir); held || err != nil {
		t.Errorf("the folder is held after a run that was refused (%v)", err)
	}
}

// A damaged ledger is watched to its verdict, which says that it is.
func TestWatchOfDamage(t *testing.T) {
	p := fakePackage(t, "works")
	dir := filepath.Join(t.TempDir(), "evidence")
	o := RunOptions{Plan: fakePlan(t, p, "", ""), Package: p, Evidence: dir}.withDefaults()
	r, err := resolve(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := beginRun(o, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.ledger.leave(); err != nil {
		t.Fatal(err)
	}
	w.hold.Close()
	f, err := os.OpenFile(filepath.Join(dir, LedgerName), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("\n")
	f.Close()
	var last Status
	if err := Watch(t.Context(), dir, time.Millisecond, func(s Status) { last = s }); err != nil {
		t.Fatal(err)
	}
	if last.Verdict == nil || !strings.Contains(last.Verdict.Reason, "the ledger is damaged") {
		t.Errorf("%+v", last.Verdict)
	}
}

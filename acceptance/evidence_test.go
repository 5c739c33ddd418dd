package acceptance

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The folder of a life that the ledger lost is kept beside that of the new one.
func TestSetAside(t *testing.T) {
	dir := ArmDir(t.TempDir(), 1)
	if err := setAside(dir); err != nil {
		t.Errorf("there is none: %v", err)
	}
	for _, name := range []string{"0001.lost-1", "0001.lost-2"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := setAside(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(dir), name, name)); err != nil {
			t.Error(err)
		}
	}
}

// A ledger that is none is refused at once.
func TestReopenOfNoLedger(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(path string) error
		want error
	}{
		"pipe":  {func(path string) error { return unix.Mkfifo(path, 0o644) }, errNoFile},
		"empty": {func(path string) error { return os.WriteFile(path, nil, 0o644) }, ErrLedger},
	} {
		dir := t.TempDir()
		if err := tt.make(filepath.Join(dir, LedgerName)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := reopenLedger(dir, fixedClock(), func(*record) error { return nil }); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// A full disk is told of once, with what helps.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := fakePackage(t, "works")
	w := newWalk(RunOptions{Plan: fakePlan(t, p, "", ""), Evidence: t.TempDir()}.withDefaults(), &resolved{Arms: make([]resolvedArm, 1)}, "test", nil)
	if w.ledger, err = createLedger(w.o.Evidence, w.o.Now); err != nil {
		t.Fatal(err)
	}
	w.ledger.f.Close()
	w.ledger.f = full
	_, err = w.finish(t.Context(), w.ledger.append(recordHost, hostRecord{When: "before"}))
	if err == nil || strings.Count(err.Error(), "no space left") != 1 || !strings.HasSuffix(err.Error(), "free space and resume the run") {
		t.Errorf("%v", err)
	}
}

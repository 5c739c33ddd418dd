package acceptance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInputsThatAreNoFiles gives a pipe that nobody writes to, a device without
// an end and a folder wherever a file is read. None of them may hang the program.
func TestInputsThatAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", dir} {
		if _, err := LoadPlan(path); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("plan %s: %v", path, err)
		}
		if _, err := newSums().identify(t.Context(), "model", path); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), "model: "+path) {
			t.Errorf("model %s: %v", path, err)
		}
		for _, name := range []string{PlanName, ResolvedName, LedgerName} {
			evidence := t.TempDir()
			for _, other := range []string{PlanName, ResolvedName, LedgerName} {
				if err := os.WriteFile(filepath.Join(evidence, other), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Remove(filepath.Join(evidence, name)), os.Symlink(path, filepath.Join(evidence, name))); err != nil {
				t.Fatal(err)
			}
			if v, err := JudgeDir(evidence); err == nil || !strings.Contains(err.Error(), "not the evidence of a run") {
				t.Errorf("%s is %s: %v, %v", name, path, v, err)
			}
		}
	}
}

func TestSumInputEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, make([]byte, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if sum, n, err := sumInput(ctx, path); err != nil || n != 4096 || sum != sumOf(make([]byte, 4096)) {
		t.Errorf("%s, %d, %v", sum, n, err)
	}
	cancel()
	if _, _, err := sumInput(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestEvidenceFolderIsItsOwn leaves what a run would append to, or a reader
// would take for a part of it.
func TestEvidenceFolderIsItsOwn(t *testing.T) {
	for _, name := range []string{ServerLogName, NeighbourRows, LedgerName, "notes.txt"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("ggml_abort"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := createLedger(dir, fixedClock()); !errors.Is(err, ErrEvidence) {
			t.Errorf("%s: %v", name, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
	}
}

package store

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// What root imports every account can see, and nothing else of the state.
func TestImportShared(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s := newStore(t)
		s.StateDir = filepath.Join(s.StateDir, "state")
		s.Shared = shared
		modes := func() (state, imported fs.FileMode) {
			t.Helper()
			for dir, mode := range map[string]*fs.FileMode{s.StateDir: &state, filepath.Join(s.StateDir, "imported"): &imported} {
				info, err := os.Stat(dir)
				if err != nil {
					t.Fatal(err)
				}
				*mode = info.Mode().Perm()
			}
			return state, imported
		}
		if _, err := s.Import(context.Background(), oldScript(t, s, "1bit-hrx-3092596")); err != nil {
			t.Fatal(err)
		}
		wantState, wantImported := fs.FileMode(0o700), fs.FileMode(0o700)
		if shared {
			wantState, wantImported = 0o711, 0o755
		}
		if state, imported := modes(); state != wantState || imported != wantImported {
			t.Errorf("shared %v: modes %o and %o, want %o and %o", shared, state, imported, wantState, wantImported)
		}
		if info, err := os.Stat(s.record("1bit-hrx-3092596")); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("shared %v: record %v, %v", shared, info, err)
		}
		if info, err := os.Stat(s.lockFile()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("shared %v: lock %v, %v", shared, info, err)
		}
		// What was imported before that is shown by the next command that locks the store.
		if err := os.Chmod(s.StateDir, 0o700); err != nil {
			t.Fatal(err)
		}
		unlock, err := s.LockShared(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		unlock()
		if state, _ := modes(); state != wantState {
			t.Errorf("shared %v: state folder %o after a lock, want %o", shared, state, wantState)
		}
	}
}

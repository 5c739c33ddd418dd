package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Everybody may lock a folder that everybody may read: only an account that has business there is waited for.
func TestLockUnitPassesOverAStranger(t *testing.T) {
	for name, tt := range map[string]struct {
		uid   int // of the process that holds the folder; 0: root's
		named bool
		state bool
		busy  bool
	}{
		"another account":                   {uid: os.Getuid() + 4711, named: true, state: true},
		"another account, no state folder":  {uid: os.Getuid() + 4711, named: true},
		"root":                              {named: true, state: true, busy: true},
		"this account":                      {uid: os.Getuid(), named: true, state: true, busy: true},
		"nobody knows who":                  {state: true},
		"nobody knows who, no state folder": {busy: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := &Host{UnitDir: filepath.Join(dir, "units"), StateDir: filepath.Join(dir, "state"), Proc: filepath.Join(dir, "proc"), LockWait: 50 * time.Millisecond}
			folder := h.dropInDir("u.service")
			if err := errors.Join(os.MkdirAll(folder, 0o755), os.MkdirAll(h.Proc+"/77", 0o755)); err != nil {
				t.Fatal(err)
			}
			if tt.state {
				if err := os.Mkdir(h.StateDir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			var st unix.Stat_t
			if err := unix.Stat(folder, &st); err != nil {
				t.Fatal(err)
			}
			if tt.named {
				locks := fmt.Sprintf("1: FLOCK  ADVISORY  WRITE 77 %02x:%02x:%d 0 EOF\n", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
				status := fmt.Sprintf("Name:\tsleep\nUid:\t%d\t0\t0\t0\n", tt.uid) // its effective account is root's
				if err := errors.Join(os.WriteFile(h.Proc+"/locks", []byte(locks), 0o644), os.WriteFile(h.Proc+"/77/status", []byte(status), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			theirs, _, err := tryLockDir(folder)
			if err != nil || theirs == nil {
				t.Fatal(err)
			}
			defer theirs.release()
			done, note, err := h.lockUnit(t.Context(), "u.service")
			if tt.busy {
				if !errors.Is(err, ErrBusy) {
					t.Errorf("it is not waited for: %v", err)
				}
				return
			}
			if err != nil || !strings.Contains(note, folder) {
				t.Fatalf("%q, %v", note, err)
			}
			if tt.state { // the lock that nobody else can take still keeps our own commands apart
				if _, _, err := h.lockUnit(t.Context(), "u.service"); !errors.Is(err, ErrBusy) {
					t.Errorf("two at once: %v", err)
				}
				for path, want := range map[string]os.FileMode{locksName: 0o700, locksName + "/u.service": 0o700} {
					if info, err := os.Stat(filepath.Join(h.StateDir, path)); err != nil || info.Mode().Perm() != want {
						t.Errorf("%s: %v, %v", path, info, err)
					}
				}
			}
			done()
		})
	}
}

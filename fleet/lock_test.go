package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLockUnit(t *testing.T) {
	h := &Host{UnitDir: filepath.Join(t.TempDir(), "systemd", "user")}
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			done, _, err := h.lockUnit(t.Context(), "u.service")
			if err != nil {
				t.Error(err)
				return
			}
			now := inside.Add(1)
			most.Store(max(most.Load(), now))
			inside.Add(-1)
			done()
		})
	}
	all.Wait()
	if most.Load() != 1 {
		t.Errorf("%d held the lock at once", most.Load())
	}
	if _, err := os.Stat(h.dropInDir("u.service")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty folder stays: %v", err)
	}
}

func TestLockUnitKeepsFiles(t *testing.T) {
	h := &Host{UnitDir: t.TempDir()}
	done, _, err := h.lockUnit(t.Context(), "u.service")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.dropInDir("u.service"), dropInName)
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	done()
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	// An empty folder that was there before is somebody's: it stays.
	if err := os.Mkdir(h.dropInDir("v.service"), 0o755); err != nil {
		t.Fatal(err)
	}
	if done, _, err = h.lockUnit(t.Context(), "v.service"); err != nil {
		t.Fatal(err)
	}
	done()
	if _, err := os.Stat(h.dropInDir("v.service")); err != nil {
		t.Error(err)
	}
}

func TestLockUnitBusy(t *testing.T) {
	h := &Host{UnitDir: t.TempDir(), LockWait: 30 * time.Millisecond}
	done, _, err := h.lockUnit(t.Context(), "u.service")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.lockUnit(t.Context(), "u.service"); !errors.Is(err, ErrBusy) {
		t.Errorf("held by another: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := h.lockUnit(ctx, "u.service"); !errors.Is(err, context.Canceled) || errors.Is(err, ErrBusy) {
		t.Errorf("cancelled: %v", err)
	}
	done()
	if done, _, err = h.lockUnit(t.Context(), "u.service"); err != nil {
		t.Fatal(err)
	}
	done()
}

func TestLockUnitRefusesALink(t *testing.T) {
	h := &Host{UnitDir: t.TempDir()}
	dotfiles := t.TempDir()
	if err := os.Symlink(dotfiles, h.dropInDir("u.service")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.lockUnit(t.Context(), "u.service"); !errors.Is(err, ErrRefused) {
		t.Errorf("a linked folder: %v", err)
	}
}

func TestUnitName(t *testing.T) {
	for in, want := range map[string]string{
		"llm": "llm.service", "llm.service": "llm.service", "a@b": "a@b.service", `gpu\x2d0@x`: `gpu\x2d0@x.service`,
		"": "", "../x": "", "a/b": "", "a b.service": "", ".service": "", "x\n": "", "a;b": "",
	} {
		got, err := unitName(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", in, got, err)
		}
	}
}

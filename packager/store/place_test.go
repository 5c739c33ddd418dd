package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// twoStores are a user's store that also sees the machine's.
func twoStores(t *testing.T) (own, machine *Store) {
	t.Helper()
	own, machine = newStore(t), newStore(t)
	own.Also = []*Store{Open(machine.Dir, machine.StateDir)}
	return own, machine
}

func TestAlsoSees(t *testing.T) {
	own, machine := twoStores(t)
	ctx := context.Background()
	mine, theirs := install(t, own, "b", "1"), install(t, machine, "a", "1")
	wantList(t, own, "hrx-a ok", "hrx-b ok")
	wantList(t, machine, "hrx-a ok")
	for query, want := range map[string]*Package{"b": mine, "hrx-a": theirs, theirs.Digest[:20]: theirs, theirs.Path: theirs} {
		if p, err := own.Find(ctx, query); err != nil || p.Path != want.Path {
			t.Errorf("find %s: %v, %v", query, p, err)
		}
	}
	if p, ok := own.AtPath(filepath.Join(theirs.Path, "hrx")); !ok || p.Path != theirs.Path {
		t.Errorf("at path: %v", p)
	}
	if v, err := own.Verify(ctx, theirs, nil); err != nil || !v.OK {
		t.Errorf("verify: %v, %v", v, err)
	}
	if err := own.Remove(ctx, theirs, nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "lies in "+machine.Dir+": root removes it with --scope system") {
		t.Errorf("remove: %v", err)
	}
	wantList(t, own, "hrx-a ok", "hrx-b ok")
	// A switch to what lies there keeps it there.
	unlock, err := own.LockShared(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := machine.Remove(ctx, theirs, nil); !errors.Is(err, ErrBusy) {
		t.Errorf("remove while the user switches: %v", err)
	}
	unlock()
	if err := machine.Remove(ctx, theirs, nil); err != nil {
		t.Error(err)
	}
	wantList(t, own, "hrx-b ok")
	if err := os.RemoveAll(machine.Dir); err != nil {
		t.Fatal(err)
	}
	wantList(t, own, "hrx-b ok")
}

func TestAlsoSameName(t *testing.T) {
	own, machine := twoStores(t)
	ctx := context.Background()
	install(t, machine, "a", "1")
	mine := install(t, own, "a", "1")
	wantList(t, own, "hrx-a ok", "hrx-a ok")
	for _, query := range []string{"a", "hrx-a", mine.Digest} {
		if p, err := own.Find(ctx, query); err != nil || p.Path != mine.Path {
			t.Errorf("find %s: %v, %v", query, p, err)
		}
	}
	other := install(t, machine, "b", "1")
	install(t, own, "b", "2")
	if _, err := own.Find(ctx, "b"); !errors.Is(err, ErrAmbiguous) || !strings.Contains(err.Error(), "hrx-b in "+own.Dir+", hrx-b in "+machine.Dir) {
		t.Errorf("two of one name: %v", err)
	}
	if p, err := own.Find(ctx, other.Digest); err != nil || p.Path != other.Path {
		t.Errorf("by its digest: %v, %v", p, err)
	}
}

func TestAlsoImported(t *testing.T) {
	own, machine := twoStores(t)
	write(t, filepath.Join(machine.Dir, "1bit-hrx-old", "hrx/llama/bin/llama-server"), "server")
	if err := os.Chmod(filepath.Join(machine.Dir, "1bit-hrx-old", "hrx/llama/bin/llama-server"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := machine.Import(context.Background(), filepath.Join(machine.Dir, "1bit-hrx-old")); err != nil {
		t.Fatal(err)
	}
	p, err := own.Find(context.Background(), "old")
	if err != nil || p.InstalledBy != InstalledByImport {
		t.Fatal(p, err)
	}
	if v, err := own.Verify(context.Background(), p, nil); err != nil || !v.OK {
		t.Errorf("verify: %v, %v", v, err)
	}
}

func TestNative(t *testing.T) {
	for mark, want := range map[string]string{
		"deb":             "was installed by dpkg: apt-get remove 1bit-hrx-a",
		"deb 1bit-hrx.a":  "was installed by dpkg: apt-get remove 1bit-hrx.a",
		"rpm\n":           "was installed by rpm: dnf remove 1bit-hrx-a (or rpm -e 1bit-hrx-a)",
		"archlinux":       "was installed by pacman: pacman -R 1bit-hrx-a",
		"":                "was installed by another package manager",
		"something else ": "was installed by another package manager",
	} {
		s := newStore(t)
		if p := install(t, s, "a", "1"); p.InstalledBy != InstalledByUs {
			t.Errorf("installed by %q", p.InstalledBy)
		}
		marked := filepath.Join(s.Dir, ".1bit-native", "1bit-hrx-a")
		write(t, marked, mark)
		if err := os.Chtimes(marked, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
		p, err := s.Find(context.Background(), "a")
		if err != nil || p.InstalledBy != strings.Join(strings.Fields(mark)[:min(1, len(strings.Fields(mark)))], "") {
			t.Fatalf("%q: %v, %v", mark, p, err)
		}
		if age := time.Since(p.InstalledAt); age < 0 || age > time.Hour {
			t.Errorf("%q: installed at %v", mark, p.InstalledAt)
		}
		if err := s.Remove(context.Background(), p, nil); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", mark, err)
		}
		wantList(t, s, "hrx-a ok")
	}
}

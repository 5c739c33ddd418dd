package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// fill writes a file until the file system has no byte left.
func (s *service) fill(path string) {
	s.Helper()
	f, err := os.Create(path)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); ; {
		if _, err = f.Write(block); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		s.Fatal(err)
	}
}

func testFullDisk(t *testing.T, in *inside) {
	s := in.start(t, "full", "aaa0001")
	h := *in.host
	h.StateDir = filepath.Join(in.home, "full-state")
	in2 := *in
	in2.host = &h
	s.inside = &in2
	s.restartOn("bbb0002")
	s.restartOn("ccc0003")
	s.switchTo("aaa0001")
	filler, filler2 := s.path(s.unit+".d", "filler"), filepath.Join(h.StateDir, "filler")
	s.fill(filler)
	s.fill(filler2)
	s.fails("a switch on a full disk", syscall.ENOSPC, nil, func() (*fleet.Outcome, error) {
		return h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	further := func() (*fleet.Outcome, error) { return h.Rollback(t.Context(), s.unit, again) }
	s.fails("one further back at once", syscall.ENOSPC, []string{"no room"}, further)
	out := s.rollback()
	s.want(out.Service, "ccc0003", "ccc0003", "ccc0003", false)
	if !out.Loaded || !out.Changed || blocks(out.Service) != "aaa0001: rolled back" {
		t.Errorf("rollback: %s", show(out))
	}
	s.stays()
	files := s.snapshot()
	if _, err := further(); !errors.Is(err, syscall.ENOSPC) || s.snapshot() != files {
		t.Errorf("one further back: %v, files %s, before %s", err, s.snapshot(), files)
	}
	s.want(s.back(undo).Service, "aaa0001", "ccc0003", "ccc0003", true)
	s.want(s.rollback().Service, "ccc0003", "ccc0003", "ccc0003", false)
	// The first switch of a unit is rolled back there as well.
	if err := errors.Join(os.Remove(filler), os.Remove(filler2)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Unswitch(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	s.switchTo("bbb0002")
	s.fill(filler)
	out = s.rollback()
	s.want(out.Service, "aaa0001", "ccc0003", "ccc0003", true)
	s.wantFiles("filler", prev)
	s.want(s.back(undo).Service, "bbb0002", "ccc0003", "ccc0003", true)
	out = s.rollback()
	if s.want(out.Service, "aaa0001", "ccc0003", "ccc0003", true); blocks(out.Service) != "bbb0002: rolled back" {
		t.Errorf("blocked: %s", blocks(out.Service))
	}
}

func testNoBus(t *testing.T, in *inside) {
	s := in.start(t, "nobus", "aaa0001")
	h := *in.host
	h.Connect = func(ctx context.Context) (*systemd.Manager, error) {
		return systemd.Connect(ctx, systemd.ConnectOptions{UID: in.uid, Root: "/nowhere"})
	}
	offline := func(name string, act func() (*fleet.Outcome, error)) {
		t.Helper()
		s.fails(name, systemd.ErrNoBus, []string{"linger"}, act)
	}
	offline("a first switch", func() (*fleet.Outcome, error) {
		return h.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	offline("a rollback of nothing", func() (*fleet.Outcome, error) {
		return h.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	})
	s.restartOn("bbb0002")
	s.switchTo("ccc0003")
	out, err := h.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	s.do("rollback", out, err)
	if out.Loaded || !out.Changed || out.OnDisk == nil || out.OnDisk.Package != "hrx-bbb0002" || out.Armed != nil {
		t.Errorf("rollback: %s", show(out))
	}
	// The next command, whichever, has it loaded, and starts nothing else.
	restarted, err := in.host.Restart(t.Context(), s.unit, 0)
	s.do("restart", restarted, err)
	s.want(restarted.Service, "bbb0002", "bbb0002", "bbb0002", false)
	if !slices.ContainsFunc(restarted.Notes, func(note string) bool { return strings.Contains(note, "loaded now") }) {
		t.Errorf("restart does not say what it loaded: %s", show(restarted))
	}
	offUndo, err := h.Rollback(t.Context(), s.unit, undo)
	s.do("undo", offUndo, err)
	now := s.status()
	s.want(now, "ccc0003", "bbb0002", "bbb0002", true)
	if again := s.status(); now.OnDisk != nil || len(again.Warnings) != len(now.Warnings)-1 {
		t.Errorf("status: %s, then %s", show(now), show(again))
	}
	// Also where no file is left.
	out, err = h.Unswitch(t.Context(), s.unit)
	s.do("unswitch", out, err)
	if out.Loaded {
		t.Errorf("unswitch: %s", show(out))
	}
	s.want(s.status(), "aaa0001", "bbb0002", "bbb0002", true)
	// What the owner has changed since is his.
	s.restartOn("bbb0002")
	s.switchTo("ccc0003")
	out, err = h.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	s.do("rollback", out, err)
	if err := rewrite(s.path(s.unit+".d", ours), "[Service]\n", "[Service]\nNice=3\n"); err != nil {
		t.Fatal(err)
	}
	if now = s.status(); now.OnDisk == nil || now.Armed.Package != "hrx-ccc0003" {
		t.Errorf("what the owner changed was loaded: %s", show(now))
	}
	s.chain()
}

// cut leaves the files of a switch as a crash at a certain row of the package's table would.
func testCutOff(t *testing.T, in *inside) {
	s := in.start(t, "cut", "aaa0001")
	s.restartOn("bbb0002")
	s.switchTo("ccc0003")
	dir := func(name string) string { return s.path(s.unit+".d", name) }
	read := func(name string) []byte {
		data, err := os.ReadFile(dir(name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	newActive, newPrev := read(ours), read(prev)
	oldActive := []byte(strings.Replace(string(newPrev), "Generation=2", "Generation=1", 1))
	put := func(files map[string][]byte) {
		t.Helper()
		for _, name := range s.files() {
			if err := os.Remove(dir(name)); err != nil {
				t.Fatal(err)
			}
		}
		for name, data := range files {
			if err := os.WriteFile(dir(name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	type files = map[string][]byte
	for name, tt := range map[string]struct {
		files files
		want  string
		left  []string
	}{
		"staged":   {files{ours: oldActive, "zz-1bit.conf.new": newActive, "zz-1bit.conf.prev.new": newPrev}, "bbb0002", []string{ours}},
		"halfway":  {files{ours: oldActive, "zz-1bit.conf.new": newActive, prev: newPrev}, "bbb0002", []string{ours}},
		"in place": {files{ours: newActive, "zz-1bit.conf.new": oldActive, prev: newPrev}, "ccc0003", []string{ours, prev}},
		"leftover": {files{ours: newActive, prev: newPrev, ".zz-1bit.conf.new.17.tmp": []byte("[Serv")}, "ccc0003", []string{ours, prev}},
	} {
		for _, reloaded := range []bool{true, false} {
			put(tt.files)
			if reloaded {
				s.reload()
			}
			now := s.status()
			s.want(now, tt.want, "bbb0002", "bbb0002", tt.want != "bbb0002")
			if now.OnDisk != nil {
				t.Errorf("%s: on disk and armed differ: %s", name, show(now))
			}
			s.wantFiles(tt.left...)
		}
	}
	// In place, but something has come to win since: it is undone.
	put(files{ours: newActive, "zz-1bit.conf.new": oldActive, prev: newPrev,
		"zzz-local.conf": []byte("[Service]\nEnvironment=ONEBIT_LLAMA_SERVER=/build/x\n")})
	s.status()
	s.wantFiles(ours, "zzz-local.conf")
	if string(read(ours)) != string(oldActive) {
		t.Error("what something wins over was finished")
	}
}

func testDamagedPrev(t *testing.T, in *inside) {
	s := in.start(t, "damaged", "aaa0001")
	s.restartOn("bbb0002")
	path := s.path(s.unit+".d", prev)
	for name, damage := range map[string]func() error{
		"gone":                func() error { return os.Remove(path) },
		"torn":                func() error { return os.Truncate(path, 40) },
		"another switch's":    func() error { return rewrite(path, "Generation=", "Generation=9") },
		"the journal is lost": func() error { return os.Remove(filepath.Join(in.host.StateDir, "journal.jsonl")) },
		"the journal is noise": func() error {
			return os.WriteFile(filepath.Join(in.host.StateDir, "journal.jsonl"), []byte("\x00\xff{\n"), 0o600)
		},
	} {
		s.switchTo("ccc0003")
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		out := s.rollback()
		s.want(out.Service, "bbb0002", "bbb0002", "bbb0002", false)
		if again := s.rollback(); again.Changed {
			t.Errorf("%s: a second rollback changed something: %s", name, show(again))
		}
		if _, err := in.host.Unblock(t.Context(), s.unit, "hrx-ccc0003"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	// An active file that a person edited is no obstacle either.
	s.switchTo("ccc0003")
	if err := rewrite(s.path(s.unit+".d", ours), "[Service]\n", "[Service]\nNice=3\n"); err != nil {
		t.Fatal(err)
	}
	s.reload()
	s.fails("a switch over a person's line", fleet.ErrRefused, []string{ours, "line"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["aaa0001"], fleet.SwitchOptions{})
	})
	s.want(s.rollback().Service, "bbb0002", "bbb0002", "bbb0002", false)
}

func rewrite(path, old, new string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !strings.Contains(string(data), old) {
		return fmt.Errorf("%s holds no %q", path, old)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(data), old, new, 1)), 0o644)
}

package fleet_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager"
)

// A start limit that the failed package used up does not keep the one before from serving.
func testStartLimit(t *testing.T, in *inside) {
	s := in.start(t, "limited", "aaa0001", "[Unit]", "StartLimitIntervalSec=1h", "StartLimitBurst=2")
	for range 2 {
		s.giveBack("ddd0004", "aaa0001", "")
		if _, err := in.host.Unblock(t.Context(), s.unit, "hrx-ddd0004"); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if _, err := in.host.Restart(t.Context(), s.unit, 0); err != nil {
			t.Fatal(err)
		}
	}
	// Also where it was hit before: armed by a switch alone, crashed until systemd gave up, then rolled back.
	s.switchTo("ddd0004")
	s.kill(s.status().Live.Main.PID)
	soon(func() bool {
		return s.status().Health == fleet.HealthFailing && strings.HasPrefix(s.status().State, "failed")
	})
	now := s.status()
	if !strings.HasPrefix(now.State, "failed") || now.Live != nil {
		t.Errorf("systemd has not given up: %s", show(now))
	}
	out, err := in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Restart: true})
	s.want(s.do("rollback with restart", out, err).Service, "aaa0001", "aaa0001", "aaa0001", false)
	s.chain()
}

// Nothing is written through a link, and no link is replaced.
func testLinks(t *testing.T, in *inside) {
	s := in.start(t, "linked", "aaa0001")
	dotfiles := filepath.Join(in.home, "dotfiles")
	if err := os.MkdirAll(dotfiles, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dotfiles) })
	target := filepath.Join(dotfiles, ours)
	refused := func(name string, texts ...string) {
		t.Helper()
		for act, run := range map[string]func() (*fleet.Outcome, error){
			"switch": func() (*fleet.Outcome, error) {
				return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
			},
			"rollback": func() (*fleet.Outcome, error) {
				return in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
			},
		} {
			s.fails(act+" "+name, fleet.ErrRefused, texts, run)
		}
		s.status()
	}
	// The file.
	s.switchTo("ccc0003")
	data, err := os.ReadFile(s.path(s.unit+".d", ours))
	if err != nil {
		t.Fatal(err)
	}
	path := s.path(s.unit+".d", ours)
	for _, to := range []string{target, "/dev/null", filepath.Join(dotfiles, "missing")} {
		if err := errors.Join(os.WriteFile(target, data, 0o644), os.Remove(path), os.Symlink(to, path)); err != nil {
			t.Fatal(err)
		}
		s.reload()
		refused("where our file is a link to "+to, "is a link", path)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	// A staged name.
	staged := path + ".new"
	if err := errors.Join(os.WriteFile(path, data, 0o644), os.Symlink(target, staged)); err != nil {
		t.Fatal(err)
	}
	s.reload()
	s.fails("switch where a staging name is a link", fleet.ErrRefused, []string{staged, "is a link"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	s.want(s.rollback().Service, "aaa0001", "aaa0001", "aaa0001", false)
	if err := os.Remove(staged); err != nil {
		t.Fatal(err)
	}
	// The folder.
	if err := errors.Join(os.Rename(s.path(s.unit+".d", prev), filepath.Join(dotfiles, prev)), os.Remove(s.path(s.unit+".d")),
		os.Symlink(dotfiles, s.path(s.unit+".d"))); err != nil {
		t.Fatal(err)
	}
	s.reload()
	refused("where the folder is a link", "is a link", s.unit+".d")
	if to, err := os.Readlink(s.path(s.unit + ".d")); err != nil || to != dotfiles {
		t.Errorf("the folder leads to %q, %v", to, err)
	}
	if now, err := os.ReadFile(target); err != nil || string(now) != string(data) {
		t.Errorf("the target was written: %q, %v", now, err)
	}
}

// The journal and its folder are no condition of a rollback, and a switch without them changes nothing.
func testState(t *testing.T, in *inside) {
	s := in.start(t, "stateless", "aaa0001")
	h := *in.host
	h.StateDir = filepath.Join(in.home, "own-state")
	journal := filepath.Join(h.StateDir, "journal.jsonl")
	t.Cleanup(func() { os.Chmod(h.StateDir, 0o700); os.RemoveAll(h.StateDir) })
	switchTo := func(id string) error {
		_, err := h.Switch(t.Context(), s.unit, in.pkgs[id], fleet.SwitchOptions{})
		return err
	}
	for name, tt := range map[string]struct {
		damage   func() error
		switches bool
	}{
		"lost": {func() error { return nil }, true},
		"noise": {func() error {
			return os.WriteFile(journal, []byte("\x00\xff{\n{\"seq\":9223372036854775807,\"unit\":\"stateless.service\",\"scope\":\"user\",\"phase\":\"intent\",\"act\":\"switch\"}\n"), 0o600)
		}, true},
		"huge":        {func() error { return errors.Join(os.WriteFile(journal, nil, 0o600), os.Truncate(journal, 10<<30)) }, true},
		"read-only":   {func() error { return errors.Join(os.WriteFile(journal, nil, 0o600), os.Chmod(journal, 0o400)) }, false},
		"unreadable":  {func() error { return errors.Join(os.WriteFile(journal, nil, 0o600), os.Chmod(journal, 0)) }, false},
		"a folder":    {func() error { return os.Mkdir(journal, 0o700) }, false},
		"a link":      {func() error { return os.Symlink("/dev/null", journal) }, false},
		"a pipe":      {func() error { return syscall.Mkfifo(journal, 0o600) }, false},
		"no folder":   {func() error { return os.RemoveAll(h.StateDir) }, true},
		"dead folder": {func() error { return os.Chmod(h.StateDir, 0) }, false},
	} {
		_ = os.Chmod(h.StateDir, 0o700)
		if err := errors.Join(os.RemoveAll(h.StateDir), os.Mkdir(h.StateDir, 0o700), tt.damage()); err != nil {
			t.Fatal(err)
		}
		before := s.snapshot()
		err := switchTo("bbb0002")
		if (err == nil) != tt.switches || err != nil && s.snapshot() != before {
			t.Errorf("%s: switch: %v", name, err)
		}
		if err != nil {
			s.switchTo("bbb0002") // by the state of the others
		}
		out, err := h.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
		if err != nil || !out.Changed || !out.Loaded || out.Armed.Package != "hrx-aaa0001" {
			t.Errorf("%s: rollback: %s, %v", name, show(out), err)
		}
		for _, opts := range []fleet.RollbackOptions{undo, {}} {
			if !strings.HasSuffix(name, "folder") { // the others are alike
				break
			}
			if out, err := h.Rollback(t.Context(), s.unit, opts); err != nil || !out.Changed || !out.Loaded {
				t.Errorf("%s: %+v: %s, %v", name, opts, show(out), err)
			}
		}
		if out, err := h.Restart(t.Context(), s.unit, 0); err != nil {
			t.Errorf("%s: restart: %s, %v", name, show(out), err)
		}
		if _, err := h.Status(t.Context(), s.unit); err != nil {
			t.Errorf("%s: status: %v", name, err)
		}
		if _, err := in.host.Unswitch(t.Context(), s.unit); err != nil {
			t.Fatal(err)
		}
	}
}

// A package that is damaged or gone is not gone back to; one that is only armed is left all the same.
func testPackageGone(t *testing.T, in *inside) {
	s := in.start(t, "gone", "aaa0001")
	s.restartOn("bbb0002")
	s.switchTo("ccc0003")
	dir, away := in.pkgs["bbb0002"].Path, filepath.Join(in.home, "away")
	program := filepath.Join(dir, "hrx/llama/bin/llama-server")
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	touch := func() error {
		return errors.Join(os.Chmod(program, 0o755), os.WriteFile(program, append(data, '#'), 0o755))
	}
	if err := touch(); err != nil {
		t.Fatal(err)
	}
	rollback := func() (*fleet.Outcome, error) {
		return in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{})
	}
	s.fails("rollback to a touched package", packager.ErrIntegrity, []string{"hrx-bbb0002", "llama-server", "to hrx-aaa0001, with: 1bit pkg rollback --again gone.service"}, rollback)
	s.want(s.back(again).Service, "aaa0001", "bbb0002", "bbb0002", true) // as it says
	s.want(s.back(undo).Service, "ccc0003", "bbb0002", "bbb0002", true)
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Rename(away, dir)
		err := errors.Join(os.WriteFile(program, data, 0o755), os.Chmod(program, before.Mode()), os.Chtimes(program, before.ModTime(), before.ModTime()))
		if err != nil {
			t.Error(err)
		}
	})
	s.fails("rollback to a package that is gone", packager.ErrIntegrity, []string{"hrx-bbb0002"}, rollback)
	if now := s.status(); now.Live == nil || !strings.Contains(strings.Join(now.Warnings, "\n"), "no longer there") {
		t.Errorf("status: %s", show(now))
	}
	// A switch away from it works, and forgets it only when asked.
	s.want(s.switchTo("aaa0001").Service, "aaa0001", "bbb0002", "bbb0002", true)
	if out, err := in.host.Restart(t.Context(), s.unit, 0); err != nil {
		t.Errorf("restart: %s, %v", show(out), err)
	}
	s.chain()
}

// A stopped service is switched, rolled back and started like any other.
func testStopped(t *testing.T, in *inside) {
	s := in.start(t, "stopped", "aaa0001")
	if _, err := in.m.Stop(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	out := s.switchTo("bbb0002")
	s.want(out.Service, "bbb0002", "", "", false)
	back := s.rollback()
	s.want(back.Service, "aaa0001", "", "", false)
	if back.From != "hrx-bbb0002" || back.To != "hrx-aaa0001" {
		t.Errorf("rollback: %s", show(back))
	}
	s.stays()
	s.restartOn("ccc0003")
	if _, err := in.m.Stop(t.Context(), s.unit); err != nil {
		t.Fatal(err)
	}
	restarted, err := in.host.Restart(t.Context(), s.unit, 0)
	s.want(s.do("restart", restarted, err).Service, "ccc0003", "ccc0003", "ccc0003", false)
	want := "switch aaa0001>bbb0002 armed, rollback bbb0002>aaa0001 armed, switch aaa0001>ccc0003 armed, restart ccc0003>ccc0003 serves, restart ccc0003>ccc0003 serves"
	if got := strings.Join(s.chain(), ", "); got != want {
		t.Errorf("history %s\nwant %s", got, want)
	}
}

// A variable that only an EnvironmentFile sets cannot be moved by a drop-in.
func testEnvironmentFile(t *testing.T, in *inside) {
	env := filepath.Join(in.home, "only.env")
	program := filepath.Join(in.pkgs["aaa0001"].Path, "hrx/llama/bin/llama-server")
	if err := os.WriteFile(env, []byte("A=1\nONEBIT_LLAMA_SERVER="+program+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(env) })
	s := in.start(t, "only-file", "aaa0001", "EnvironmentFile="+env)
	if err := rewrite(s.path(s.unit), "Environment=ONEBIT_LLAMA_SERVER=", "#"); err != nil {
		t.Fatal(err)
	}
	s.reload()
	s.want(s.status(), "aaa0001", "aaa0001", "aaa0001", false)
	s.fails("a switch", fleet.ErrRefused, []string{env + ":2", "EnvironmentFile=", "ONEBIT_LLAMA_SERVER"}, func() (*fleet.Outcome, error) {
		return in.host.Switch(t.Context(), s.unit, in.pkgs["bbb0002"], fleet.SwitchOptions{})
	})
	s.wantFiles()
}

// Values reach the process as they are: lists, spaces, percent signs, quotes, letters of any language.
func testOddValues(t *testing.T, in *inside) {
	lib := in.pkgs["aaa0001"].Path + "/hrx/llama/lib"
	list := lib + `:/p q/50%/it's/"x"\y/größe:` + in.pkgs["aaa0001"].Path + "/hrx/:/usr/lib"
	text := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(list)
	s := in.start(t, "odd", "aaa0001", `Environment="ODD_PATH=`+text+`" "OTHER=kept as it is"`)
	value := func() string {
		t.Helper()
		env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.status().Live.Main.PID), "environ"))
		if err != nil {
			t.Fatal(err)
		}
		for _, pair := range strings.Split(string(env), "\x00") {
			if v, ok := strings.CutPrefix(pair, "ODD_PATH="); ok {
				return v
			}
		}
		return ""
	}
	if got := value(); got != list {
		t.Fatalf("the unit itself says %q, want %q", got, list)
	}
	moved := strings.ReplaceAll(list, "1bit-hrx-aaa0001", "1bit-hrx-bbb0002")
	s.want(s.restartOn("bbb0002").Service, "bbb0002", "bbb0002", "bbb0002", false)
	if got := value(); got != moved {
		t.Errorf("the process has %q, want %q", got, moved)
	}
	s.restartOn("ccc0003")
	out, err := in.host.Rollback(t.Context(), s.unit, fleet.RollbackOptions{Restart: true})
	s.want(s.do("rollback", out, err).Service, "bbb0002", "bbb0002", "bbb0002", false)
	if got := value(); got != moved {
		t.Errorf("after the rollback the process has %q, want %q", got, moved)
	}
}

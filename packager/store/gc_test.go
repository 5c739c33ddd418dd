package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// age sets when a package was installed.
func age(t *testing.T, p *Package, at time.Time) {
	t.Helper()
	if err := os.Chtimes(filepath.Join(p.Path, "1bit-package.json"), at, at); err != nil {
		t.Fatal(err)
	}
}

func nothing(context.Context) (func(*Package) []string, error) {
	return func(*Package) []string { return nil }, nil
}

// decided maps names to what keeps them; "" went.
func decided(t *testing.T, s *Store, opts GCOptions, inUse func(context.Context) (func(*Package) []string, error)) map[string]string {
	t.Helper()
	decisions, err := s.GC(context.Background(), opts, inUse)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, d := range decisions {
		out[d.Package.Name] = strings.Join(d.Reasons, "; ")
	}
	return out
}

func TestGC(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for what, c := range map[string]struct {
		opts GCOptions
		want map[string]string
	}{
		"nothing keeps": {GCOptions{}, map[string]string{"hrx-a": "", "hrx-b": "", "hrx-c": "armed in x.service", "hrx-d": "", "hrx-old": "imported: only 1bit pkg remove takes it"}},
		"two of a flavour, a broken one not counted": {GCOptions{Keep: 2}, map[string]string{
			"hrx-a": "", "hrx-b": "one of the last 2 of flavour hrx", "hrx-c": "armed in x.service; one of the last 2 of flavour hrx", "hrx-d": "", "hrx-old": "imported: only 1bit pkg remove takes it"}},
		"one": {GCOptions{Keep: 1}, map[string]string{
			"hrx-a": "", "hrx-b": "", "hrx-c": "armed in x.service; the last of flavour hrx", "hrx-d": "", "hrx-old": "imported: only 1bit pkg remove takes it"}},
		"days": {GCOptions{KeepDays: 2}, map[string]string{
			"hrx-a": "", "hrx-b": "", "hrx-c": "armed in x.service; installed on 2026-11-29 12:00", "hrx-d": "installed on 2026-11-30 11:00", "hrx-old": "imported: only 1bit pkg remove takes it"}},
	} {
		for _, dry := range []bool{true, false} {
			t.Run(fmt.Sprint(what, " dry ", dry), func(t *testing.T) {
				s := newStore(t)
				age(t, install(t, s, "a", "1"), now.AddDate(0, 0, -9))
				age(t, install(t, s, "b", "2"), now.AddDate(0, 0, -3))
				age(t, install(t, s, "c", "3"), now.AddDate(0, 0, -1))
				broken := install(t, s, "d", "4")
				writable(broken.Path)
				if err := os.Remove(filepath.Join(broken.Path, "1bit")); err != nil {
					t.Fatal(err)
				}
				age(t, broken, now.Add(-time.Hour))
				old := filepath.Join(s.Dir, "1bit-hrx-old")
				write(t, filepath.Join(old, "1bit"), "#!/bin/sh\n")
				if err := os.Chmod(filepath.Join(old, "1bit"), 0o755); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Import(context.Background(), old); err != nil {
					t.Fatal(err)
				}
				asked := 0
				c.opts.Now, c.opts.DryRun = now.Local(), dry
				got := decided(t, s, c.opts, func(ctx context.Context) (func(*Package) []string, error) {
					asked++
					return func(p *Package) []string {
						if p.Name == "hrx-c" {
							return []string{"armed in x.service"}
						}
						return nil
					}, nil
				})
				for name, why := range got { // times are local
					got[name] = strings.ReplaceAll(why, now.AddDate(0, 0, -1).Local().Format("2006-01-02 15:04"), "2026-11-29 12:00")
					got[name] = strings.ReplaceAll(got[name], now.Add(-time.Hour).Local().Format("2006-01-02 15:04"), "2026-11-30 11:00")
				}
				if diff := cmp.Diff(c.want, got); diff != "" || asked != 1 {
					t.Errorf("asked %d times; -want +got\n%s", asked, diff)
				}
				packages, err := s.List(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				var left []string
				for _, p := range packages {
					left = append(left, p.Name)
				}
				for name, why := range c.want {
					if there := slices.Contains(left, name); there != (dry || why != "") {
						t.Errorf("%s is there: %v", name, there)
					}
				}
				wantEmptyStaging(t, s)
			})
		}
	}
}

func TestGCRefuses(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	p := install(t, s, "a", "1")
	bad := errors.New("no bus")
	if _, err := s.GC(ctx, GCOptions{}, func(context.Context) (func(*Package) []string, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Errorf("cannot tell: %v", err)
	}
	unlock, err := s.LockShared(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.GC(ctx, GCOptions{}, nothing); !errors.Is(err, ErrBusy) {
		t.Errorf("while a switch runs: %v", err)
	}
	unlock()
	write(t, filepath.Join(s.Dir, nativeName, "1bit-hrx-a"), "deb")
	if got := decided(t, s, GCOptions{}, nothing); got["hrx-a"] != "installed by dpkg: apt-get remove 1bit-hrx-a" {
		t.Errorf("a native one: %v", got)
	}
	if err := os.RemoveAll(filepath.Join(s.Dir, nativeName)); err != nil {
		t.Fatal(err)
	}
	// A switch that begins while it looks has to wait.
	got := decided(t, s, GCOptions{}, func(ctx context.Context) (func(*Package) []string, error) {
		if _, err := s.LockShared(ctx); !errors.Is(err, ErrBusy) {
			t.Errorf("a switch meanwhile: %v", err)
		}
		return nothing(ctx)
	})
	if _, err := os.Lstat(p.Path); !errors.Is(err, os.ErrNotExist) || got["hrx-a"] != "" {
		t.Errorf("afterwards: %v, %v", err, got)
	}
}

// The recorded processes of a machine: files that are gone, a folder that is
// really named so, a program that its loader started, one that nobody may
// look at.
func TestGCAsksProcesses(t *testing.T) {
	s := newStore(t)
	a, b, c, d := install(t, s, "a", "1"), install(t, s, "b", "1"), install(t, s, "c", "1"), install(t, s, "d", "1")
	const server = "/hrx/llama/bin/llama-server"
	odd := b.Path + " (deleted)"
	write(t, odd+server, "another one")
	e := install(t, s, "e", "1")
	for pid, links := range map[int]map[string]string{
		810: {"exe": a.Path + server + " (deleted)"},
		812: {"exe": odd + server, "cwd": odd},
		813: {"exe": "/lib64/ld-linux-x86-64.so.2"},
		// In a container the package has another path; the link leads to it all the same.
		815: {"cwd": filepath.Join(s.Dir, "alias")},
		816: {"cwd": e.Path + " (deleted)"}, // an earlier folder of that name
	} {
		dir := filepath.Join(s.Proc, fmt.Sprint(pid))
		write(t, filepath.Join(dir, "comm"), "llama-server\n")
		for name, target := range links {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(t, filepath.Join(s.Proc, "813", "cmdline"), "/lib64/ld-linux-x86-64.so.2\x00"+c.Path+server+"\x00--port\x009001\x00")
	if err := os.Symlink(d.Path+"/hrx", filepath.Join(s.Dir, "alias")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"hrx-a": "process 810 (llama-server) refers to it by its program",
		"hrx-b": "",
		"hrx-c": "process 813 (llama-server) refers to it by its command line",
		"hrx-d": "process 815 (llama-server) refers to it by its program, working directory or root under another path",
		"hrx-e": "process 816 (llama-server) refers to it by its working directory",
	}
	if diff := cmp.Diff(want, decided(t, s, GCOptions{}, nothing)); diff != "" {
		t.Error(diff)
	}
	if _, err := os.Stat(odd + server); err != nil {
		t.Errorf("the folder with the odd name: %v", err)
	}
}

// A process that cannot be read keeps the packages that it might use.
func TestGCUnreadableProcess(t *testing.T) {
	ps := &processes{unread: []string{"perhaps used by process 814 (x), which cannot be read"}}
	p := install(t, newStore(t), "a", "1")
	if got := ps.of(p); len(got) != 1 || !strings.Contains(got[0], "process 814") {
		t.Errorf("got %v", got)
	}
}

func TestGCAsksRealProcesses(t *testing.T) {
	s := newStore(t)
	s.Proc = "/proc"
	var names []string
	start := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		names = append(names, fmt.Sprintf("process %d ", cmd.Process.Pid))
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	loaders, _ := filepath.Glob("/lib64/ld-linux-*.so.*")
	a, b := install(t, s, "a", "1"), install(t, s, "b", "1")
	install(t, s, "c", "1")
	start(filepath.Join(a.Path, "hrx"), "sleep", "600")
	if len(loaders) > 0 {
		// A copy of a program, started by the loader: its path is an argument only.
		writable(b.Path)
		program, err := os.ReadFile(sleep)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.Path, "extra"), program, 0o755); err != nil {
			t.Fatal(err)
		}
		start("/", loaders[0], filepath.Join(b.Path, "extra"), "600")
	}
	got := decided(t, s, GCOptions{}, nothing)
	if !strings.Contains(got["hrx-a"], names[0]) || got["hrx-c"] != "" {
		t.Errorf("got %v", got)
	}
	if len(loaders) > 0 && !strings.Contains(got["hrx-b"], names[1]) {
		t.Errorf("started by the loader: %v", got["hrx-b"])
	}
}

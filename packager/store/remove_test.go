package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRemove(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	p := install(t, s, "x", "a")
	install(t, s, "y", "a")
	asked := false
	err := s.Remove(ctx, p, func(_ context.Context, q *Package) ([]string, error) {
		asked = q.Name == p.Name
		return nil, nil
	})
	if err != nil || !asked {
		t.Fatal(err, asked)
	}
	wantList(t, s, "hrx-y ok")
	wantEmptyStaging(t, s)
	if _, err := os.Lstat(p.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
	if err := s.Remove(ctx, p, nil); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("again: %v", err)
	}
	// Another package of that name is not the one that was meant.
	install(t, s, "x", "b")
	if err := s.Remove(ctx, p, nil); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("by an old handle: %v", err)
	}
	wantList(t, s, "hrx-x ok", "hrx-y ok")
}

func TestRemoveBroken(t *testing.T) {
	s := newStore(t)
	p := install(t, s, "x", "a")
	writable(p.Path)
	if err := os.RemoveAll(filepath.Join(p.Path, "hrx")); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(context.Background(), p, nil); err != nil {
		t.Error(err)
	}
	wantList(t, s)
}

func TestRemoveRefuses(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	p := install(t, s, "x", "a")
	err := s.Remove(ctx, p, func(context.Context, *Package) ([]string, error) { return []string{"armed for a.service"}, nil })
	if !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "armed for a.service") {
		t.Errorf("in use: %v", err)
	}
	broken := errors.New("no bus")
	if err := s.Remove(ctx, p, func(context.Context, *Package) ([]string, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("cannot tell: %v", err)
	}
	unlock, err := s.LockShared(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, p, nil); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), fmt.Sprintf("process %d (shared) holds it", os.Getpid())) {
		t.Errorf("while a switch runs: %v", err)
	}
	unlock()
	wantList(t, s, "hrx-x ok")
	wantEmptyStaging(t, s)
	if err := s.Remove(ctx, p, nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestLocks(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	a, err := s.LockShared(ctx)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.LockShared(ctx)
	if err != nil {
		t.Fatal(err)
	}
	a()
	b()
	alone, err := s.lock(ctx, true, "remove hrx-x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.LockShared(ctx); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "(remove hrx-x) holds it") {
		t.Errorf("at once: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := s.LockShared(short); !errors.Is(err, ErrBusy) {
		t.Errorf("after waiting: %v", err)
	}
	long, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	done := make(chan error)
	go func() {
		unlock, err := s.LockShared(long)
		if err == nil {
			unlock()
		}
		done <- err
	}()
	alone()
	if err := <-done; err != nil {
		t.Errorf("while waiting: %v", err)
	}
}

// A recorded process of each kind keeps the package; one that only looks like
// it does not.
func TestRemoveAsksProcesses(t *testing.T) {
	s := newStore(t)
	ctx := context.Background()
	p := install(t, s, "x", "a")
	proc := func(pid int, links, files map[string]string) {
		dir := filepath.Join(s.Proc, fmt.Sprint(pid))
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "comm"), "llama-server\n")
		for name, content := range files {
			write(t, filepath.Join(dir, name), content)
		}
		for name, target := range links {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for what, c := range map[string]struct{ links, files map[string]string }{
		"program":           {links: map[string]string{"exe": p.Path + "/hrx/llama/bin/llama-server"}},
		"working directory": {links: map[string]string{"cwd": p.Path}},
		"root":              {links: map[string]string{"root": p.Path + "/hrx"}},
		"open files":        {links: map[string]string{"fd/7": p.Path + "/1bit (deleted)"}},
		"memory maps":       {files: map[string]string{"maps": "7f00-7f01 r-xp 0 08:01 99 /lib/x.so\n7f02-7f03 r-xp 0 08:01 99      " + p.Path + "/hrx/llama/bin/libx.so.1\n"}},
		"environment":       {files: map[string]string{"environ": "HOME=/home/ai\x00ONEBIT_LLAMA_SERVER=" + p.Path + "/hrx/llama/bin/llama-server\x00"}},
		"command line":      {files: map[string]string{"cmdline": "tail\x00-f\x00" + p.Path}},
	} {
		proc(4711, c.links, c.files)
		want := "process 4711 (llama-server) refers to it by its " + what
		if err := s.Remove(ctx, p, nil); !errors.Is(err, ErrInUse) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	proc(4711, map[string]string{"exe": p.Path + "yz/1bit", "fd/1": "/dev/null"}, map[string]string{"environ": "A=" + p.Path + "-2/b\x00", "cmdline": p.Path + ".old"})
	proc(os.Getpid(), map[string]string{"cwd": p.Path}, nil)
	write(t, filepath.Join(s.Proc, "uptime"), p.Path)
	if err := s.Remove(ctx, p, nil); err != nil {
		t.Errorf("nobody uses it: %v", err)
	}
}

func TestRemoveAsksRealProcesses(t *testing.T) {
	s := newStore(t)
	s.Proc = "/proc"
	p := install(t, s, "x", "a")
	cmd := exec.Command("sleep", "600")
	cmd.Dir = filepath.Join(p.Path, "hrx")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := s.Remove(context.Background(), p, nil)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if want := fmt.Sprintf("process %d (sleep)", cmd.Process.Pid); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want it to name %s", err, want)
	}
	if err := s.Remove(context.Background(), p, nil); err != nil {
		t.Errorf("after it ended: %v", err)
	}
}

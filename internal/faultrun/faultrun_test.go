//go:build linux && amd64

package faultrun_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/internal/faultrun"
)

// The test program is its own victim: as a child it makes one durable write and one durable append.
const victimDir = "FAULTRUN_VICTIM"

func TestMain(m *testing.M) {
	dir := os.Getenv(victimDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := atomicfile.Write(filepath.Join(dir, "config"), []byte("new"), 0o644); err != nil {
		os.Exit(10)
	}
	if err := atomicfile.Append(filepath.Join(dir, "journal"), []byte("line"), 0o644); err != nil {
		os.Exit(11)
	}
	os.Exit(0)
}

func tool(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "faultrun")
	if out, err := exec.Command("go", "build", "-o", path, "./cmd/faultrun").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

func run(t *testing.T, tool, dir string, args ...string) faultrun.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "calls.json")
	cmd := exec.Command(tool, append(args, "-out", out, "--", self)...)
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	text, runErr := cmd.CombinedOutput()
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%s", runErr, text)
	}
	var r faultrun.Result
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEveryPointOnce(t *testing.T) {
	tool := tool(t)
	quiet := t.TempDir()
	r := run(t, tool, quiet)
	var names []string
	for _, c := range r.Calls {
		names = append(names, c.Name)
	}
	want := "openat write fchmod fsync renameat fsync openat write fsync fsync"
	if got := strings.Join(names, " "); got != want || r.Exit != 0 || r.Fired {
		t.Fatalf("calls %q, exit %d, fired %v; want %q", got, r.Exit, r.Fired, want)
	}
	if p := faultrun.CheckDurable(r.Calls, []string{quiet}); len(p) != 0 {
		t.Errorf("a durable write is called lossy: %v", p)
	}
	for n := 0; ; n++ {
		rest, dropped, ok := faultrun.WithoutSync(r.Calls, n)
		if !ok {
			if n != 4 {
				t.Errorf("%d syncs, want 4", n)
			}
			break
		}
		if len(faultrun.CheckDurable(rest, []string{quiet})) == 0 {
			t.Errorf("nobody would notice the loss of sync %d: %s", n, dropped)
		}
	}
	for at := 1; at <= len(r.Calls); at++ {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config"), []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		k := run(t, tool, dir, "-kill", "-at", itoa(at))
		if !k.Fired || k.Exit != 137 || len(k.Calls) != at {
			t.Errorf("kill at %d: fired %v, exit %d after %d calls", at, k.Fired, k.Exit, len(k.Calls))
		}
		got, err := os.ReadFile(filepath.Join(dir, "config"))
		if want := map[bool]string{true: "old", false: "new"}[at <= 5]; err != nil || string(got) != want {
			t.Errorf("killed at %d (%s): config %q, want %q", at, k.Calls[at-1], got, want)
		}
		f := run(t, tool, t.TempDir(), "-errno", "EIO", "-at", itoa(at))
		if wantExit := map[bool]int{true: 10, false: 11}[at <= 6]; f.Exit != wantExit || !f.Calls[at-1].Injected {
			t.Errorf("EIO at %d: exit %d, want %d", at, f.Exit, wantExit)
		}
	}
}

func TestStickyDiskStaysFull(t *testing.T) {
	dir := t.TempDir()
	r := run(t, tool(t), dir, "-errno", "ENOSPC", "-sticky", "-at", "1")
	if entries, _ := os.ReadDir(dir); len(entries) != 0 || r.Exit != 10 {
		t.Errorf("exit %d, left %v", r.Exit, entries)
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

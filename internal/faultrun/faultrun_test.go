//go:build linux && amd64

package faultrun_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/1bit-systems/pkg/internal/atomicfile"
	"github.com/1bit-systems/pkg/internal/faultrun"
)

// The test program is its own victim: as a child it makes one durable write and one durable append.
// With a socket it asks twice and says in its exit status how far it came.
const victimDir, victimSocket = "FAULTRUN_VICTIM", "FAULTRUN_SOCKET"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimSocket); path != "" {
		os.Exit(ask(path))
	}
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
	if key := faultrun.Keys(r.Calls)[1]; key != "write "+quiet+"/.config.*.tmp #1" {
		t.Errorf("the second point is %q", key)
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

// ask sends two questions to a socket: 20 and 23 for a send that fails, 21 and 24 for a lost answer, 22 and 25
// where a new connection is refused too.
func ask(path string) int {
	var conn net.Conn
	lost := func(status int, err, want error) int {
		again, refused := net.Dial("unix", path)
		switch {
		case !errors.Is(err, want):
			return 30
		case refused == nil:
			again.Close()
			return status + 10
		case !errors.Is(refused, syscall.ECONNREFUSED):
			return 31
		}
		return status
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		return 22
	}
	for i := range 2 {
		if _, err := conn.Write([]byte("ping")); err != nil {
			return lost(20+3*i, err, syscall.EPIPE)
		}
		if _, err := conn.Read(make([]byte, 4)); err != nil {
			return lost(21+3*i, err, syscall.ECONNRESET)
		}
	}
	return 0
}

func TestHangup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	heard := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for b := make([]byte, 4); ; {
					if _, err := io.ReadFull(conn, b); err != nil {
						return
					}
					heard <- struct{}{}
					if _, err := conn.Write(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	t.Setenv(victimSocket, path)
	tool := tool(t)
	quiet := run(t, tool, "")
	<-heard
	<-heard
	keys := faultrun.Keys(quiet.Calls)
	if quiet.Exit != 0 || len(keys) != 2 || keys[1] != "write socket "+path+" #2" {
		t.Fatalf("exit %d, points %q", quiet.Exit, keys)
	}
	for i, key := range keys {
		for sent, want := range map[bool]int{false: 20 + 3*i, true: 21 + 3*i} {
			args := []string{"-hangup", "-key", key}
			if sent {
				args = append(args, "-sent")
			}
			if r := run(t, tool, "", args...); r.Exit != want || !r.Fired {
				t.Errorf("%q: exit %d, fired %v, want %d", args, r.Exit, r.Fired, want)
			}
			for range want - 20 - 2*i { // what came through; a lost message would let this wait for ever
				<-heard
			}
		}
	}
	// Meanwhile something else happens, and the program goes on.
	note := filepath.Join(t.TempDir(), "note")
	if r := run(t, tool, "", "-key", keys[0], "-meanwhile", "echo >"+note); r.Exit != 0 || !r.Fired {
		t.Errorf("meanwhile: exit %d, fired %v", r.Exit, r.Fired)
	}
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

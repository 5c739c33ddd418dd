package claim

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/systemd"
)

// claimVariable has the test binary make a claim, in a process that can be killed.
const claimVariable = "CLAIM_TEST_ORDER"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "claim" && os.Args[2] == "guard" {
		scope := func(name string) (engine.Cage, bool) { s, ok := systemd.FindOwnScope("/", name); return s, ok }
		if err := Guard(os.Stdin, os.Args[3:], scope, time.Now); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if text := os.Getenv(claimVariable); text != "" {
		os.Exit(claimMain(text))
	}
	os.Exit(m.Run())
}

// claimOrder is a claim that a process of its own makes.
type claimOrder struct {
	Lock, Label, History string
	Script               string // of a shell
	Limit, Grace         time.Duration
	Scope                bool // of the manager of who runs it
	Tty, Foreground      bool
	Notes                string // file for what is noted
	Root                 string // "": no floor
	Floor                float64
}

func claimMain(text string) int {
	var c claimOrder
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return ExitFailed
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	o := Options{
		Lock: Lock{Path: c.Lock}, Label: c.Label, Limit: c.Limit, Grace: c.Grace, History: c.History, FloorGiB: c.Floor, Sensors: gpu.Sensors{Root: c.Root},
		Program: "/bin/sh", Args: []string{"-c", c.Script},
		Env:   slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, claimVariable+"=") }),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Foreground: c.Foreground,
		Guard: []string{"claim.test", "claim", "guard"}, Adopt: true, User: "tester", Now: time.Now, Signals: signals,
		Say: func(string) {},
		Note: func(format string, args ...any) {
			if f, err := os.OpenFile(c.Notes, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
				fmt.Fprintf(f, format+"\n", args...)
				f.Close()
			}
		},
	}
	if c.Tty {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return ExitFailed
		}
		o.Terminal = tty
	}
	ctx := context.Background()
	if c.Scope {
		opts := systemd.ConnectOptions{Scope: systemd.ScopeUser, UID: os.Getuid(), RuntimeDir: os.Getenv("XDG_RUNTIME_DIR")}
		if os.Getuid() == 0 {
			opts = systemd.ConnectOptions{Scope: systemd.ScopeSystem}
		}
		m, err := systemd.Connect(ctx, opts)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return ExitFailed
		}
		o.Scope = fmt.Sprintf("claim-test-%d.scope", os.Getpid())
		o.Cage = func(pids ...int) (engine.Cage, error) { return m.StartScopeCage(ctx, "/", o.Scope, "a test", pids...) }
	}
	r, err := Run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return ExitFailed
	}
	for _, left := range r.Left {
		o.Note("left: %s", left)
	}
	if c.Tty {
		group, err := engine.Foreground(o.Terminal)
		fmt.Printf("terminal ours again: %v %v\n", group == syscall.Getpgrp(), err)
	}
	o.Note("place: %s", r.Place)
	return r.ExitCode
}

// claimer is a claim in a process of its own.
func claimer(t *testing.T, c claimOrder) *exec.Cmd {
	t.Helper()
	if c.Limit == 0 {
		c.Limit = 5 * time.Minute
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0] = "claim.test"
	cmd.Env = append(os.Environ(), claimVariable+"="+string(text))
	return cmd
}

// options are those of a claim in this process.
func options(t *testing.T, script string) Options {
	dir := t.TempDir()
	return Options{
		Lock: Lock{Path: filepath.Join(dir, "gpu.lock")}, Label: "a test", Limit: 5 * time.Minute, User: "tester",
		Program: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")},
		Guard: []string{"claim.test", "claim", "guard"}, History: filepath.Join(dir, HistoryFile), Now: time.Now,
		Sensors: gpu.Sensors{Root: dir},
		Say:     func(text string) { t.Log(text) }, Note: func(format string, args ...any) { t.Logf(format, args...) },
	}
}

// until waits for something that must come, however busy the machine is.
func until(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !isSo(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// processes lists the processes whose command line holds a text.
func processes(text string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		b, _ := os.ReadFile(path)
		var pid int
		if fmt.Sscanf(path, "/proc/%d/", &pid); strings.Contains(string(b), text) && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

func read(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

func exists(path string) func() bool {
	return func() bool { _, err := os.Lstat(path); return err == nil }
}

// ended tells whether a program has ended; the dead have no command line.
func ended(cmd *exec.Cmd) bool { return read(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid)) == "" }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil { // who reads it finds it whole
		t.Fatal(err)
	}
}

// isFree tells whether nobody has a lock.
func isFree(l Lock) bool {
	h, err := l.take(context.Background(), false)
	if err != nil {
		return false
	}
	h.release()
	return true
}

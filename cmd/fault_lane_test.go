package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/internal/faultrun"
	"github.com/1bit-systems/pkg/systemd"
)

// A lane is one service of one manager inside the host, with packages and state of its own, and the program that
// works on it. Each manager has one, so that two of them can be driven at a time.
type lane struct {
	*testing.T
	tools
	dir     string // of packages, state and configuration
	unitDir string
	unit    string
	port    int
	m       *systemd.Manager
}

// newLane makes the unit on the package aaaaaaa and starts it. archives lie in the folder from.
func newLane(t *testing.T, tools tools, from, name string) *lane {
	t.Helper()
	home, scope := os.Getenv("HOME"), systemd.ScopeUser
	l := &lane{T: t, tools: tools, dir: filepath.Join(home, "fault-"+name), unit: name + ".service", unitDir: filepath.Join(home, ".config/systemd/user")}
	own := filepath.Join(home, ".config/1bit/config.yaml") // the policy counts from here alone
	if os.Getuid() == 0 {
		scope, l.unitDir = systemd.ScopeSystem, "/etc/systemd/system"
		own = "/etc/1bit/config.yaml"
	}
	var err error
	if l.m, err = systemd.Connect(t.Context(), systemd.ConnectOptions{Scope: scope, UID: os.Getuid()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.m.Close)
	l.port = freePort(t)
	writeTree(t, map[string]string{
		own:                                 "restart: free\n",
		filepath.Join(l.dir, "config.yaml"): fmt.Sprintf("scope: %s\nrestart: free\ndata_home: %s/data\nstate_home: %s/state\n", scope, l.dir, l.dir),
	})
	l.writeUnit(l.unit)
	archives, err := filepath.Glob(filepath.Join(from, "*.tar.zst"))
	if err != nil || len(archives) == 0 {
		t.Fatal(err, archives)
	}
	for _, archive := range archives {
		l.must("pkg", "install", archive)
	}
	t.Cleanup(func() {
		m, err := systemd.Connect(context.Background(), systemd.ConnectOptions{Scope: scope, UID: os.Getuid()})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		_, err = m.Stop(context.Background(), l.unit)
		if err := errors.Join(err, os.RemoveAll(l.dropIns()), os.Remove(filepath.Join(l.unitDir, l.unit)), m.Reload(context.Background())); err != nil {
			t.Error(err)
		}
	})
	l.reload()
	l.serve()
	return l
}

// writeUnit writes a unit as its owner would.
func (l *lane) writeUnit(unit string) {
	l.Helper()
	writeTree(l.T, map[string]string{
		// Of type exec, so that a start is done when the process has its own environment.
		filepath.Join(l.unitDir, unit): fmt.Sprintf(`[Unit]
StartLimitIntervalSec=0
[Service]
Type=exec
ExecStart=/bin/sh -c 'exec "$ONEBIT_LLAMA_SERVER" --port %d'
Restart=always
RestartSec=100ms
TimeoutStopSec=5s
Environment=ONEBIT_LLAMA_SERVER=%s/data/1bit-hrx-aaaaaaa/hrx/llama/bin/llama-server
`, l.port, l.dir),
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func (l *lane) dropIns() string { return filepath.Join(l.unitDir, l.unit+".d") }
func (l *lane) state() string   { return filepath.Join(l.dir, "state") }

func (l *lane) reload() {
	l.Helper()
	if err := l.m.Reload(l.Context()); err != nil {
		l.Fatal(err)
	}
}

// serve restarts the service and waits until it listens.
func (l *lane) serve() {
	l.Helper()
	l.startable("serve")
	for end := time.Now().Add(lanePatience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(l.port))
		if err == nil {
			conn.Close()
			return
		}
	}
	l.Fatal("it does not listen")
}

// startable restarts the service and returns the package that its process was given.
func (l *lane) startable(where string) string {
	l.Helper()
	if result, err := l.m.Restart(l.Context(), l.unit); err != nil || result != "done" {
		l.Fatalf("%s: a restart ended with %q, %v", where, result, err)
	}
	// Between two programs, as the shell becomes the server, a process has no environment.
	for end := time.Now().Add(lanePatience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		u, err := l.m.Unit(l.Context(), l.unit)
		if err != nil {
			l.Fatal(err)
		}
		environ, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(u.MainPID), "environ"))
		for _, pair := range strings.Split(string(environ), "\x00") {
			if value, ok := strings.CutPrefix(pair, "ONEBIT_LLAMA_SERVER="+l.dir+"/data/1bit-"); ok {
				name, _, _ := strings.Cut(value, "/")
				return name
			}
		}
	}
	l.Fatalf("%s: there is no process with a package in its environment", where)
	return ""
}

func (l *lane) args(args ...string) []string {
	return append([]string{"--config", filepath.Join(l.dir, "config.yaml")}, args...)
}

// lanePatience bounds one command of a lane, or a wait for what must come: more than a command waits for a lock, and
// for a busy manager.
const lanePatience = 2 * time.Minute

// onebit runs our program.
func (l *lane) onebit(args ...string) (status int, stdout, stderr string) {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lanePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.program, l.args(args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it says where it hangs
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		l.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (l *lane) must(args ...string) string {
	l.Helper()
	status, out, errs := l.onebit(args...)
	if status != 0 {
		l.Fatalf("%v ended with %d: %s", args, status, errs)
	}
	return out
}

// disturbed runs our program under faultrun.
func (l *lane) disturbed(fault []string, args ...string) (faultrun.Result, string) {
	l.Helper()
	out := filepath.Join(l.dir, "calls.json")
	all := append(append(fault[:len(fault):len(fault)], "-out", out, "--", l.program), l.args(args...)...)
	ctx, cancel := context.WithTimeout(context.Background(), lanePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.faultrun, all...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 125 {
		l.Fatalf("faultrun: %v\n%s", err, text)
	}
	return decodeResult(l.T, out), string(text)
}

// A laneStatus is what the tests ask of the status document.
type laneStatus struct {
	Armed        *struct{ Package string }
	OnDisk       *struct{ Package string }  `json:"on_disk"`
	ServedBefore *struct{ Package string }  `json:"served_before"`
	Held         *struct{ Reason string }   `json:"held"`
	Blocked      []struct{ Package string } `json:"blocked"`
	Live         *struct{ Main *struct{ Package string } }
	Warnings     []string
}

func (s laneStatus) armed() string {
	if s.Armed == nil {
		return ""
	}
	return s.Armed.Package
}

func (s laneStatus) blocks(id string) bool {
	for _, b := range s.Blocked {
		if b.Package == "hrx-"+id {
			return true
		}
	}
	return false
}

func (l *lane) status(where string) laneStatus {
	l.Helper()
	status, out, errs := l.onebit("-o", "json", "pkg", "status", l.unit)
	var doc struct{ Services []laneStatus }
	if err := json.Unmarshal([]byte(out), &doc); status != 0 || err != nil || len(doc.Services) != 1 {
		l.Fatalf("%s: status ended with %d, %v: %s%s", where, status, err, out, errs)
	}
	return doc.Services[0]
}

// read is the status out of a document of one service.
func (l *lane) read(where, document string) (st laneStatus) {
	l.Helper()
	if err := json.Unmarshal([]byte(document), &st); err != nil {
		l.Fatalf("%s: %v in %s", where, err, document)
	}
	return st
}

// kept is what a lane's files hold: those of the drop-in folder and of the state, without lock files.
type kept map[string]string

func (l *lane) keep() kept {
	l.Helper()
	out := kept{}
	for _, dir := range []string{l.dropIns(), l.state()} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || strings.HasSuffix(path, ".lock") {
				return err
			}
			if d.IsDir() {
				out[path] = "folder"
				return nil
			}
			data, err := os.ReadFile(path)
			out[path] = "file " + string(data)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			l.Fatal(err)
		}
	}
	return out
}

// dropIns are the kept files that systemd or a rollback reads.
func (k kept) dropIns(l *lane) kept {
	out := maps.Clone(k)
	maps.DeleteFunc(out, func(path, _ string) bool { return !strings.HasPrefix(path, l.dropIns()+"/") })
	return out
}

var numbers = regexp.MustCompile("[0-9]+")

// kind tells what the files say but for numbers: times, processes and random names.
func (k kept) kind() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(k)) {
		fmt.Fprintf(&b, "%s %s\n", path, k[path])
	}
	return numbers.ReplaceAllString(b.String(), "0")
}

// restore puts kept files back and has them loaded. What lies there is what is loaded.
func (l *lane) restore(k kept) {
	l.Helper()
	now := l.keep()
	if maps.Equal(now, k) {
		return
	}
	for path := range now {
		if _, ok := k[path]; !ok && path != l.state() {
			if err := os.RemoveAll(path); err != nil {
				l.Fatal(err)
			}
		}
	}
	for path, what := range k {
		if data, ok := strings.CutPrefix(what, "file "); ok {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data), 0o644)); err != nil {
				l.Fatal(err)
			}
		}
	}
	l.reload()
}

// wantNoLeftovers fails where the unit's folder or the state holds a file that no command under way left there.
func (l *lane) wantNoLeftovers(where string) {
	l.Helper()
	for path, what := range l.keep() {
		switch name := filepath.Base(path); {
		case what == "file " && !strings.HasSuffix(name, ".tmp") && name != "journal.jsonl":
			l.Errorf("%s: %s is empty", where, path)
		case strings.HasSuffix(name, ".tmp") && filepath.Base(filepath.Dir(path)) == "proposals" && !strings.HasSuffix(where, "once more"):
			// The next proposal removes it.
		case strings.HasSuffix(name, ".tmp"), strings.HasSuffix(name, ".new"):
			l.Errorf("%s: %s is left behind", where, path)
		}
	}
}

type laneRecord struct{ Unit, Phase, Act, From, To, Result string }

// chain fails where a record of the unit does not begin at the end of the one before, and returns the last one's end.
func (l *lane) chain(where, unit string) (last string) {
	l.Helper()
	data, err := os.ReadFile(filepath.Join(l.state(), "journal.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.Fatal(err)
	}
	first := true
	for line := range strings.Lines(string(data)) {
		var r laneRecord
		if json.Unmarshal([]byte(line), &r) != nil || r.Unit != unit || r.Phase != "commit" {
			continue
		}
		if !first && r.From != last {
			l.Errorf("%s: %s is recorded from %q, and the record before it ended at %q", where, r.Act, r.From, last)
		}
		last, first = r.To, false
	}
	return last
}

package cmd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/faultrun"
	"github.com/1bit-systems/pkg/internal/testhost"
)

const faultUnit = "1bit-fault.service"

// switchSite is one user service inside a real systemd, and two packages for it.
type switchSite struct {
	t    *testing.T
	host *testhost.Host
	tools
	dir string // inside, and below the user's home
}

func newSwitchSite(t *testing.T) *switchSite {
	t.Helper()
	host := testhost.Require(t)
	s := &switchSite{t: t, host: host, tools: requireTools(t), dir: filepath.Join(host.Home, "fault")}
	s.user("mkdir", "-p", s.dir)
	outside := host.Outside(s.dir)
	for from, to := range map[string]*string{s.program: &s.program, s.faultrun: &s.faultrun} {
		raw, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(outside, filepath.Base(from)), raw, 0o755); err != nil {
			t.Fatal(err)
		}
		*to = filepath.Join(s.dir, filepath.Base(from))
	}
	config := fmt.Sprintf("scope: user\nrestart: free\ndata_home: %s/data\nstate_home: %s/state\n", s.dir, s.dir)
	writeTree(t, map[string]string{
		filepath.Join(outside, "config.yaml"): config,
		host.Outside(filepath.Join(host.Home, ".config/systemd/user", faultUnit)): fmt.Sprintf(
			"[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/sh -c 'exec \"$ONEBIT_LLAMA_SERVER\" --port 18099'\nRestart=always\n"+
				"Environment=ONEBIT_LLAMA_SERVER=%s/data/1bit-hrx-aaaaaaa/hrx/llama/bin/llama-server\n", s.dir),
	})
	mustRun(t, "chown", "-R", strconv.Itoa(host.UID), host.Outside(filepath.Join(host.Home, ".config")), outside)
	for _, archive := range buildPackages(t, requireTools(t).program, s.fakeengine, t.TempDir(), "aaaaaaa", "bbbbbbb") {
		copied := filepath.Join(outside, filepath.Base(archive))
		mustRun(t, "cp", archive, copied)
		s.onebit("pkg", "install", filepath.Join(s.dir, filepath.Base(archive)))
	}
	s.user("systemctl", "--user", "daemon-reload")
	s.sh("restart")
	return s
}

func (s *switchSite) user(name string, args ...string) string {
	s.t.Helper()
	out, err := s.host.Run(context.Background(), s.host.User, name, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *switchSite) onebit(args ...string) string {
	s.t.Helper()
	return s.user(s.program, append([]string{"--config", filepath.Join(s.dir, "config.yaml")}, args...)...)
}

// disturbed runs our program under faultrun inside.
func (s *switchSite) disturbed(fault []string, args ...string) (faultrun.Result, string) {
	s.t.Helper()
	out := filepath.Join(s.dir, "calls.json")
	all := append(append(fault, "-out", out, "--", s.program, "--config", filepath.Join(s.dir, "config.yaml")), args...)
	cmd := s.host.Command(context.Background(), s.host.User, s.faultrun, all...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 125 {
		s.t.Fatalf("faultrun: %v\n%s", err, text)
	}
	return decodeResult(s.t, s.host.Outside(out)), string(text)
}

type faultStatus struct {
	Armed  *struct{ Package, Path string }
	OnDisk *struct{ Package string } `json:"on_disk"`
}

// sh runs our program's commands, and others, as one script inside.
func (s *switchSite) sh(script string) string {
	s.t.Helper()
	return s.user("timeout", "60", "sh", "-euc", fmt.Sprintf(`onebit() { %s --config %s/config.yaml "$@"; }
unit=%s
# started prints the environment's line of the unit's process, once it has become the service's program.
started() { tr '\0' '\n' <"/proc/$(systemctl --user show -P MainPID $unit)/environ" | grep ^ONEBIT || true; }
# restart waits until the new process listens on port 18099.
restart() { systemctl --user restart $unit; until grep -q ':46B3 .* 0A ' /proc/net/tcp; do sleep 0.02; done; }
%s`, s.program, s.dir, faultUnit, script))
}

// check asserts that status is true and the unit startable on what it says, and returns what is armed.
func (s *switchSite) check(where string) string {
	s.t.Helper()
	parts := strings.SplitN(s.sh(`onebit -o json pkg status $unit
echo ---; ls -A ~/.config/systemd/user/$unit.d 2>/dev/null || true
echo ---; systemctl --user restart $unit; until [ -n "$(started)" ]; do sleep 0.02; done; started`), "---\n", 3)
	if len(parts) != 3 {
		s.t.Fatalf("%s: %q", where, parts)
	}
	var doc struct{ Services []faultStatus }
	if err := json.Unmarshal([]byte(parts[0]), &doc); err != nil || len(doc.Services) != 1 || doc.Services[0].Armed == nil {
		s.t.Fatalf("%s: status: %v in %s", where, err, parts[0])
	}
	st := doc.Services[0]
	if st.OnDisk != nil {
		s.t.Errorf("%s: %s lies on disk and is not loaded", where, st.OnDisk.Package)
	}
	if !strings.Contains(parts[2], "ONEBIT_LLAMA_SERVER="+st.Armed.Path+"/") {
		s.t.Errorf("%s: status says %s, the process was started with %q", where, st.Armed.Path, parts[2])
	}
	for _, name := range strings.Fields(parts[1]) {
		if name != "zz-1bit.conf" && name != "zz-1bit.conf.prev" {
			s.t.Errorf("%s: %s is left behind", where, name)
		}
	}
	return st.Armed.Package
}

// Every durable write of a switch and of a rollback is synced, and every sync is needed. Then: whatever happens at
// whichever point of either, the next command leaves the old state or the new one.
func TestSwitchDisturbedAtEveryPoint(t *testing.T) {
	s := newSwitchSite(t)
	roots := []string{s.dir, filepath.Join(s.host.Home, ".config")}
	var quiet [][]faultrun.Call
	for _, args := range [][]string{
		{"pkg", "switch", faultUnit, "bbbbbbb"}, // the first one makes the folders
		{"pkg", "switch", faultUnit, "aaaaaaa"},
		{"pkg", "rollback", faultUnit},
	} {
		r, text := s.disturbed(nil, args...)
		if r.Exit != 0 {
			t.Fatalf("%v ended with %d: %s", args, r.Exit, text)
		}
		wantEverySyncNeeded(t, r.Calls, roots)
		quiet = append(quiet, r.Calls)
		s.sh("restart")
	}
	for _, d := range disturbances {
		t.Run("first switch "+d.name, func(t *testing.T) { s.walk(t, d, quiet[0], (*switchSite).firstSwitch) })
		t.Run("switch "+d.name, func(t *testing.T) { s.walk(t, d, quiet[1], (*switchSite).secondSwitch) })
		t.Run("rollback "+d.name, func(t *testing.T) { s.walk(t, d, quiet[2], (*switchSite).rollback) })
	}
}

// walk disturbs an act at every point that its quiet run came to. An errno means nothing to a socket.
func (s *switchSite) walk(t *testing.T, d disturbance, quiet []faultrun.Call, act func(*switchSite, string, []string)) {
	s.t = t
	points := 0
	for i, call := range quiet {
		// Between two messages of one conversation nothing changes on disk, so its two ends stand for it.
		inside := i > 0 && i < len(quiet)-1 && quiet[i-1].Socket && quiet[i+1].Socket
		if call.Socket && (inside || d.name != "SIGKILL") {
			continue
		}
		points++
		act(s, fmt.Sprintf("%s at %d (%s)", d.name, i+1, call), append([]string{"-at", strconv.Itoa(i + 1)}, d.args...))
		if t.Failed() {
			return // the next state builds on this one
		}
	}
	if points < 5 {
		t.Errorf("only %d points: the run was not seen whole", points)
	}
	t.Logf("%d points", points)
}

func (s *switchSite) firstSwitch(where string, fault []string) {
	s.t.Helper()
	s.sh("onebit pkg unswitch $unit")
	r, _ := s.disturbed(fault, "pkg", "switch", faultUnit, "bbbbbbb")
	s.wantOldOrNew(where, r, "hrx-aaaaaaa", "hrx-bbbbbbb")
}

func (s *switchSite) secondSwitch(where string, fault []string) {
	s.t.Helper()
	old := s.check("before " + where)
	to := map[string]string{"hrx-aaaaaaa": "hrx-bbbbbbb", "hrx-bbbbbbb": "hrx-aaaaaaa"}[old]
	if _, err := os.Stat(s.host.Outside(filepath.Join(s.host.Home, ".config/systemd/user", faultUnit+".d", "zz-1bit.conf"))); err != nil {
		s.sh("onebit pkg switch $unit " + to + "; restart")
		old, to = to, old
	}
	r, _ := s.disturbed(fault, "pkg", "switch", faultUnit, to)
	s.wantOldOrNew(where, r, old, to)
}

func (s *switchSite) rollback(where string, fault []string) {
	s.t.Helper()
	s.sh(`onebit pkg unswitch $unit; onebit pkg switch $unit bbbbbbb; restart
onebit pkg switch $unit aaaaaaa; restart`)
	r, text := s.disturbed(fault, "pkg", "rollback", faultUnit)
	now := s.wantOldOrNew(where, r, "hrx-aaaaaaa", "hrx-bbbbbbb")
	if now != "hrx-bbbbbbb" && strings.HasPrefix(where, "ENOSPC") && !strings.Contains(where, "(rename") {
		s.t.Errorf("%s: a full disk stopped a rollback: %s", where, text)
	}
	s.sh("onebit pkg rollback $unit")
	if now := s.check(where + ", then again"); now != "hrx-bbbbbbb" {
		s.t.Errorf("%s: after the next rollback %s is armed", where, now)
	}
}

func (s *switchSite) wantOldOrNew(where string, r faultrun.Result, old, to string) string {
	s.t.Helper()
	now := s.check(where)
	if now != old && now != to {
		s.t.Errorf("%s: %s is armed, neither %s nor %s", where, now, old, to)
	}
	if r.Exit == 0 && now != to {
		s.t.Errorf("%s: exit 0 and %s is armed", where, now)
	}
	return now
}

package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/1bit-systems/pkg/internal/realengine"
	"github.com/1bit-systems/pkg/packager/store"
)

// installed takes a copy of the real engine into a store of the test's own.
func installed(t *testing.T, tree *realengine.Tree) *store.Package {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { writable(dir) })
	data := filepath.Join(dir, "data")
	place := filepath.Join(data, "1bit-test-7871c71")
	if err := os.CopyFS(place, os.DirFS(tree.Dir)); err != nil {
		t.Fatal(err)
	}
	p, err := store.Open(data, filepath.Join(dir, "state")).Import(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// writable lets the test's cleanup remove what the store made read-only.
func writable(dir string) {
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(path, 0o755)
		}
		return nil
	})
}

func realPlan(t *testing.T, model, load, more string) *Plan {
	t.Helper()
	if !strings.Contains(more, "attempts:") {
		more += "\nattempts: 1\n"
	}
	if !strings.Contains(more, "server:") {
		more += "server: {flags: [-t, '1'], env: {GGML_HRX_NAN_CONTINUE: '1'}}\n"
	}
	path := filepath.Join(t.TempDir(), "plan.yaml")
	text := fmt.Sprintf("name: real\nmodel: %q\np0: 0.02\nprimary: request\nload: {%s}\n%s", model, load, more)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const realShape = "n_predict: [32, 96], request_deadline: 60s"

// The real llama-server has no guard: what a soak finds on it, it finds on the
// wire.
func TestRealEngine(t *testing.T) {
	tree := realengine.Require(t)
	p := installed(t, tree)
	tests := []struct {
		name, model, load, more string
		verdict, reason         string
	}{
		{"good model with a neighbour", "plain", "requests: 150, " + realShape, "neighbour: {args: [-t, '1', -p, '64', -n, '32', -r, '100']}\nsentinels: {every: 30}\n",
			Pass, "0 faults in "},
		{"NaN in every logit", "nan", "requests: 150, " + realShape, "", Fail, "fault(nan-wire): null log-probability"},
		{"NaN under fluent text", "nan1", "requests: 150, " + realShape, "", Fail, "fault(nan-wire): null log-probability"},
		{"one at a time", "plain", "requests: 20, in_flight: 1, " + realShape, "",
			Inconclusive, "invalid(load-shape): all 4 slots were busy for 0.00 of the busy time, the plan asks for 0.50"},
		{"shared prefix", "plain", "requests: 40, prompts: shared_prefix, prompt_tokens: [175], " + realShape, "", Inconclusive, "invalid(load-shape): "},
		{"a model that is none", "none", "requests: 150", "", Fail, "fault(startup): server ended before it was ready: exit status 1"},
		{"too few requests for p0", "plain", "requests: 40, " + realShape, "",
			Inconclusive, "no fault seen, but the bound at 40 requests is 0.072158 > p0 0.02"},
		{"memory that a guard wants back", "plain", "requests: 150, " + realShape, "watchdogs: {mem_available_gib: 100000}\n", Inconclusive, "invalid(watchdog): "},
		{"another device than the plan's", "plain", "requests: 40, " + realShape, "device: {name: HRX0, counts_as: invalid}\n", Inconclusive, "invalid(device): "},
		{"bursts", "plain", "requests: 20, schedule: burst, every: 100ms, n_predict: [96]", "",
			Inconclusive, "no fault seen, but the bound at 20 requests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			model := tree.Model(tt.model)
			if tt.model == "none" {
				model = filepath.Join(t.TempDir(), "none.gguf")
				if err := os.WriteFile(model, []byte("GGUF, but not really"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			v := soak(t, RunOptions{Plan: realPlan(t, model, tt.load, tt.more), Package: p})
			if v.Verdict != tt.verdict || !strings.HasPrefix(v.Reason, tt.reason) {
				t.Errorf("%s: %s\nwant %s: %s…", v.Verdict, v.Reason, tt.verdict, tt.reason)
			}
			e := v.Exposure
			t.Logf("%s: %s\nslots %v, all busy %.2f, %+v, %.0f/s, neighbour %+v, engine %s", v.Verdict, v.Reason, e.LaunchesPerSlot,
				e.AllSlotsBusyShare, e.Selected, e.RequestsPerSecond, e.Neighbour, e.EngineVersion)
			if tt.verdict != Pass {
				return
			}
			if e.Neighbour == nil || e.Neighbour.Runs == 0 || !(e.Neighbour.AliveShare > 0.5) {
				t.Errorf("the neighbour proves no work: %+v", e.Neighbour)
			}
			if e.Selected.LCP != 0 || len(e.LaunchesPerSlot) != 4 || e.TokensObserved == 0 || e.EngineVersion == "" {
				t.Errorf("exposure %+v", e)
			}
		})
	}
}

// A load that does not fit the server, although the plan was let through.
func TestRealOvercommit(t *testing.T) {
	tree := realengine.Require(t)
	plan := realPlan(t, tree.Model("plain"), "requests: 40, prompt_tokens: [300], n_predict: [96]", "")
	plan.Server.Ctx, plan.Server.Flags = 1024, []string{"-t", "1", "--no-slots"} // which tell it
	v := soak(t, RunOptions{Plan: plan, Package: installed(t, tree)})
	if v.Verdict != Inconclusive || !strings.HasPrefix(v.Reason, "invalid(plan): ") {
		t.Errorf("%s: %s", v.Verdict, v.Reason)
	}
}

// Whatever ends the server in the middle of requests is one fault, and its name.
func TestRealServerIsEnded(t *testing.T) {
	tree := realengine.Require(t)
	p := installed(t, tree)
	for _, tt := range []struct {
		signal   syscall.Signal
		deadline string // of a request: long, where a busy machine must not look like a hang
		reason   string
	}{
		{syscall.SIGKILL, "1m", "fault(crash, SIGKILL): the server ended by itself: signal 9"},
		{syscall.SIGSEGV, "1m", "fault(crash, SIGSEGV): the server ended by itself: signal 11"},
		{syscall.SIGSTOP, "2s", "fault(hang): no answer within 2s"},
	} {
		t.Run(tt.signal.String(), func(t *testing.T) {
			plan := realPlan(t, tree.Model("plain"), "duration: 1h, n_predict: [96], request_deadline: "+tt.deadline, "")
			sent := false
			dir := filepath.Join(t.TempDir(), "evidence")
			v := soak(t, RunOptions{Plan: plan, Package: p, Evidence: dir, Progress: func(s Progress) {
				if s.Requests >= 20 && !sent {
					sent = true
					for _, pid := range serverPIDs(t, dir) {
						syscall.Kill(pid, tt.signal)
					}
				}
			}})
			if v.Verdict != Fail || !strings.HasPrefix(v.Reason, tt.reason) {
				t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, tt.reason)
			}
			if len(v.Faults) != 1 || v.Arms.Fault != 1 {
				t.Errorf("one event is %d faults in %d arms: %+v", len(v.Faults), v.Arms.Fault, v.Faults)
			}
		})
	}
}

// serverPIDs reads the servers of a run from its ledger.
func serverPIDs(t *testing.T, dir string) []int {
	var pids []int
	eachRecord(t, dir, func(r *record) {
		if r.Kind == recordProcess {
			if p, err := decode[processRecord](r.line); err == nil && p.Role == roleServer {
				pids = append(pids, p.PID)
			}
		}
	})
	return pids
}

// eachRecord gives every record of a ledger.
func eachRecord(t *testing.T, dir string, f func(*record)) {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, LedgerName))
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	if _, err := scanLedger(file, func(r *record) error { f(r); return nil }); err != nil {
		t.Error(err)
	}
}

// A port that somebody takes between choice and use is tried again; a neighbour
// that does nothing puts the life out of the regime, and another takes its place.
func TestRealOutsideCauses(t *testing.T) {
	tree := realengine.Require(t)
	t.Run("port taken once", func(t *testing.T) {
		t.Parallel()
		v := soak(t, RunOptions{Plan: realPlan(t, tree.Model("plain"), "requests: 40, "+realShape, ""), Package: takesPort(t, tree, 1)})
		if !strings.HasPrefix(v.Reason, "no fault seen") || v.Arms.Clean != 1 {
			t.Errorf("%s: %s", v.Verdict, v.Reason)
		}
	})
	t.Run("port taken always", func(t *testing.T) {
		t.Parallel()
		v := soak(t, RunOptions{Plan: realPlan(t, tree.Model("plain"), "requests: 40, "+realShape, ""), Package: takesPort(t, tree, 99)})
		if v.Verdict != Inconclusive || !strings.HasPrefix(v.Reason, "invalid(port-taken): ") {
			t.Errorf("%s: %s", v.Verdict, v.Reason)
		}
	})
	t.Run("idle neighbour", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "evidence")
		plan := realPlan(t, tree.Model("plain"), "requests: 40, "+realShape,
			"neighbour: {kind: command, args: [/bin/echo, idle], proof: '^busy$'}\nattempts: 2\n")
		v := soak(t, RunOptions{Plan: plan, Package: installed(t, tree), Evidence: dir})
		if v.Verdict != Inconclusive || v.Arms.OutOfRegime != 2 || !strings.Contains(v.Reason, "neighbour") {
			t.Errorf("%s: %s, %+v", v.Verdict, v.Reason, v.Arms)
		}
		var starts []startRecord
		eachRecord(t, dir, func(r *record) {
			if r.Kind == recordStart {
				if s, err := decode[startRecord](r.line); err == nil {
					starts = append(starts, *s)
				}
			}
		})
		if len(starts) != 2 || starts[1].Replaces != 1 || !strings.HasPrefix(starts[1].Why, "out-of-regime(") || starts[1].Life != 1 {
			t.Errorf("%+v", starts)
		}
	})
}

// takesPort is the real engine behind a launcher that takes a port which this
// process has, a number of times.
func takesPort(t *testing.T, tree *realengine.Tree, times int) *store.Package {
	t.Helper()
	taken := busyPort(t)
	p := *installed(t, tree)
	m := *p.Manifest
	server, err := p.Program("llama-server")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := `#!/bin/sh
n=$(cat ` + dir + `/n 2>/dev/null || echo 0)
case $* in *--version*) exec ` + server + ` "$@" ;; esac
echo $((n + 1)) >` + dir + `/n
[ "$n" -lt ` + strconv.Itoa(times) + ` ] && set -- "$@" --port ` + strconv.Itoa(taken) + `
exec ` + server + ` "$@"
`
	path := filepath.Join(dir, "launcher")
	writeScript(t, path, script)
	rel, err := filepath.Rel(p.Path, path)
	if err != nil {
		t.Fatal(err)
	}
	m.EntryPoints = map[string]string{"llama-server": filepath.ToSlash(rel)}
	p.Manifest = &m
	return &p
}

package acceptance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/internal/fakeengine"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// Variables that make the test binary another program.
const (
	beFake   = "ACCEPTANCE_TEST_FAKE"   // a llama-server
	beBench  = "ACCEPTANCE_TEST_BENCH"  // a llama-bench; the value says how it behaves
	beRunner = "ACCEPTANCE_TEST_RUNNER" // a soak into the folder of that name
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(beOther) != "":
		os.Exit(otherServer(os.Args[1:]))
	case os.Getenv(beFake) != "":
		os.Exit(fakeengine.Main(os.Args[1:], os.Getenv, os.Stderr, os.Exit))
	case os.Getenv(beBench) != "":
		os.Exit(fakeBench(os.Getenv(beBench)))
	case os.Getenv(beRunner) != "":
		os.Exit(runnerMain(os.Getenv(beRunner)))
	}
	os.Exit(m.Run())
}

func fakeBench(how string) int {
	switch how {
	case "fails":
		return 1
	case "idle":
		time.Sleep(10 * time.Millisecond)
		return 0
	}
	time.Sleep(20 * time.Millisecond)
	fmt.Println(`{"n_prompt": 64, "n_gen": 0, "samples_ns": [ 1, 2 ]}`)
	fmt.Println(`{"n_prompt": 0, "n_gen": 32, "samples_ns": [ 1, 2 ]}`)
	return 0
}

// writeScript writes a program. A process forked while it is open would hold it open too and make it "busy".
func writeScript(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// replaceFile writes a file in one step, for a reader at any moment.
func replaceFile(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path+"~", []byte(text), 0o644), os.Rename(path+"~", path)); err != nil {
		t.Error(err)
	}
}

// fakePackage installs launchers of the fake engine in a folder.
func fakePackage(t testing.TB, bench string) *store.Package {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, env := range map[string]string{"llama-server": beFake + "=1", "llama-bench": beBench + "=" + bench} {
		writeScript(t, filepath.Join(dir, name), fmt.Sprintf("#!/bin/sh\nexport %s\nexec %s \"$@\"\n", env, self))
	}
	if err := os.WriteFile(filepath.Join(dir, "m.gguf"), []byte("model"), 0o644); err != nil {
		t.Fatal(err)
	}
	return &store.Package{
		Name: "fake-1", Digest: "sha256:" + strings.Repeat("1", 64), Path: dir, State: store.StateOK,
		Manifest: &packager.Manifest{EntryPoints: map[string]string{"llama-server": "llama-server", "llama-bench": "llama-bench"}},
	}
}

// fakePlan writes a plan beside the package's model and reads it.
func fakePlan(t testing.TB, p *store.Package, fault, more string) *Plan {
	t.Helper()
	text := "name: fake\nmodel: m.gguf\np0: 0.1\n" + more
	if !strings.Contains(more, "attempts:") {
		text += "attempts: 1\n"
	}
	if !strings.Contains(more, "gates:") {
		text += "gates: {all_slots_busy_share: 0.01}\n" // this machine may be busy with other tests
	}
	if !strings.Contains(more, "load:") {
		text += "load: {requests: 48, prompt_tokens: [24, 100], n_predict: [20], request_deadline: 20s}\n"
	}
	text += "server:\n  env: {" + fakeengine.FaultVariable + `: "` + fault + `", ` + fakeengine.TokenVariable + ": 1ms}\n"
	path := filepath.Join(p.Path, "plan.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	plan, err := LoadPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func soak(t testing.TB, o RunOptions) *Verdict {
	t.Helper()
	if o.Evidence == "" {
		o.Evidence = filepath.Join(t.TempDir(), "evidence")
	}
	v, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	noneLeft(t, o.Package.Path)
	again, err := JudgeDir(o.Evidence)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, again); diff != "" {
		t.Errorf("judged again (-first +second):\n%s", diff)
	}
	return v
}

// noneLeft fails if a process still runs that was started with a word in its
// environment or arguments.
func noneLeft(t testing.TB, word string) {
	t.Helper()
	if left := running(word); len(left) > 0 {
		t.Errorf("still running: %v", left)
	}
}

func running(word string) []string {
	var left []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		pid := filepath.Base(filepath.Dir(path))
		if b, err := os.ReadFile(path); err == nil && pid != strconv.Itoa(os.Getpid()) && strings.Contains(string(b), word) {
			left = append(left, pid+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return left
}

// Faults of the fake engine end a whole run as they should; all of them are
// tried against the faces alone in package detect.
func TestFakeEngineFaults(t *testing.T) {
	tests := map[string]struct{ verdict, reason string }{
		"":              {Pass, "0 faults in 48 requests"},
		"abort":         {Fail, "fault(nan): guard line in the log"},
		"abort-lost":    {Fail, "fault(nan, line-lost): aborted for NaN"},
		"no-probs":      {Pass, "0 faults in 47 requests"},
		"utf8":          {Fail, "fault(face-b): invalid UTF-8"},
		"format":        {Fail, "fault(face-b): status 500"},
		"status":        {Fail, "fault(status): status 500"},
		"differ":        {Fail, "fault(corruption): two identical greedy requests"},
		"hang":          {Fail, "fault(hang): no answer within"},
		"stall":         {Fail, "fault(hang): no answer within"},
		"reset":         {Fail, "fault(transport): "},
		"one-slot":      {Inconclusive, "invalid(load-shape): the server made 1 slots"},
		"start-exit":    {Fail, "fault(startup): server ended before it was ready: exit status 1"},
		"start-oom":     {Inconclusive, "invalid(load-oom): "},
		"start-hsa-oom": {Inconclusive, "invalid(load-oom): "},
		"start-hang":    {Fail, "fault(startup): "},
	}
	for kind, want := range tests {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := fakePackage(t, "works")
			fault, more := kind, ""
			switch kind {
			case "hang", "stall":
				more += "load: {requests: 48, prompt_tokens: [24, 100], n_predict: [20], request_deadline: 300ms}\n"
			case "start-hang":
				more += "load_deadline: 500ms\n"
			case "differ":
				fault += "@50" // the second of the identical requests
			case "":
			default:
				if !strings.HasPrefix(kind, "start-") && kind != "one-slot" {
					fault += "@9"
				}
			}
			o := RunOptions{Plan: fakePlan(t, p, fault, more), Package: p, Evidence: filepath.Join(t.TempDir(), "e")}
			v := soak(t, o)
			if v.Verdict != want.verdict || !strings.HasPrefix(v.Reason, want.reason) {
				t.Errorf("%s: %s, want %s: %s…", v.Verdict, v.Reason, want.verdict, want.reason)
			}
			if v.Verdict == Fail && (v.Arms.Fault != 1 || len(v.Faults) == 0) || v.Verdict == Pass && (v.Arms.Clean != 1 || len(v.Faults) != 0) {
				t.Errorf("arms %+v, faults %v", v.Arms, v.Faults)
			}
			if len(v.Faults) > 1 {
				t.Errorf("one event was counted as %d: %v", len(v.Faults), v.Faults)
			}
		})
	}
}

func TestCleanRunLeavesCompleteEvidence(t *testing.T) {
	p := fakePackage(t, "works")
	dir := filepath.Join(t.TempDir(), "evidence")
	// Long enough for a run of the neighbour on a machine that is busy with other tests.
	plan := fakePlan(t, p, "", "neighbour: {args: [-r, '2']}\nload: {duration: 3s, prompt_tokens: [24, 100], n_predict: [20]}\n")
	var told []Progress
	v := soak(t, RunOptions{Plan: plan, Package: p, Evidence: dir, Progress: func(p Progress) { told = append(told, p) }})
	if v.Verdict != Pass {
		t.Fatalf("%s: %s", v.Verdict, v.Reason)
	}
	for _, name := range []string{
		PlanName, ResolvedName, LedgerName, HostBeforeName, HostAfterName, VerdictName,
		"arms/0001/" + ServerLogName, "arms/0001/" + NeighbourLog, "arms/0001/" + NeighbourRows,
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 && !strings.HasSuffix(name, NeighbourLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	n := v.Exposure.Neighbour
	if n == nil || n.Runs == 0 || n.Units < 192 || n.FailedRuns != 0 {
		t.Errorf("neighbour %+v", n)
	}
	if last := told[len(told)-1]; last.Requests != v.Requests || last.Done != last.Total || last.Total != 3 || last.Faults != 0 || !(last.BusyShare > 0.1) {
		t.Errorf("last progress %+v", last)
	}
	if v.PlanFileSHA256 != plan.FileSHA256() || v.PackageDigest != p.Digest || v.Requests < 48 || v.Exposure.NeverUsedSlots != 4 {
		t.Errorf("verdict %+v", v)
	}
	if plain, _ := os.ReadFile(filepath.Join(dir, PlanName)); string(plain) != string(plan.file) {
		t.Error("the plan in the evidence is not the plan")
	}
	if _, err := Run(t.Context(), RunOptions{Plan: plan, Package: p, Evidence: dir}); !errors.Is(err, ErrEvidence) {
		t.Errorf("a second run into the same folder: %v", err)
	}
}

func TestLoadShape(t *testing.T) {
	for name, tt := range map[string]struct{ load, want string }{
		"too few":  {"requests: 3, ", "invalid(load-shape): slot 3 had 0 launches"},
		"one slot": {"requests: 8, in_flight: 1, prompts: shared_prefix, ", "invalid(load-shape): slot "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := fakePackage(t, "works")
			v := soak(t, RunOptions{Plan: fakePlan(t, p, "", "load: {"+tt.load+"prompt_tokens: [100], n_predict: [8]}\n"), Package: p})
			if v.Verdict != Inconclusive || !strings.HasPrefix(v.Reason, tt.want) || v.Arms.Invalid != 1 {
				t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, tt.want)
			}
			if v.Bounds.RequestUpper95 != 1 {
				t.Errorf("an invalid arm bounds the rate by %v", v.Bounds.RequestUpper95)
			}
		})
	}
}

func TestNeighbourThatDoesNothing(t *testing.T) {
	for how, want := range map[string]string{
		"fails": "out-of-regime(neighbour-died): it failed 3 times in a row, at last with exit status 1",
		"idle":  "out-of-regime(neighbour-died): it failed 3 times in a row, at last with ok and 0 tokens",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			p := fakePackage(t, how)
			v := soak(t, RunOptions{Plan: fakePlan(t, p, "", "neighbour: {}\n"), Package: p})
			if v.Verdict != Inconclusive || !strings.HasPrefix(v.Reason, want) || v.Arms.OutOfRegime != 1 {
				t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, want)
			}
		})
	}
}

func TestGateOnGTT(t *testing.T) {
	p := fakePackage(t, "works")
	plan := fakePlan(t, p, "", "gates: {all_slots_busy_share: 0.1, gtt_used_gib: {min: 95, max: 110}}\n")
	root, set := gttRoot(t)
	if _, err := Run(t.Context(), RunOptions{Plan: plan, Package: p, Evidence: t.TempDir(), Root: root}); !errors.Is(err, ErrPlan) {
		t.Errorf("a gate without a sensor: %v", err)
	}
	for gib, want := range map[int64]string{94: "out-of-regime(gtt): 94.0 GiB", 100: "0 faults", 111: "out-of-regime(gtt): 111.0 GiB"} {
		set(fmt.Sprint(gib << 30))
		if v := soak(t, RunOptions{Plan: plan, Package: p, Root: root}); !strings.HasPrefix(v.Reason, want) {
			t.Errorf("%d GiB: %s: %s, want %s", gib, v.Verdict, v.Reason, want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	p := fakePackage(t, "works")
	plan := fakePlan(t, p, "", "")
	if err := os.Remove(filepath.Join(p.Path, "m.gguf")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "evidence")
	if _, err := Run(t.Context(), RunOptions{Plan: plan, Package: p, Evidence: dir}); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), "m.gguf") {
		t.Errorf("a missing model: %v", err)
	}
	broken := *p
	broken.State = store.StateBroken
	if _, err := Run(t.Context(), RunOptions{Plan: plan, Package: &broken, Evidence: dir}); !errors.Is(err, packager.ErrIntegrity) {
		t.Errorf("a broken package: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused run left evidence: %v", err)
	}
}

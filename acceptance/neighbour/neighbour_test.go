package neighbour

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine"
)

// fakeProgram makes a program of a few lines of shell. No other thread may fork while the file is open for writing.
func fakeProgram(t *testing.T, text string) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

const row = `echo '{"n_prompt": 4, "n_gen": 1, "samples_ns": [9, 9]}'`

func TestRuns(t *testing.T) {
	tests := map[string]struct {
		spec   Spec
		script string
		runs   int // until it is stopped
		want   []Run
		died   string
	}{
		"good runs": {Spec{Kind: Bench}, row, 2, []Run{{Exit: ExitOK, Units: 10}, {Exit: ExitOK, Units: 10}}, ""},
		"nothing done": {Spec{Kind: Bench}, "exit 0", 9, []Run{{Exit: ExitOK}, {Exit: ExitOK}, {Exit: ExitOK}},
			"it failed 3 times in a row, at last with ok and 0 tokens"},
		"a crash after work": {Spec{Kind: Bench}, row + "\nkill -SEGV $$", 9, []Run{
			{Exit: "signal 11 (segmentation fault)", Units: 10, Findings: []string{"llama-bench ended: signal 11 (segmentation fault)"}},
			{Exit: "signal 11 (segmentation fault)", Units: 10, Findings: []string{"llama-bench ended: signal 11 (segmentation fault)"}},
			{Exit: "signal 11 (segmentation fault)", Units: 10, Findings: []string{"llama-bench ended: signal 11 (segmentation fault)"}},
		}, "it failed 3 times in a row, at last with signal 11 (segmentation fault) and 10 tokens"},
		"what its log says": {Spec{Kind: Bench}, row + `
echo 'common_sampler_sample: HRX returned NaN logits: count=7 of 7, index range [0..6], contiguous=yes, continuing=yes (engine#315)' >&2
echo 'common_sampler_sample: HRX returned NaN logits: count=6 of 7, index range [0..6], contiguous=no, continuing=yes (engine#315)' >&2`, 1,
			[]Run{{Exit: ExitOK, Units: 10, Findings: []string{"nan: common_sampler_sample: HRX returned NaN logits: count=7 of 7, index range [0..6], contiguous=yes, continuing=yes (engine#315) (and 1 more)"}}}, ""},
		"ops with failures": {Spec{Kind: Ops}, `echo '  ADD(type=f32): OK'; echo '  SIN(type=f16): [SIN] NaN at index 3 (CPU=nan HRX0=0.1) FAIL'; echo '  1/2 tests passed'; exit 1`, 1,
			[]Run{{Exit: "exit status 1", Units: 1, Findings: []string{"FAIL SIN(type=f16): [SIN] NaN at index 3 (CPU=nan HRX0=0.1)", "test-backend-ops ended: exit status 1"}}}, ""},
		"lines of a command": {Spec{Kind: Command, Proof: "^done [0-9]+$"}, `echo done 1; echo undone 2; echo done 3 >&2; printf 'done 4'`, 1, []Run{{Exit: ExitOK, Units: 3}}, ""},
		"a command without its lines": {Spec{Kind: Command, Proof: "x"}, "echo y", 1,
			[]Run{{Exit: ExitOK, Findings: []string{"no line of its output is as the plan's proof says"}}}, ""},
		"a command that fails": {Spec{Kind: Command}, "exit 4", 1, []Run{{Exit: "exit status 4", Findings: []string{"the command ended: exit status 4"}}}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := fakeProgram(t, tt.script)
			if tt.spec.Kind == Command {
				tt.spec.Args = []string{program}
			}
			tr, err := newTrial(t, Options{Spec: tt.spec, Programs: map[string]string{"llama-bench": program, "test-backend-ops": program}, Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			s := tr.until(t, func() bool {
				tr.mu.Lock()
				defer tr.mu.Unlock()
				return len(tr.runs) >= tt.runs
			})
			var got []Run
			for i, r := range tr.runs[:min(len(tr.runs), max(tt.runs, len(tt.want)))] {
				if r.Run != i+1 || r.Kind != tt.spec.Kind || r.Unit == "" || r.EndUS < r.StartUS {
					t.Errorf("%+v", r)
				}
				got = append(got, Run{Exit: r.Exit, Units: r.Units, Findings: r.Findings})
			}
			if diff := cmp.Diff(tt.want, got[:min(len(got), len(tt.want))]); diff != "" || s.Died != tt.died {
				t.Errorf("died %q (-want +got)\n%s", s.Died, diff)
			}
		})
	}
}

// A run that is stopped has not failed, whatever it has done.
func TestStoppedRun(t *testing.T) {
	tr, err := newTrial(t, Options{Spec: Spec{Kind: Bench}, Programs: map[string]string{"llama-bench": fakeProgram(t, row+"\nsleep 300 & sleep 300")}, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	s := tr.until(t, tr.hasWorked)
	if len(tr.steps) != 1 {
		t.Errorf("%d notes of one result", len(tr.steps))
	}
	if len(tr.runs) != 1 || tr.runs[0].Exit != ExitStopped || tr.runs[0].Units != 10 || s.Failed != 0 || s.Runs != 1 || s.Units != 10 {
		t.Errorf("%+v %+v", tr.runs, s)
	}
}

// Failures count in a row.
func TestFailuresBetweenGoodRuns(t *testing.T) {
	t.Parallel()
	script := `n=$(cat "$0.n" 2>/dev/null || echo 0); echo $((n+1)) > "$0.n"; [ $((n % 2)) = 0 ] || ` + row
	tr, err := newTrial(t, Options{Spec: Spec{Kind: Bench}, Programs: map[string]string{"llama-bench": fakeProgram(t, script)}, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if s := tr.until(t, func() bool { return tr.Summary(0, tr.us()).Runs == 3 }); s.Died != "" || s.Failed != 3 || s.Runs != 3 {
		t.Errorf("%+v", s)
	}
}

// What cannot be started is a failure like another.
func TestProgramThatCannotStart(t *testing.T) {
	tr, err := newTrial(t, Options{Spec: Spec{Kind: Bench}, Programs: map[string]string{"llama-bench": "/nothing/here"}, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	s := tr.until(t, func() bool { return false })
	if s.Failed != maxFailures || !strings.Contains(s.Died, "/nothing/here") || len(s.Findings) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestNewRefuses(t *testing.T) {
	sh := map[string]string{"llama-bench": "/bin/sh", "llama-server": "/bin/sh", "test-backend-ops": "/bin/sh"}
	for want, o := range map[string]Options{
		"the package has no llama-bench":      {Spec: Spec{}, Model: "m"},
		"llama-bench needs a model":           {Spec: Spec{Kind: Bench}, Programs: sh},
		"the package has no llama-server":     {Spec: Spec{Kind: Server}, Model: "m"},
		"llama-server needs a model":          {Spec: Spec{Kind: Server}, Programs: sh},
		"the package has no test-backend-ops": {Spec: Spec{Kind: Ops}},
		"are left to others":                  {Spec: Spec{Kind: Memory, GiB: 1 << 19}},
		"-1 is no amount":                     {Spec: Spec{Kind: Memory, GiB: -1}},
		"NaN is no amount":                    {Spec: Spec{Kind: Memory, GiB: math.NaN()}},
		"needs a command line":                {Spec: Spec{Kind: Command}},
		"no program nonsense in /usr/bin":     {Spec: Spec{Kind: Command, Args: []string{"nonsense"}}, Env: []string{"PATH=/usr/bin"}},
		"no program sh in :x":                 {Spec: Spec{Kind: Command, Args: []string{"sh"}}, Env: []string{"PATH=:x"}},
		"/etc/passwd is no program":           {Spec: Spec{Kind: Command, Args: []string{"/etc/passwd"}}},
		"proof: error parsing regexp":         {Spec: Spec{Kind: Command, Args: []string{"sh"}, Proof: "("}},
		`kind "gpu" is none of bench`:         {Spec: Spec{Kind: "gpu"}},
		`kind "none" is none of bench`:        {Spec: Spec{Kind: None}},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o.Spec, err, want)
		}
	}
}

// Work before and after the load proves nothing about it; a run that goes on does.
func TestSummary(t *testing.T) {
	n := &Neighbour{unit: "tokens", options: Options{Spec: Spec{Kind: Bench}, Now: func() int64 { return 100 }}, since: 80,
		steps: []step{{10, 5, 1}, {20, 8, 1}, {30, 9, 2}, {55, 19, 3}, {85, 20, 4}},
		ended: []ended{{0, 22, false, []string{"a"}}, {25, 40, true, []string{"b"}}, {50, 60, false, []string{"b", "c"}}}}
	for _, tt := range []struct {
		from, to int64
		want     Summary
	}{
		{0, 100, Summary{Runs: 4, Units: 20, Failed: 1, AliveUS: 22 + 15 + 10 + 20, Findings: []string{"a", "b", "c"}}},
		{15, 50, Summary{Runs: 2, Units: 4, Failed: 1, AliveUS: 7 + 15, Findings: []string{"a", "b"}}},
		{20, 25, Summary{AliveUS: 2, Findings: []string{"a"}}},
		{40, 50, Summary{}},
		{90, 200, Summary{AliveUS: 10}},
		{60, 70, Summary{}},
	} {
		tt.want.Kind, tt.want.Unit = Bench, "tokens"
		if diff := cmp.Diff(tt.want, n.Summary(tt.from, tt.to)); diff != "" {
			t.Errorf("%d to %d: (-want +got)\n%s", tt.from, tt.to, diff)
		}
	}
}

func TestMemoryLeavesEnoughToOthers(t *testing.T) {
	dir := t.TempDir()
	low := filepath.Join(dir, "meminfo")
	if err := os.WriteFile(low, []byte("MemTotal:       131072000 kB\nMemFree: 1 kB\nMemAvailable:    5000000 kB\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	free, floor, err := memory(low)
	if total := float64(131072000 << 10); err != nil || free != 5000000<<10 || floor != int64(memoryShare*total) {
		t.Errorf("%d, %d, %v", free, floor, err)
	}
	j, err := beginMemory(t.Context(), &Options{Dir: dir}, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := j.(*memoryJob)
	m.meminfo = low
	p, err := engine.StartProcess(t.Context(), m.process())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(context.Background(), 0)
	m.beside(t.Context(), p)
	if _, working := m.proof(); working {
		t.Error("it is at work")
	}
	select {
	case <-p.Exited():
	case <-time.After(20 * time.Second):
		t.Fatal("it is still there")
	}
	exit, findings := m.verdict("signal 9 (killed)")
	if !strings.HasPrefix(exit, "given back at ") || len(findings) != 1 || !strings.Contains(exit, "4.77 GiB were available") {
		t.Errorf("%q, %q", exit, findings)
	}
	if _, err := os.Stat(m.pipe); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pipe is still there: %v", err)
	}
	for text, want := range map[string]string{"MemAvailable: many kB\n": "invalid syntax", "x": "there is no MemAvailable"} {
		if err := os.WriteFile(low, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := memory(low); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBenchTokens(t *testing.T) {
	for line, want := range map[string]int64{
		`{"n_prompt": 512, "n_gen": 0, "samples_ns": [1, 2, 3], "more": {}}`: 1536,
		`{"n_prompt": 0, "n_gen": 128, "samples_ns": [1]}`:                   128,
		`{"n_prompt": 512, "n_gen": 0, "samples_ns": []}`:                    0,
		`{"n_prompt": -512, "n_gen": 513, "samples_ns": [1]}`:                0,
		`{"n_prompt": 99999999999, "n_gen": 0, "samples_ns": [1]}`:           0,
		`{"n_prompt": 512, "n_gen": 0, "samples_ns": [1`:                     0,
		"ggml_init: found 1 device":                                          0,
		"":                                                                   0,
	} {
		if got := benchTokens(line); got != want {
			t.Errorf("%s: %d, want %d", line, got, want)
		}
	}
}

func TestOpsLines(t *testing.T) {
	const sweep = "Testing 2 devices\n\nBackend 1/2: HRX0\n  Device description: x\n" +
		"  ADD(type=f16,ne=[10,5,4,3],nr=[2,1,1,1]): \x1b[1;32mOK\x1b[0m\n" +
		"  MUL_MAT(type_a=q4_0,m=16): [MUL_MAT] NMSE = 1.234 > 0.0005 \x1b[1;31mFAIL\x1b[0m\n" +
		"  MUL_MAT(type_a=q4_1,m=16): not supported [HRX0] \n" +
		"  SIN(type=f32): [SIN] NaN at index 7 (HRX0=nan CPU=0.5) \x1b[1;31mFAIL\x1b[0m\n" +
		"  SIN(type=f32): [SIN] NaN at index 9 (HRX0=nan CPU=0.5) \x1b[1;31mFAIL\x1b[0m\n" +
		"  1/4 tests passed\n\nFailing tests:\n  MUL_MAT(type_a=q4_0,m=16)\n  Backend HRX0: \x1b[1;31mFAIL\x1b[0m\n" +
		"Backend 2/2: CPU\n  Skipping CPU backend\n1/2 backends passed\n\x1b[1;31mFAIL\x1b[0m\n"
	j := &opsJob{}
	for line := range strings.Lines(sweep) {
		j.line(strings.TrimSuffix(line, "\n"))
	}
	want := []string{"FAIL MUL_MAT(type_a=q4_0,m=16): [MUL_MAT] NMSE = 1.234 > 0.0005", "FAIL SIN(type=f32): [SIN] NaN at index 7 (HRX0=nan CPU=0.5) (and 1 more)"}
	if diff := cmp.Diff(want, j.failed.list()); diff != "" || j.passed != 1 || j.summed != 1 {
		t.Errorf("%d passed, %d summed (-want +got)\n%s", j.passed, j.summed, diff)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	add := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	note := func(line string) { got = append(got, line[:min(len(line), 9)]) }
	newTail(path).lines(note) // not there yet
	add("an earlier run\n")
	tl := newTail(path)
	for _, text := range []string{"on", "e\ntw", "", "o\r\n\nthree\nfo", strings.Repeat("u", maxLine), "r\nfive\n", strings.Repeat("s", tailBlock+3) + "\nlast"} {
		add(text)
		tl.lines(note)
	}
	tl.finish(note)
	tl.finish(note)
	if diff := cmp.Diff([]string{"one", "two", "", "three", "five", "last"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFindingsAreBounded(t *testing.T) {
	script := "i=0; while [ $i -lt 30 ]; do echo \"  OP$i(x): bad FAIL\"; i=$((i+1)); done; echo '  0/30 tests passed'; exit 1"
	tr, err := newTrial(t, Options{Spec: Spec{Kind: Ops}, Programs: map[string]string{"test-backend-ops": fakeProgram(t, script)}})
	if err != nil {
		t.Fatal(err)
	}
	tr.until(t, func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		return len(tr.runs) > 0
	})
	if f := tr.runs[0].Findings; len(f) != maxFindings+1 || f[maxFindings] != "and 11 more" {
		t.Errorf("%q", f)
	}
	if got := cut(strings.Repeat("é", 150)); len(got) > 210 || !strings.HasSuffix(got, "…") {
		t.Errorf("%q", got)
	}
}

// Prompts differ from their first character on, so that no slot is chosen for what it holds.
func TestPromptsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for run := range 3 {
		for n := range 300 {
			head, _, _ := strings.Cut(prompt(run, n), " ")
			if seen[head] {
				t.Fatalf("twice: %s", head)
			}
			seen[head] = true
		}
	}
}

func FuzzOutput(f *testing.F) {
	f.Add("  ADD(type=f16): \x1b[1;32mOK\x1b[0m\n  1/1 tests passed\n")
	f.Add(`{"n_prompt": 512, "n_gen": 4294967296, "samples_ns": [1, 2]}` + "\n")
	f.Add("  99999999999999999999/1 tests passed\n  X(): FAIL\n")
	f.Fuzz(func(t *testing.T, out string) {
		j := &opsJob{}
		for line := range strings.Lines(out) {
			j.line(strings.TrimSuffix(line, "\n"))
			if benchTokens(line) < 0 {
				t.Fatal(line)
			}
		}
		if lines := int64(strings.Count(out, "\n") + 1); j.passed > lines || j.summed < 0 || int64(len(j.failed.kinds)) > lines {
			t.Fatal(fmt.Sprint(j))
		}
	})
}

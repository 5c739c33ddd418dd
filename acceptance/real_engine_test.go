package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	path := filepath.Join(t.TempDir(), "plan.yaml")
	text := fmt.Sprintf("name: real\nmodel: %q\np0: 0.02\nserver: {flags: [-t, '1'], env: {GGML_HRX_NAN_CONTINUE: '1'}}\nload: {%s}\n%s", model, load, more)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPlan(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The real llama-server has no guard: what a soak finds on it, it finds on the
// wire.
func TestRealEngine(t *testing.T) {
	tree := realengine.Require(t)
	p := installed(t, tree)
	const shape = "n_predict: [32, 96], request_deadline: 60s"
	tests := []struct {
		name, model, load, more string
		verdict, reason         string
	}{
		{"good model with a neighbour", "plain", "requests: 150, " + shape, "neighbour: {args: [-t, '1', -p, '64', -n, '32', -r, '100']}",
			Pass, "0 faults in 150 requests: the rate is at most 0.019773"},
		{"NaN in every logit", "nan", "requests: 150, " + shape, "", Fail, "fault(nan-wire): null log-probability: "},
		{"NaN under fluent text", "nan1", "requests: 150, " + shape, "", Fail, "fault(nan-wire): null log-probability: "},
		{"one at a time", "plain", "requests: 40, in_flight: 1, " + shape, "",
			Inconclusive, "invalid(load-shape): all 4 slots were busy for 0.00 of the busy time, the plan asks for 0.50"},
		{"shared prefix", "plain", "requests: 40, prompts: shared_prefix, prompt_tokens: [175], " + shape, "", Inconclusive, "invalid(load-shape): "},
		{"shared prefix one at a time", "plain", "requests: 40, in_flight: 1, prompts: shared_prefix, prompt_tokens: [175], " + shape, "",
			Inconclusive, "invalid(load-shape): slot "},
		{"a model that is none", "none", "requests: 150", "", Fail, "fault(startup): server ended before it was ready: exit status 1"},
		{"too few requests for p0", "plain", "requests: 40, " + shape, "",
			Inconclusive, "no fault seen, but the bound at 40 requests is 0.072158 > p0 0.02, needs 149 requests"},
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
			if e.Neighbour.Runs == 0 || e.Neighbour.Tokens == 0 || !(e.Neighbour.AliveShare > 0.5) {
				t.Errorf("the neighbour proves no work: %+v", e.Neighbour)
			}
			if e.Selected.LCP != 0 || e.Selected.LRU != 150 || len(e.LaunchesPerSlot) != 4 || e.TokensObserved == 0 || e.EngineVersion == "" {
				t.Errorf("exposure %+v", e)
			}
		})
	}
}

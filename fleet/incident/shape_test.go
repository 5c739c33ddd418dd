package incident

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/engine/gpu"
)

func TestShapeOfACommand(t *testing.T) {
	for name, c := range map[string]struct {
		argv []string
		want Shape
	}{
		"a front end": {
			[]string{"/home/ai/.local/bin/1bit", "serve", "-m", "/m.gguf", "--device", "hrx", "--ctx-size", "8192", "--parallel", "4", "--port", "8095"},
			Shape{Entry: "1bit", Model: "/m.gguf", Context: 8192, Parallel: 4, Flags: []string{"--device", "hrx"}},
		},
		"a server behind env": {
			[]string{"/usr/bin/env", "/p/llama-server", "-m=/m.gguf", "-np", "2", "-c", "512", "-kvu", "-ngl", "99", "--temp", "-1", "--no-mmap", "--host", "0.0.0.0", "--jinja"},
			Shape{Entry: "llama-server", Model: "/m.gguf", Context: 512, Parallel: 2, KVUnified: true, Flags: []string{"-ngl", "99", "--temp", "-1", "--no-mmap", "--jinja"}},
		},
		"secrets": {[]string{"llama-server", "--api-key", "(masked)", "--chat-template-kwargs", "(masked)"}, Shape{Entry: "llama-server", Flags: []string{}}},
		"a secret among others": {[]string{"llama-server", "-ngl", "99", "--chat-template-kwargs", "(masked)", "--x-token=(masked)", "-hft", "(masked)",
			"--override-kv", "tokenizer.ggml.add_bos_token=bool:false", "--jinja"},
			Shape{Entry: "llama-server", Flags: []string{"-ngl", "99", "--override-kv", "tokenizer.ggml.add_bos_token=bool:false", "--jinja"}}},
		"another program": {[]string{"/usr/bin/sleep", "-m", "1"}, Shape{Entry: "llama-server", Flags: []string{}}},
		"nothing":         {nil, Shape{Entry: "llama-server", Flags: []string{}}},
		"a cut command":   {[]string{"llama-server", "--parallel"}, Shape{Entry: "llama-server", Flags: []string{}}},
	} {
		got := Analyse(&Evidence{Unit: testUnit, Command: c.argv}).Shape
		c.want.Env, c.want.PromptTokens, c.want.NPredict, c.want.Neighbour, c.want.Why = got.Env, got.PromptTokens, got.NPredict, got.Neighbour, got.Why
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

// The neighbour is the closest to what used the GPU when it ended, not before and not after.
func TestShapeOfTheNeighbour(t *testing.T) {
	entries := entriesOf(t, "== a"+serverStart+`
		10:00:05.1 systemd llm.service: Main process exited, code=exited, status=1/FAILURE`, false)
	end := entries[len(entries)-1].At
	span := func(from, to int) (time.Time, time.Time) {
		return end.Add(time.Duration(from) * time.Minute), end.Add(time.Duration(to) * time.Minute)
	}
	run := func(workflow, status string, from, to int) Run {
		created, updated := span(from, to)
		return Run{ID: 7, Workflow: workflow, Status: status, Created: created, Updated: updated}
	}
	held := func(command string, from, to int) claim.Record {
		since, until := span(from, to)
		return claim.Record{Label: "x", Command: command, Since: since, Until: until}
	}
	early := end.Add(-time.Minute)
	for name, c := range map[string]struct {
		e    Evidence
		want string
	}{
		"nothing":                   {Evidence{}, "none"},
		"a gate":                    {Evidence{Runs: []Run{run("hw-gate.yml", "completed", -5, 1)}}, "ops"},
		"a bench job":               {Evidence{Runs: []Run{run("bench.yml", "completed", -5, 1)}}, "bench"},
		"a run that goes on":        {Evidence{Runs: []Run{run("hw-gate.yml", "in_progress", -5, -4)}}, "ops"},
		"a run before":              {Evidence{Runs: []Run{run("hw-gate.yml", "completed", -5, -4)}}, "none"},
		"a run after":               {Evidence{Runs: []Run{run("hw-gate.yml", "completed", 1, 4)}}, "none"},
		"a claim of a sweep":        {Evidence{Claims: []claim.Record{held("test-backend-ops -b HRX0", -5, 5)}}, "ops"},
		"a claim of a server":       {Evidence{Claims: []claim.Record{held("/p/llama-server -m x", -5, 5)}}, "server"},
		"a claim before":            {Evidence{Claims: []claim.Record{held("llama-bench", -5, -1)}}, "none"},
		"a process that is there":   {Evidence{Processes: []gpu.Process{{PID: 4, Command: "llama-bench -m x", Start: early}}}, "bench"},
		"a process that came later": {Evidence{Processes: []gpu.Process{{PID: 4, Command: "llama-bench -m x", Start: end.Add(time.Second)}}}, "none"},
	} {
		c.e.Unit, c.e.Entries = testUnit, entries
		if got := Analyse(&c.e).Shape; got.Neighbour != c.want || got.Why == "" {
			t.Errorf("%s: neighbour %s (%s), want %s", name, got.Neighbour, got.Why, c.want)
		}
	}
}

func TestLengths(t *testing.T) {
	seen := map[int]int{}
	for n := range 100 {
		seen[n+1] = 1
	}
	if diff := cmp.Diff([]int{1, 20, 40, 60, 80, 100}, lengths(seen)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{7}, lengths(map[int]int{7: 3})); diff != "" {
		t.Error(diff)
	}
}

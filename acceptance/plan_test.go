package acceptance

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPlanDefaults(t *testing.T) {
	p := testPlan(t, "load: {duration: 4h}\nneighbour: {}\n")
	if p.Server.Parallel != 4 || !*p.Server.KVUnified || p.Server.Ctx != 8192 || p.Load.InFlight != 4 || p.Load.Prompts != PromptsUnique ||
		time.Duration(p.Load.Duration) != 4*time.Hour || *p.Load.LogprobsShare != 1 || p.Neighbour.Kind != "bench" ||
		p.Neighbour.Model != "m.gguf" || p.Gates.NeighbourWork != 1 || *p.Gates.AllSlotsBusyShare != 0.5 || p.Confidence != 0.95 || !*p.FinalProbe {
		t.Errorf("%+v", p)
	}
	if p.RequiredN() != 59 {
		t.Errorf("required %g", p.RequiredN())
	}
}

// Every refusal names the line and the key.
func TestPlanRefusals(t *testing.T) {
	const head = "name: x\nmodel: m.gguf\np0: 0.05\n"
	tests := []struct{ text, want string }{
		{"", "the file is empty"},
		{"name: x\nmodel: m\np0: 0.1\nload: {requests: 5}\n---\nname: y\n", "more than one document"},
		{"name: [", "line 1"},
		{"- a\n", "line 1"},
		{head + "load: {requests: 5}\nnoise: 1\n", "line 5: unknown key noise"},
		{head + "load:\n  requests: 5\n  speed: 3\n", "line 6: unknown key speed"},
		{head + "load:\n  requests: many\n", "line 5: load.requests: many is not of the right kind: give a whole number"},
		{head + "load: {requests: 5}\nneighbour: none\n", "line 5: neighbour: none is not of the right kind: give keys of its own, such as {kind: none}"},
		{head + "load:\n  requests: 5\n  prompt_tokens: 300\n", "line 6: load.prompt_tokens: 300 is not of the right kind: give a list of whole numbers, such as [24, 300]"},
		{head + "load:\n  duration: 4 hours\n", `line 5: load.duration: "4 hours" is no duration such as 90s or 4h`},
		{head + "load: {requests: 5}\nname: y\n", `line 5: mapping key "name" already defined at line 1`},
		{"model: m\np0: 0.1\nload: {requests: 5}\n", "name: must be given"},
		{"name: x\np0: 0.1\nload: {requests: 5}\n", "model: must be given"},
		{"name: x\nmodel: m\nload: {requests: 5}\n", "p0: must be given"},
		{"name: x\nmodel: m\np0: .nan\nload: {requests: 5}\n", "line 3: p0: must be given"},
		{head, "load: give either requests or duration"},
		{head + "load: {requests: 5, duration: 1m}\n", "line 4: load: give either requests or duration"},
		{head + "load:\n  requests: 5\n  in_flight: 4\n  prompt_tokens: [2048]\n", "line 4: load: 4 requests in flight of up to 2048 + 96 tokens need a context of 8576, server.ctx is 8192"},
		{head + "load: {requests: 5, prompt_tokens: [9223372036854775807]}\n", "line 4: load.prompt_tokens"},
		{head + "load: {requests: 5, prompt_tokens: [12]}\n", "load.prompt_tokens: must be lengths of 24 to 1048576 tokens"},
		{head + "load: {requests: 5, prompt_tokens: []}\n", "load.prompt_tokens"},
		{head + "load: {requests: 5, prompts: same}\n", "load.prompts: must be unique or shared_prefix"},
		{head + "load: {requests: 5, logprobs_share: 0}\n", "load.logprobs_share"},
		{head + "load: {requests: -5}\n", "load.requests"},
		{head + "load: {requests: 5}\nserver:\n  flags: [-t, '1', --port, '80']\n", "line 6: server.flags: --port is set by the runner"},
		{head + "load: {requests: 5}\nserver:\n  flags: [-sps, '0']\n", "line 6: server.flags: -sps"},
		{head + "load: {requests: 5}\nserver:\n  env: {'A B': x}\n", `line 6: server.env: "A B" is no variable`},
		{head + "load: {requests: 5}\nneighbour:\n  args: [-o, json]\n", "line 6: neighbour.args"},
		{head + "load: {requests: 5}\nneighbour:\n  kind: nonsense\n", "line 6: neighbour.kind"},
		{head + "load: {requests: 5}\ngates:\n  neighbour_work: 2\n", "line 6: gates.neighbour_work: the plan has no neighbour"},
		{head + "load: {requests: 5}\ngates:\n  gtt_used_gib: {min: 110, max: 95}\n", "line 6: gates.gtt_used_gib"},
		{head + "load: {requests: 5}\ngates:\n  all_slots_busy_share: 0\n", "line 6: gates.all_slots_busy_share"},
		{head + "load: {requests: 5}\nprimary: arm\n", "line 5: primary: must be request or hour: one server life"},
		{head + "load: {requests: 5}\nprimary: minute\n", "line 5: primary: must be arm, request or hour"},
		{strings.Replace(head, "0.05", "5", 1) + "load: {requests: 5}\n", "line 3: p0: must be given, more than 0 and less than 1"},
		{head + "load: {requests: 5}\nreport_only: true\n", "line 3: p0: is a promise"},
		{head + "load: {requests: 5}\nserver:\n  env: {LLAMA_ARG_PORT: '1'}\n", "line 6: server.env: LLAMA_ARG_PORT is an option of the server: give it as a flag"},
		{head + "load: {requests: 5}\nserver: {entry: ../x}\n", "line 5: server.entry"},
		{head + "load: {requests: 5, schedule: open}\n", "load.schedule: must be closed or burst"},
		{head + "load: {requests: 5, schedule: burst}\n", "load.every: must be given for bursts"},
		{head + "load: {requests: 5, every: 1s}\n", "load.every: is the time between two bursts"},
		{head + "load: {requests: 5, api: chat}\n", "load.api: must be completion, completions or chat_completions"},
		{head + "load: {requests: 5, logprobs_share: .nan}\n", "load.logprobs_share"},
		{head + "load: {requests: 5, prompt_tokens: [1900]}\nsentinels: {every: 5, prompt_tokens: [2048]}\n", "line 4: load: 4 requests in flight of up to 2048 + 24 tokens need a context of 8288, server.ctx is 8192"},
		{head + "load: {requests: 5, prompt_tokens: [1950], api: chat_completions}\n", "4 requests in flight of up to 2014 + 96 tokens"},
		{head + "load: {requests: 5, prompt_tokens: [2000]}\nserver: {kv_unified: false}\n", "a request of up to 2000 + 96 tokens does not fit into the 2048 of one slot"},
		{head + "load: {requests: 5}\narms:\n  - {name: a}\n  - {name: b, role: control, ctx: 1024}\n", "line 7: arms.1: 4 requests in flight of up to 300 + 96 tokens need a context of 1584, server.ctx is 1024"},
		{head + "load: {requests: 5}\narms:\n  - name: a\n    lives: -1\n", "line 7: arms.0.lives: must be 1 to 10000"},
		{head + "load: {requests: 5}\narms: [{name: a}, {name: a}]\n", "arms.1.name: is the name of another arm too"},
		{head + "load: {requests: 5}\narms: [{name: a, role: control}]\n", "arms: one must be a candidate"},
		{head + "load: {requests: 5}\narms: [{name: a, role: best}]\n", "arms.0.role: must be candidate, control or baseline"},
		{head + "load: {requests: 5}\narms: [{name: a, package: hrx-1}]\n", "arms.0.package: is for the role baseline"},
		{head + "load: {requests: 5}\narms: [{name: a, flags: [-c, '1']}]\n", "arms.0.flags: -c is set by the runner"},
		{head + "load: {requests: 5}\narms: [{name: a, requests: 1, duration: 1m}]\n", "arms.0.requests: give either requests or duration"},
		{head + "load: {requests: 5}\narms: [{name: a, noise: 1}]\n", "line 5: unknown key noise"},
		{head + "arms: [{name: a, requests: 9}, {name: b, role: control}]\n", "load: give either requests or duration"},
		{head + "load: {requests: 5}\narms: [{name: a, lives: 9}]\nattempts: 8\n", "line 6: attempts: must be at least the 9 lives of the plan"},
		{head + "load: {requests: 5}\nafter_fault: again\n", "after_fault: must be stop or go_on"},
		{head + "load: {requests: 5}\nsentinels: {every: 1}\n", "sentinels.every: must be 2 or more"},
		{head + "load: {requests: 5}\nsentinels: {tau: 0.1}\n", "sentinels.every: must be given"},
		{head + "load: {requests: 5}\nsentinels: {every: 5, tau: .inf}\n", "sentinels.tau"},
		{head + "load: {requests: 5}\nfaces:\n  nann: gate\n", `line 5: faces: no face of fault "nann"; there are nan, `},
		{head + "load: {requests: 5}\nfaces: {nan: perhaps}\n", `faces: face nan is "perhaps": say gate, report or off`},
		{head + "load: {requests: 5}\nfaces:\n  numeric: gate\n", "line 6: faces.numeric: is a gate, but the plan has nothing that it could be seen in: sentinels"},
		{head + "load: {requests: 5}\nfaces: {device: gate}\n", "faces.device: is a gate"},
		{head + "load: {requests: 5}\ndevice: {layers: most}\n", "device.layers: must be all"},
		{head + "load: {requests: 5}\ndevice: {counts_as: luck}\n", "device.counts_as: must be fault or invalid"},
		{head + "load: {requests: 5}\nwatchdogs: {temp_c: 12}\n", "watchdogs.temp_c: must be 30 to 150"},
		{head + "load: {duration: 1h}\nwatchdogs: {life: 1h}\n", "watchdogs.life: must be longer than the load with the last request's deadline"},
		{head + "load: {requests: 5}\nneighbour: {kind: command}\n", "neighbour.args: must be given"},
		{head + "load: {requests: 5}\nneighbour: {kind: command, args: [x], proof: '('}\n", "neighbour.proof: is no regular expression"},
		{head + "load: {requests: 5}\nneighbour: {kind: memory, gib: .nan}\n", "neighbour.gib: must be more than 0"},
		{head + "load: {requests: 5}\nneighbour: {kind: ops, workers: 3}\n", "neighbour.workers: is for kind server"},
		{head + "load: {requests: 5}\nneighbour: {kind: server, args: [--port, '80']}\n", "neighbour.args: --port is set by the runner"},
		{head + "load: {requests: 5}\ngates: {mem_available_gib: .nan}\n", "gates.mem_available_gib"},
		{head + "load: {requests: 5}\nconfidence: 1\n", "line 5: confidence"},
		{strings.Replace(head, "p0: 0.05", "p0: 1e-18", 1) + "load: {requests: 5}\n", "p0: must be at least 1e-09"},
		{strings.Replace(head, "p0: 0.05", "p0: 1e-300", 1) + "load: {requests: 5}\n", "p0: must be at least 1e-09"},
		{head + "load: {requests: 5, request_deadline: 1ns}\n", "load.request_deadline: must be 100ms to 24h"},
		{head + "load: {requests: 5, request_deadline: 2000000h}\n", "load.request_deadline: must be 100ms to 24h"},
		{head + "load: {requests: 5}\nload_deadline: 1ms\n", "load_deadline: must be 100ms to 24h"},
		{head + "load: {requests: 5}\nneighbour: {lead: 1us}\n", "neighbour.lead: must be 100ms to 24h"},
	}
	for _, tt := range tests {
		_, err := ParsePlan([]byte(tt.text))
		if !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant %s", tt.text, err, tt.want)
		}
	}
	if _, err := LoadPlan(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func TestPlanNotes(t *testing.T) {
	tests := []struct{ yaml, want string }{
		{"load: {requests: 59, n_predict: [32]}", ""},
		{"load: {requests: 59, n_predict: [32, 4]}", "answers of fewer than 8 tokens may be too short to show a leak, and do not count then: of 59 requests perhaps 30 would, needs 59 requests"},
		{"load: {requests: 59, n_predict: [4]}\nfaces: {leak: off}", ""},
		{"load: {requests: 58}", "cannot pass: the bound at 58 requests is 0.050339 > p0 0.05, needs 59 requests"},
		{"load: {requests: 200, logprobs_share: 0.25}", "cannot pass: the bound at 50 requests is 0.058155 > p0 0.05, needs 59 requests"},
		{"load: {requests: 60, in_flight: 1}", "cannot pass: 1 in flight never make 4 slots busy at once"},
		{"load: {requests: 60, prompts: shared_prefix}", "cannot pass: prompts that begin alike"},
		{"load: {requests: 60}\ngates: {min_launches_per_slot: 20}", "cannot pass: 60 requests cannot give each of 4 slots 20 launches"},
		{"load: {duration: 1h}", "needs 59 requests without fault within 1h0m0s for p0 0.05"},
		{"load: {requests: 5}\narms: [{name: a, lives: 59}]", ""},
		{"load: {requests: 5}\narms: [{name: a, lives: 58}]", "cannot pass: the bound at 58 server lives is 0.050339 > p0 0.05, needs 59 server lives"},
		{"load: {requests: 5, logprobs_share: 0.1}\narms: [{name: a, lives: 59}]", "cannot pass: the bound at 0 server lives is 1.000000 > p0 0.05, needs 59 server lives"},
		{"load: {duration: 30h}\narms: [{name: a, lives: 2}]\nprimary: hour", ""},
		{"load: {duration: 29h}\narms: [{name: a, lives: 2}]\nprimary: hour", "cannot pass: the bound at 58h0m0s of load is 0.051651 > p0 0.05, needs 59h54m53s of load"},
		{"load: {requests: 60}\nprimary: hour", "needs 59h54m53s of load without fault for p0 0.05"},
		{"load: {requests: 60, api: completions}", "the answers of /v1/completions do not say which slot served them"},
		{"load: {requests: 60}\narms: [{name: a}, {name: b, role: control, in_flight: 2}]", "cannot pass: arm b: 2 in flight never make 4 slots busy at once"},
	}
	for _, tt := range tests {
		if got := strings.Join(testPlan(t, tt.yaml).Notes(), "; "); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tt.yaml, got, tt.want)
		}
	}
}

func TestModelPath(t *testing.T) {
	p := &Plan{path: "/plans/x.yaml"}
	env := []string{"HOME=/home/ai"}
	for path, want := range map[string]string{"/m/a.gguf": "/m/a.gguf", "a.gguf": "/plans/a.gguf", "~/models/a.gguf": "/home/ai/models/a.gguf"} {
		if got, err := p.modelPath(path, env); got != want || err != nil {
			t.Errorf("%s: %s, %v, want %s", path, got, err, want)
		}
	}
	if _, err := p.modelPath("~/a.gguf", nil); !errors.Is(err, ErrPlan) {
		t.Errorf("without a home folder: %v", err)
	}
}

// The server sees of the runner's environment only what cannot change it.
func TestEnvironment(t *testing.T) {
	got := environment([]string{"HOME=/h", "LLAMA_ARG_N_PARALLEL=1", "LD_LIBRARY_PATH=/x", "PATH=/bin"}, map[string]string{"GGML_HRX_NAN_CONTINUE": "1"})
	if strings.Join(got, " ") != "GGML_HRX_NAN_CONTINUE=1 HOME=/h PATH=/bin" {
		t.Errorf("%q", got)
	}
	if got := environment(nil, nil); len(got) != 1 || got[0] != defaultPath {
		t.Errorf("%q", got)
	}
}

// The plans that come with the program can be carried out and can pass.
func TestReadyPlans(t *testing.T) {
	if got := strings.Join(ReadyPlans(), " "); got != "default engine-66 hours seed-five-arms seed-neighbour-control smoke" {
		t.Errorf("there are %s", got)
	}
	for _, name := range ReadyPlans() {
		p, err := OpenPlan(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if notes := strings.Join(p.Notes(), "; "); p.Name != name || strings.Contains(notes, "cannot pass") {
			t.Errorf("%s: %s", name, notes)
		}
	}
}

func FuzzParsePlan(f *testing.F) {
	for _, path := range []string{"plans/smoke.yaml", "plans/hours.yaml"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte("name: x\nmodel: m\np0: .inf\nload: {requests: 1e3}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("name: x\nmodel: m\nreport_only: true\nload: {requests: 9}\narms: [{name: a, lives: 3}, {name: b, role: baseline, neighbour: {kind: none}}]\nfaces: {leak: off}\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := ParsePlan(raw)
		if err != nil {
			if !errors.Is(err, ErrPlan) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if e := p.Estimate(EstimateInput{}); len(p.Lives()) != e.Lives || !(e.MinSeconds <= e.MaxSeconds) || !(e.Bounds.ArmUpper95 > 0) {
			t.Fatalf("estimate %+v", e)
		}
		if !p.ReportOnly && !(p.P0 > 0 && p.P0 < 3600) || !(p.Confidence >= 0.5 && p.Confidence < 1) || p.Load.InFlight < 1 {
			t.Fatalf("accepted %+v", p)
		}
	})
}

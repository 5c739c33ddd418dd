package incident

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/acceptance"
)

// nanReport is one of a service that aborted with a NaN on a slot that was never used, after six hours.
func nanReport() *Report {
	at := time.Date(2026, 10, 23, 10, 45, 12, 0, time.UTC)
	free, total, memory, ram := 95.1, 120.0, 84.7, 124.0
	return &Report{
		Schema: Schema, Unit: "1bit-canonical.service", Signature: "nan-abort whole-vocabulary never-used-slot",
		Ending:  &Ending{At: at, Cause: "NaN logits"},
		Slots:   []Slot{{ID: 2, Task: 218, State: "running", NeverUsed: true}},
		Server:  &Server{Slots: 4, Context: 8192, KVUnified: true, Devices: []string{"HRX0"}},
		Restart: &Restart{Host: &HostAt{GTTFreeGiB: &free, GTTTotalGiB: &total, MemAvailableGiB: &memory}},
		Shape: Shape{
			Entry: entryFrontEnd, Model: "~/models/Qwen3-4B-Q4_K_M.gguf", Parallel: 4, Context: 8192, KVUnified: true,
			Flags: []string{"--device", "hrx"}, Env: map[string]string{"HSA_USERPTR_FOR_PAGED_MEM": "0"},
			PromptTokens: []int{12, 175, 9000}, NPredict: []int{29}, Neighbour: "ops", Why: "CI run 39940594897 (hw-gate.yml) spans the end",
			UptimeS: 22020, TasksBefore: 217,
		},
		Evidence: &Evidence{
			Package:  &Package{Name: "hrx-3092596", Path: "/home/me/.local/share/1bit-hrx-3092596"},
			HostNow:  HostState{MemTotal: &ram},
			Settings: []UnitSetting{{Key: "HF_TOKEN", Value: "(masked)"}},
			Command:  []string{"1bit", "serve", "--api-key", "(masked)", "--lora-url=(masked)"},
		},
	}
}

func TestPlanHasTheShapeOfTheIncident(t *testing.T) {
	text, notes, err := Plan(nanReport(), "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := acceptance.ParsePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		what      string
		want, got any
	}{
		{"name", "recheck-1bit-canonical-20261023-104512", p.Name},
		{"model", "~/models/Qwen3-4B-Q4_K_M.gguf", p.Model},
		{"entry", "1bit", p.Server.Entry},
		{"slots", 4, p.Server.Parallel},
		{"kv_unified", true, *p.Server.KVUnified},
		{"ctx", 8192, p.Server.Ctx},
		{"flags", []string{"--device", "hrx"}, p.Server.Flags},
		{"env", map[string]string{"GGML_HRX_NAN_CONTINUE": "1", "HSA_USERPTR_FOR_PAGED_MEM": "0"}, p.Server.Env},
		{"prompts", []int{24, 175, 2048 - 29}, p.Load.PromptTokens},
		{"answers", []int{29}, p.Load.NPredict},
		{"in flight", 4, p.Load.InFlight},
		{"neighbour", "ops", p.Neighbour.Kind},
		{"its arguments", []string{"-b", "HRX0"}, p.Neighbour.Args},
		{"device", "HRX0", p.Device.Name},
		{"sentinels", 0, p.Sentinels.Every},
		{"primary", "arm", p.Primary},
		{"arms", 2, len(p.Arms)},
		{"short lives", 60, p.Arms[0].Lives},
		{"the long one's role", "control", p.Arms[1].Role},
		{"its time", 404 * time.Minute, time.Duration(p.Arms[1].Duration)},
		{"watchdog", 4.0, p.Watchdogs.MemAvailableGiB},
	} {
		if d := cmp.Diff(want.want, want.got); d != "" {
			t.Errorf("%s: %s", want.what, d)
		}
	}
	for _, note := range p.Notes() {
		if strings.HasPrefix(note, "cannot pass") {
			t.Error(note)
		}
	}
	if e := p.Estimate(acceptance.EstimateInput{}); e.Lives != 61 {
		t.Errorf("%d lives", e.Lives)
	}
	for _, want := range []string{"HF_TOKEN is a secret", "--lora-url has a secret", "first time after hours"} {
		if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no note that %s: %q", want, notes)
		}
	}
	for _, want := range []string{"CI run 39940594897", "GTT 24.9 of 120.0 GiB in use", "nan-abort", "6 h 07 min", "240 first tasks", "cut to 2019"} {
		if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(string(text), "#", "")), " "), want) {
			t.Errorf("the plan does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "masked") {
		t.Errorf("the plan has a masked value:\n%s", text)
	}
	if again, _, _ := Plan(nanReport(), ""); string(again) != string(text) {
		t.Error("the same incident gives another plan")
	}
}

func TestPlanOfLittle(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Report)
		wrong  error
		check  func(*acceptance.Plan) bool
	}{
		{"a crash at the start", func(r *Report) { r.Shape.UptimeS, r.Shape.TasksBefore = 3, 0 },
			nil, func(p *acceptance.Plan) bool { return len(p.Arms) == 1 && p.Load.Requests == 25 }},
		{"a few tasks", func(r *Report) { r.Shape.UptimeS, r.Shape.TasksBefore = 60, 70 },
			nil, func(p *acceptance.Plan) bool { return p.Load.Requests == 74 }},
		{"days", func(r *Report) { r.Shape.UptimeS = 400_000 },
			nil, func(p *acceptance.Plan) bool { return time.Duration(p.Arms[1].Duration) == 8*time.Hour }},
		{"no log", func(r *Report) {
			r.Server, r.Slots, r.Restart, r.Ending, r.Evidence = nil, nil, nil, nil, nil
			r.Shape = Shape{Model: "/m.gguf"}
		}, nil, func(p *acceptance.Plan) bool {
			return p.Server.Parallel == 4 && p.Server.Ctx == 8192 && p.Neighbour == nil && p.Device.Name == "" && p.Server.Entry == "llama-server"
		}},
		{"a slot's own memory", func(r *Report) { r.Shape.KVUnified, r.Shape.Context, r.Server.Context = false, 0, 2048 },
			nil, func(p *acceptance.Plan) bool { return p.Server.Ctx == 8192 && !*p.Server.KVUnified }},
		{"many slots", func(r *Report) { r.Shape.Parallel, r.Shape.Context = 64, 65536 },
			nil, func(p *acceptance.Plan) bool { return p.Load.Requests == 384 && p.Load.InFlight == 64 }},
		{"a secret that nobody masked", func(r *Report) {
			r.Shape.Env["API_TOKEN"] = "swordfish-1"
			r.Shape.Flags = []string{"--hf-token", "swordfish-2", "--api-key", "swordfish-3", "-t", "2", "--threads-http=3"}
		}, nil, func(p *acceptance.Plan) bool {
			return p.Server.Env["API_TOKEN"] == "" && slices.Equal(p.Server.Flags, []string{"-t", "2", "--threads-http=3"})
		}},
		{"the runner's options", func(r *Report) { r.Shape.Flags = []string{"--port", "1", "--no-slots", "-c=5", "--temp", "-1"} },
			nil, func(p *acceptance.Plan) bool { return slices.Equal(p.Server.Flags, []string{"--temp", "-1"}) }},
		{"a value of the package", func(r *Report) {
			r.Shape.Env["GGML_BACKEND_PATH"] = r.Evidence.Package.Path + "/x.so"
			r.Shape.Env["LLAMA_ARG_THREADS"] = "2"
		}, nil, func(p *acceptance.Plan) bool { return len(p.Server.Env) == 2 }},
		{"hostile text", func(r *Report) {
			r.Shape.Why = "x\ny: z # \x1b[31m"
			r.Signature = "a\nname: other"
			r.Unit = "a b\n.service"
			r.Shape.Env["A"] = "\"\n- x: {"
			r.Shape.Flags = []string{"--x", "]\"\n  y"}
		}, nil, func(p *acceptance.Plan) bool {
			return p.Server.Env["A"] == "\"\n- x: {" && p.Server.Flags[1] == "]\"\n  y" && p.Name == "recheck-a-b--20261023-104512"
		}},
		{"no model", func(r *Report) { r.Shape.Model = "" }, ErrShape, nil},
		{"a model somewhere", func(r *Report) { r.Shape.Model = "m.gguf" }, ErrShape, nil},
		{"no room", func(r *Report) { r.Shape.Context = 64 }, ErrShape, nil},
		{"a shape that no plan may have", func(r *Report) { r.Shape.Parallel, r.Shape.Context = 1000, 1<<20 }, acceptance.ErrPlan, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := nanReport()
			r.Shape.Env = maps.Clone(r.Shape.Env)
			test.change(r)
			text, _, err := Plan(r, "")
			if !errors.Is(err, test.wrong) || (err != nil) != (test.wrong != nil) {
				t.Fatalf("%v, want %v\n%s", err, test.wrong, text)
			}
			if err != nil {
				return
			}
			p, err := acceptance.ParsePlan(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if !test.check(p) || strings.Contains(string(text), "swordfish") {
				t.Errorf("not as it should be:\n%s", text)
			}
		})
	}
}

func TestPlanOfAnotherModel(t *testing.T) {
	text, _, err := Plan(nanReport(), "/tmp/other.gguf")
	if err != nil || !strings.Contains(string(text), "\"/tmp/other.gguf\"") {
		t.Errorf("%v\n%s", err, text)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add("~/m.gguf", "--x", "A", "b", "why", 4, 8192, 24, 16, 100.0, 7)
	f.Add("/m", "-c", "\"", "\x00", "#\n", 1, 0, -1, 0, 1e300, -1)
	f.Fuzz(func(t *testing.T, model, flag, key, value, why string, parallel, ctx, prompt, predict int, uptime float64, tasks int) {
		r := nanReport()
		r.Unit, r.Signature = why, value
		r.Shape = Shape{
			Model: model, Parallel: parallel, Context: ctx, Flags: []string{flag, value}, Env: map[string]string{key: value},
			PromptTokens: []int{prompt}, NPredict: []int{predict}, Neighbour: "bench", Why: why, UptimeS: uptime, TasksBefore: tasks,
		}
		text, _, err := Plan(r, "")
		if err != nil {
			if !errors.Is(err, ErrShape) && !errors.Is(err, acceptance.ErrPlan) {
				t.Errorf("%v", err)
			}
			return
		}
		p, err := acceptance.ParsePlan(text)
		if err != nil || p.Model != model {
			t.Errorf("%v: %q for %q\n%s", err, p.Model, model, text)
		}
	})
}

// The plan of the recording, as a file to read.
func TestPlanOfTheRecording(t *testing.T) {
	text, _, err := Plan(Analyse(gatherRecorded(t)), "")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "nan-abort", "recheck.yaml")
	if *update {
		if err := os.WriteFile(golden, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(text)); d != "" {
		t.Error(d)
	}
}

// A report may come from anywhere: what it says of its host's programs, and what is none of a plan, is not in the plan.
func TestPlanOfForeignReport(t *testing.T) {
	r := nanReport()
	for _, key := range []string{"LD_PRELOAD", "LD_AUDIT", "BASH_ENV", "PATH", "GGML_BACKEND_PATH", "HSA_TOOLS_LIB"} {
		r.Shape.Env[key] = "/tmp/evil"
	}
	r.Shape.Env["LD_PRELOAD"] = "evil.so"
	text, notes, err := Plan(r, "")
	if err != nil || strings.Contains(strings.ReplaceAll(string(text), "# ", ""), `": "`+"/tmp/evil") {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := acceptance.ParsePlan(text)
	if err != nil || len(p.Server.Env) != 2 || len(notes) < 6 {
		t.Errorf("%v: %v, %q", err, p.Server.Env, notes)
	}
	for _, kind := range []string{"ops\n  args: [\"--evil\"]", "server\n  model: /etc/shadow", "foo"} {
		r := nanReport()
		r.Shape.Neighbour = kind
		if text, _, err := Plan(r, ""); !errors.Is(err, ErrShape) {
			t.Errorf("%q: %v\n%s", kind, err, text)
		}
	}
}

func TestPlanSaysWhenItCame(t *testing.T) {
	for uptime, want := range map[float64]string{
		0: "does not tell after how long", -5: "does not tell after how long", 1e12: "does not tell after how long",
		60: "came after 1m0s.", 3600: "one life as long", 86400: "one life, not as long",
	} {
		r := nanReport()
		r.Shape.UptimeS = uptime
		text, _, err := Plan(r, "")
		if err != nil || !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(string(text), "#", "")), " "), want) {
			t.Errorf("%v: %v: does not say %q:\n%s", uptime, err, want, text)
		}
	}
}

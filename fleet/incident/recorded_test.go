package incident

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the test does not depend on the host's zones

	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

var update = flag.Bool("update", false, "write the golden files anew")

// recordedHost is a host of which there are files only.
type recordedHost struct{ inspection fleet.Inspection }

func (h recordedHost) Inspect(context.Context, ...string) ([]fleet.Inspection, error) {
	return []fleet.Inspection{h.inspection}, nil
}

func (h recordedHost) History(context.Context, string) ([]fleet.Record, error) { return nil, nil }

// recordedJournal reads a file of journalctl -o json as the journal that it was made of.
func recordedJournal(path string) func(context.Context, systemd.JournalQuery, func(systemd.Entry) error) ([]string, error) {
	return func(_ context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) ([]string, error) {
		file, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		var rows bytes.Buffer
		for row := range bytes.Lines(file) {
			e, err := systemd.ParseEntry(row)
			if err != nil {
				return nil, err
			}
			kernel := e.Fields["_TRANSPORT"] == "kernel"
			if q.Kernel == kernel && (kernel || e.Unit == q.Unit) && (len(q.IDs) == 0 || slices.Contains(q.IDs, e.ID)) &&
				!e.At.Before(q.Since) && (q.Until.IsZero() || !e.At.After(q.Until)) {
				rows.Write(row)
			}
		}
		return systemd.ReadEntries(&rows, f)
	}
}

func recordedPackage(t *testing.T, path, home string, installed time.Time) *store.Package {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := packager.DecodeManifest(b)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := m.Digest()
	if err != nil {
		t.Fatal(err)
	}
	name := m.Flavour + "-" + m.ID
	return &store.Package{Manifest: m, Name: name, Digest: digest, Path: filepath.Join(home, ".local/share", packager.DirPrefix+name), InstalledAt: installed, State: store.StateOK}
}

// gatherRecorded gathers the evidence of the recorded death, with its paths as they were.
func gatherRecorded(t *testing.T) *Evidence {
	t.Helper()
	const dir = "testdata/nan-abort"
	root, err := filepath.Abs(dir + "/root")
	if err != nil {
		t.Fatal(err)
	}
	actions, err := os.ReadFile(dir + "/actions.json")
	if err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/repos/1bit-systems/engine/actions/runs" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(actions)
	}))
	t.Cleanup(api.Close)

	const home = "/home/bcloud"
	units := root + home + "/.config/systemd/user/"
	u := &systemd.Unit{
		ID: "1bit-canonical.service", LoadState: "loaded", ActiveState: "active", SubState: "running", Result: "success", Type: "simple", Restart: "always",
		FragmentPath: units + "1bit-canonical.service", DropInPaths: []string{units + "1bit-canonical.service.d/hrx.conf"},
		MainPID: 9377, NRestarts: 1, InvocationID: "d21f8a0b6c3e4f59b1a7e80c94d3f672",
		ExecMainCode: 1, ExecMainStatus: 1, MainStarted: time.Date(2026, 10, 23, 10, 45, 29, 20e6, time.UTC), MainExited: time.Date(2026, 10, 23, 10, 45, 18, 342e6, time.UTC),
		SearchPath: []string{units},
	}
	settings, err := systemd.ReadSettings(u, systemd.Specifiers{'h': home})
	if err != nil {
		t.Fatal(err)
	}
	packages := []*store.Package{
		recordedPackage(t, dir+"/package-3092596.json", home, time.Date(2026, 10, 20, 1, 57, 0, 0, time.UTC)),
		recordedPackage(t, dir+"/package-7871c71d.json", home, time.Date(2026, 10, 22, 18, 0, 0, 0, time.UTC)),
	}
	e, err := Gather(t.Context(), GatherOptions{
		Host: recordedHost{fleet.Inspection{Service: fleet.Service{Unit: u.ID, Armed: &fleet.Armed{Package: packages[0].Name, Path: packages[0].Path}},
			Loaded: u, Settings: settings, Package: packages[0]}},
		Unit: u.ID, Scope: systemd.ScopeUser, Journal: recordedJournal(dir + "/journal.jsonl"),
		Packages: func(context.Context) ([]*store.Package, error) { return packages, nil },
		Root:     root, Sensors: gpu.Sensors{Root: root}, Program: "2026.44.0",
		CI:  &CI{Repository: "1bit-systems/engine", API: api.URL, Client: api.Client()},
		Now: time.Date(2026, 10, 23, 10, 58, 30, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.Files {
		e.Files[i].Path = strings.TrimPrefix(e.Files[i].Path, root)
	}
	for i := range e.Settings {
		e.Settings[i].File = strings.TrimPrefix(e.Settings[i].File, root)
	}
	return e
}

// TestRecordedReport is the report of a death that was recorded: everything that a person found out by hand stands in it.
func TestRecordedReport(t *testing.T) {
	r := Analyse(gatherRecorded(t))
	text := r.Markdown()
	golden := "testdata/nan-abort/report.md"
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("the report is not that of %s; go test -run TestRecordedReport -update writes it anew:\n%s", golden, firstDifference(string(want), text))
	}
	for _, fact := range []string{
		"2026-10-23 07:45:12 ADT (10:45:12Z)",
		"2026-10-23 07:45:18 ADT (10:45:18Z), as systemd saw the main process, 6.2 s after that",
		"exit status 1",
		"6 h 07 min; started 2026-10-23 01:38:05 ADT (04:38:05Z); the log's own clock stood at 6 h 07 min; 18.8 s of CPU time",
		"restart counter 1",
		"Slot 2 was at task 218, its first: selected by LRU (never used), `t_last = -1`, so it had never been used in this process.",
		"Slot 3 had finished task 187 1.1 s before (175 prompt tokens, 29 generated, with 190 graphs reused).",
		"151936 of 151936 logits are NaN, index range 0 to 151935, contiguous, not continuing, on slot 2, task 218",
		"common_sampler_sample <- server_context_impl::post_decode lambda <- iterate <- post_decode <- update_slots <- server_queue::start_loop <- llama_server",
		"`hrx-3092596`", "**Pins:** `engine 309259627`, `gpu-kernels 7562196`, `hrx-system 82804197bcbe`, `llama.cpp 00f2a68de`", "installed 2026-10-19 22:57:00 ADT",
		"`hrx-7871c71d 2026.43.0`, which also carries `engine#570`",
		"1bit-canonical.service.d/hrx.conf", "--parallel 4",
		"CWSR 0 (`amdgpu.cwsr_enable`)", "kernel `7.3.0-rc4-1bit-perfopt`",
		"[39940594897](https://github.com/1bit-systems/engine/actions/runs/39940594897)", "2026-10-23 10:39:01Z to 10:46:28Z (07:39:01 to 07:46:28 ADT)", "hw-gate.yml", "f061e5dfa1c9",
		"GTT 95.1 of 120.0 GiB free, MemAvailable 84.7 GiB (at the restart, 2026-10-23 07:45:29 ADT (10:45:29Z))",
		"Qwen3-Coder-30B-A3B",
		"**The log is incomplete:**", "journald dropped 214 messages",
		"path is not UTF-8: /v1/mod\\xe9\\xffles", "(the message is too long to be read)",
	} {
		if !strings.Contains(text, fact) {
			t.Errorf("the report does not say %q", fact)
		}
	}
	for _, no := range []string{"hf_abcdefgh", "39941200011", "39940000001", "testdata"} {
		if strings.Contains(text, no) {
			t.Errorf("the report says %q", no)
		}
	}
}

// TestRecordedJSON looks at the same facts as machines get them.
func TestRecordedJSON(t *testing.T) {
	e := gatherRecorded(t)
	r := Analyse(e)
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(Analyse(gatherRecorded(t)), "", "  ")
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("the same evidence gives another report: %v", err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	at := func(path string) any {
		var v any = doc
		for key := range strings.SplitSeq(path, ".") {
			switch x := v.(type) {
			case map[string]any:
				v = x[key]
			case []any:
				i := atoi(key)
				if i >= len(x) {
					return "(no such element)"
				}
				v = x[i]
			}
		}
		return v
	}
	for path, want := range map[string]any{
		"schema": 1.0, "unit": "1bit-canonical.service",
		"event":                          "9c1d27e5b04f4a7f8e3a61d2f5b7c801@20261023T104518Z",
		"signature":                      "nan-abort whole-vocabulary never-used-slot common_sampler_sample",
		"ending.at":                      "",
		"ending.code":                    "exited",
		"ending.status":                  1.0,
		"ending.result":                  "exit-code",
		"ending.cpu_seconds":             18.804112,
		"ending.pid":                     2133.0,
		"ending.log_uptime_seconds":      22025.96392,
		"restart.counter":                1.0,
		"restart.gave_up":                "",
		"restart.host.gtt_free_gib":      95.1,
		"restart.host.gtt_total_gib":     120.0,
		"restart.host.mem_available_gib": 84.7,
		"guard.0.generation":             2.0, "guard.0.count": 151936.0, "guard.0.of": 151936.0, "guard.0.first": 0.0, "guard.0.last": 151935.0,
		"guard.0.contiguous": true, "guard.0.continuing": false, "guard.0.whole_vocabulary": true, "guard.0.slot": 2.0, "guard.0.task": 218.0,
		"guard.1":    "(no such element)",
		"abort":      "/home/bcloud/wt/tsvchrx4/src/third_party/llama.cpp/common/sampling.cpp:620: HRX: NaN logits (engine#123)",
		"slots.2.id": 2.0, "slots.2.task": 218.0, "slots.2.state": "running", "slots.2.selected": "lru", "slots.2.never_used": true,
		"slots.3.task": 187.0, "slots.3.state": "finished", "slots.3.selected": "lcp", "slots.3.graphs_reused": 190.0,
		"slots.3.prompt_tokens": 175.0, "slots.3.tokens": 29.0, "slots.3.context": 262.0, "slots.3.similarity": 0.252,
		"server.slots": 4.0, "server.context": 8192.0, "server.kv_unified": true, "server.devices.0": "HRX0",
		"backtrace.0": "common_sampler_sample", "backtrace.1": "server_context_impl::post_decode lambda",
		"log_complete": false,
		"shape.entry":  "1bit", "shape.model": "/home/bcloud/models/Qwen3-4B-Q4_K_M.gguf", "shape.parallel": 4.0, "shape.context": 8192.0, "shape.kv_unified": true,
		"shape.env.HSA_USERPTR_FOR_PAGED_MEM": "0", "shape.env.HF_TOKEN": nil, "shape.neighbour": "ops",
		"evidence.package.id": "3092596", "evidence.package.pins.gpu-kernels": "7562196",
		"evidence.kernel": []any{}, "evidence.host_now.kernel_parameters.amdgpu.cwsr_enable": nil,
		"evidence.ci_runs.0.id": 39940594897.0, "evidence.ci_runs.1": "(no such element)",
	} {
		got := at(path)
		switch path {
		case "ending.at":
			when, err := time.Parse(time.RFC3339Nano, got.(string))
			if err != nil || !when.Equal(time.Date(2026, 10, 23, 10, 45, 12, 100040e3, time.UTC)) {
				t.Errorf("died at %v", got)
			}
			continue
		case "evidence.kernel":
			if list, ok := got.([]any); got != nil && (!ok || len(list) > 0) {
				t.Errorf("the kernel's log has events: %v", got)
			}
			continue
		}
		if got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if got := e.HostNow.Parameters["amdgpu.cwsr_enable"]; got != "0" {
		t.Errorf("cwsr_enable is %q", got)
	}
	if up := *r.Ending.UptimeS; up < 6*3600+7*60 || up > 6*3600+7*60+10 {
		t.Errorf("uptime %v s", up)
	}
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y || i >= len(a) || i >= len(b) {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, x, y)
		}
	}
	return ""
}

package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlacement(t *testing.T) {
	tests := map[string]struct {
		want  Placement
		onGPU bool
	}{
		"a-gpu-used.log": {Placement{Offloaded: 33, Layers: 33, NoGPU: true}, true}, // the warning is wrong
		"b-cpu-only.log": {Placement{Missing: []string{
			"failed to load /opt/eng/v2/lib/libggml-hip.so: libamdhip64.so.7: cannot open shared object file"}}, false},
		"c-partial.log": {Placement{Offloaded: 7, Layers: 33}, true},
	}
	for name, tt := range tests {
		raw, err := os.ReadFile(filepath.Join("testdata", "placement", name))
		if err != nil {
			t.Fatal(err)
		}
		var got Placement
		for _, ev := range eventsOf(string(raw)) {
			got.Add(ev)
			switch ev.Kind {
			case LogNaN, LogAbort, LogAlloc, LogDevice, LogBind:
				t.Errorf("%s: %s is a finding", name, ev.Kind)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if onGPU := got.Offloaded > 0; onGPU != tt.onGPU {
			t.Errorf("%s: on a GPU %v", name, onGPU)
		}
	}
	var p Placement
	for _, ev := range eventsOf("llama_model_load: using device CUDA0 (NVIDIA H200) - 143167 MiB free\nload_tensors: offloaded 3/3 layers to GPU\n") {
		p.Add(ev)
	}
	if diff := cmp.Diff(Placement{Offloaded: 3, Layers: 3, Devices: []string{"CUDA0"}}, p); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

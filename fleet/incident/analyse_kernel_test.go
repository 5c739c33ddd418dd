package incident

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/engine/gpu"
)

// The kernel's lines are told by whose they are, in each of the spellings of its driver.
func TestKernelLinesAreAttributed(t *testing.T) {
	entries := entriesOf(t, "== a"+strings.ReplaceAll(serverStart, "[20]", "[5100]")+`
		10:00:05.1 systemd llm.service: Main process exited, code=exited, status=1/FAILURE
		10:00:05.1 systemd llm.service: Failed with result 'exit-code'.`, false)
	for file, want := range map[string]struct {
		kinds   []string
		summary string
	}{
		"a-old.txt":    {[]string{"ours ring-timeout", "ours reset", "ours vram-lost"}, "blames it for a fault of the GPU (ring-timeout)"},
		"b-mid.txt":    {[]string{"other ring-timeout", "other scheduler", "other reset-failed"}, ""},
		"c-new.txt":    {[]string{"device ring-timeout", "device reset", "device vram-lost", "device wedged"}, ""},
		"d-soft.txt":   {[]string{"device soft-recovered", "device fence-fallback"}, ""},
		"e-fault.txt":  {[]string{"other page-fault", "other page-fault", "ours page-fault"}, "blames it for a fault of the GPU (page-fault)"},
		"f-benign.txt": {[]string{}, ""},
	} {
		text, err := os.ReadFile(filepath.Join("../../engine/gpu/testdata/kernel", file))
		if err != nil {
			t.Fatal(err)
		}
		var reader gpu.KernelReader
		var events []gpu.Event
		for line := range strings.Lines(string(text)) {
			events = append(events, reader.Feed(line)...)
		}
		events = append(events, reader.Flush()...)
		for i := range events {
			events[i].At = entries[0].At.Add(4 * time.Second)
		}
		r := Analyse(&Evidence{Unit: testUnit, Entries: entries, Kernel: events, Devices: []gpu.Device{{PCI: "0000:0b:00.0"}, {PCI: "0000:c4:00.0"}}})
		got := []string{}
		for _, k := range r.Kernel {
			got = append(got, k.Whose+" "+k.Kind)
		}
		if file == "c-new.txt" && len(got) > len(want.kinds) { // the last line names a process of ours
			got = got[:len(want.kinds)]
		}
		if diff := cmp.Diff(want.kinds, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", file, diff)
		}
		if want.summary != "" && !strings.Contains(r.Summary, want.summary) || want.summary == "" && strings.Contains(r.Summary, "blames") {
			t.Errorf("%s: %s", file, r.Summary)
		}
	}
}

// Lines of another time are not of this end, unless the kernel blames the service in them.
func TestKernelLinesOfAnotherTime(t *testing.T) {
	entries := entriesOf(t, "== a"+serverStart+`
		10:00:05.1 systemd llm.service: Main process exited, code=exited, status=1/FAILURE`, false)
	before := entries[0].At.Add(-24 * time.Hour)
	r := Analyse(&Evidence{Unit: testUnit, Entries: entries, Kernel: []gpu.Event{
		{Kind: gpu.KindReset, Fault: true, Device: "d", At: before, Text: "a reset"},
		{Kind: gpu.KindPageFault, Fault: true, Device: "d", PID: 20, At: before, Text: "a fault of ours"},
	}})
	if len(r.Kernel) != 1 || r.Kernel[0].Whose != KernelOurs {
		t.Errorf("the kernel's lines: %+v", r.Kernel)
	}
}

package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// The faults of a device are one finding; what recovered by itself is none; and a log that cannot be read is unknown.
func TestGPUFault(t *testing.T) {
	lines := []string{
		"[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, but soft recovered",
		"amdgpu 0000:c4:00.0: ring sdma0 timeout, signaled seq=3, emitted seq=7",
		"amdgpu 0000:c4:00.0: GPU reset begin!. Source:  3",
		"amdgpu 0000:c4:00.0: VRAM is lost due to GPU reset!",
		"amdgpu 0000:0b:00.0: amdgpu: [gfxhub0] retry page fault (src_id:0 ring:0 vmid:5 pasid:32772, for process llama-server pid 5100 thread llama-server pid 5100)",
		"[drm] PCIE GART of 512M enabled (table at 0x0000008000300000).",
	}
	l := &look{}
	l.Journal = func(_ context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) ([]string, error) {
		if !q.Kernel {
			t.Error("it is not the kernel's log that is asked for")
		}
		for _, line := range lines {
			if err := f(systemd.Entry{Message: line, At: time.Now()}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	var out []Finding
	if err := gpuFault().find(t.Context(), l, found(&out)); err != nil || len(out) != 2 {
		t.Fatalf("found %+v, %v", out, err)
	}
	if f := out[0]; f.Where != "0000:0b:00.0" || !strings.HasPrefix(f.What, "page-fault since the boot, the last one by llama-server (process 5100): ") || !strings.Contains(f.What, "retry page fault") {
		t.Errorf("%+v", f)
	}
	if f := out[1]; f.Where != "0000:c4:00.0" || !strings.HasPrefix(f.What, "ring-timeout, reset, vram-lost since the boot") {
		t.Errorf("%+v", f)
	}

	root := t.TempDir()
	l = &look{Options: Options{Root: root}}
	if err := gpuFault().find(t.Context(), l, found(&out)); err == nil || strings.Contains(err.Error(), "nil") {
		t.Errorf("without a log: %v", err)
	}
	kmsg := filepath.Join(root, "dev/kmsg")
	if err := errors.Join(os.MkdirAll(filepath.Dir(kmsg), 0o755), os.WriteFile(kmsg, []byte("6,1,5,-;all is well\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	out = nil
	if err := gpuFault().find(t.Context(), l, found(&out)); err != nil || len(out) > 0 {
		t.Errorf("of a quiet log: %+v, %v", out, err)
	}
}

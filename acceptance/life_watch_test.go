package acceptance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/1bit-systems/pkg/engine/gpu"
)

// What the kernel says of a server is read a moment later, when a server that
// the fault has killed is gone: it is still ours, and so is its device.
func TestKernelEventsOfAServerThatHasEnded(t *testing.T) {
	root := t.TempDir()
	proc := filepath.Join(root, "proc/5100")
	for _, dir := range []string{"fd", "fdinfo"} {
		if err := os.MkdirAll(filepath.Join(proc, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	client := "drm-driver:\tamdgpu\ndrm-client-id:\t30\ndrm-pdev:\t0000:c4:00.0\ndrm-memory-gtt:\t8 MiB\n"
	if err := os.WriteFile(filepath.Join(proc, "fdinfo/7"), []byte(client), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/dri/renderD128", filepath.Join(proc, "fd/7")); err != nil {
		t.Fatal(err)
	}
	h := &hostWatch{sensors: gpu.Sensors{Root: root}}
	h.seen([]int{5100})
	h.findDevices(t.Context())
	if err := os.RemoveAll(proc); err != nil {
		t.Fatal(err)
	}
	pids, devices := h.seen(nil)
	h.findDevices(t.Context())
	for ev, want := range map[gpu.Event]string{
		{PID: 5100}:               gpu.OursProcess,
		{PID: 5200}:               "",
		{Device: "0000:c4:00.0"}:  gpu.OursDevice,
		{Device: "0000:c1:00.0"}:  "",
		{Process: "llama-server"}: gpu.OursProcess,
	} {
		if got := ev.Ours(pids, []string{"llama-server"}, devices); got != want {
			t.Errorf("%+v: %q, want %q", ev, got, want)
		}
	}
}

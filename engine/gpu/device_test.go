package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeSMI answers as nvidia-smi does.
const fakeSMI = `case "$*" in
"--query-gpu=pci.bus_id,memory.used,memory.total,temperature.gpu,name --format=csv,noheader,nounits")
	echo "00000000:C1:00.0, 1234, 143771, 41, NVIDIA H200"
	echo "00000009:01:00.0, [N/A], [N/A], [N/A], NVIDIA GB10";;
"--query-compute-apps=gpu_bus_id,pid,used_gpu_memory --format=csv,noheader,nounits")
	echo "00000000:C1:00.0, 5200, 600"
	echo "00000000:C1:00.0, 90001, [N/A]";;
*) echo "unknown option $*"; exit 2;;
esac`

// host records one with an AMD and an NVIDIA GPU, a frame buffer, and programs that use them.
func host(t *testing.T) string {
	root := t.TempDir()
	amd := "sys/class/drm/card1/device/"
	for path, text := range map[string]string{
		amd + "uevent":                                                "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:1586\nPCI_SLOT_NAME=0000:c4:00.0\n",
		amd + "mem_info_vram_used":                                    "1073741824\n",
		amd + "mem_info_vram_total":                                   "4294967296\n",
		amd + "mem_info_gtt_used":                                     "107374182400\n",
		amd + "mem_info_gtt_total":                                    "125627793408\n",
		amd + "hwmon/hwmon3/name":                                     "amdgpu\n",
		amd + "hwmon/hwmon3/temp1_input":                              "61000\n",
		amd + "hwmon/hwmon3/temp2_input":                              "64500\n",
		amd + "hwmon/hwmon3/temp3_input":                              "garbage\n",
		"sys/class/drm/card1-DP-1/device/uevent":                      "PCI_SLOT_NAME=0000:c4:00.0\n",
		"sys/class/drm/card0/device/uevent":                           "DRIVER=simple-framebuffer\n",
		"sys/class/drm/card2/device/uevent":                           "DRIVER=nvidia\nPCI_SLOT_NAME=0000:C1:00.0\n",
		"sys/class/kfd/kfd/topology/nodes/0/gpu_id":                   "0\n",
		"sys/class/kfd/kfd/topology/nodes/0/properties":               "cpu_cores_count 16\nlocation_id 0\n",
		"sys/class/kfd/kfd/topology/nodes/1/gpu_id":                   "5257\n",
		"sys/class/kfd/kfd/topology/nodes/1/properties":               "simd_count 80\nlocation_id 50176\ndomain 0\ndrm_render_minor 128\n",
		"sys/class/kfd/kfd/proc/5100/vram_5257":                       "2097152\n",
		"sys/class/kfd/kfd/proc/5100/stats_5257/evicted_ms":           "1500\n",
		"sys/class/kfd/kfd/proc/5100/context_1/vram_5257":             "1048576\n",
		"sys/class/kfd/kfd/proc/5100/context_1/stats_5257/evicted_ms": "20\n",
		"sys/class/kfd/kfd/proc/pid:5100-id:2/stats_5257/evicted_ms":  "3\n",
		"sys/class/kfd/kfd/proc/5300/vram_5257":                       "0\n",
		"sys/class/kfd/kfd/proc/5300/stats_5257/evicted_ms":           "7\n",
		"proc/driver/nvidia/gpus/0000:c1:00.0/information":            "Model: \t\t NVIDIA H200\nDevice Minor: \t 0\n",
		"proc/stat": "cpu 1 2 3\nbtime 1700000000\n",
	} {
		write(t, root, path, text)
	}
	process(t, root, 5000, 1, "1bit\x00serve\x00", nil)
	process(t, root, 5100, 5000, "/lib/ld.so\x00llama-server\x00--api-key\x00hunter2\x00--token=abc\x00-m\x00x.gguf\x00", map[string]string{
		"3": "/dev/kfd", "7": "/dev/dri/renderD128", "8": "/dev/dri/renderD128", "9": "/dev/null"})
	process(t, root, 5200, 1, "python3\x00train.py\x00", map[string]string{"4": "/dev/nvidia0", "5": "/dev/nvidiactl"})
	process(t, root, 5300, 1, "", map[string]string{"3": "/dev/kfd"})
	process(t, root, 5400, 1, "sleep\x009\x00", map[string]string{"0": "/dev/null"})
	client := "pos:\t0\ndrm-driver:\tamdgpu\ndrm-client-id:\t30\ndrm-pdev:\t0000:c4:00.0\ndrm-total-vram:\t9 GiB\n" +
		"drm-resident-vram:\t512 KiB\ndrm-memory-vram:\t513 KiB\ndrm-memory-gtt: \t8 MiB\ndrm-memory-cpu: \t70 MiB\namd-evicted-vram:\t5 KiB\n"
	write(t, root, "proc/5100/fdinfo/7", client)
	write(t, root, "proc/5100/fdinfo/8", client) // the same opening once more
	return root
}

func process(t *testing.T, root string, pid, parent int, cmdline string, fds map[string]string) {
	t.Helper()
	dir := fmt.Sprintf("proc/%d/", pid)
	write(t, root, dir+"stat", fmt.Sprintf("%d (a ) name) S %d 1 1 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 250 9 9\n", pid, parent))
	write(t, root, dir+"comm", "worker\n")
	write(t, root, dir+"cmdline", cmdline)
	if err := os.MkdirAll(filepath.Join(root, dir, "fd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for fd, target := range fds {
		if err := os.Symlink(target, filepath.Join(root, dir, "fd", fd)); err != nil {
			t.Fatal(err)
		}
	}
}

func p[T any](v T) *T { return &v }

func TestDevices(t *testing.T) {
	root := host(t)
	amd := Device{PCI: "0000:c4:00.0", Driver: "amdgpu", VRAMUsedBytes: p(int64(1 << 30)), VRAMTotalBytes: p(int64(4 << 30)),
		GTTUsedBytes: p(int64(100 << 30)), GTTTotalBytes: p(int64(117 << 30)), TempC: p(64.5)}
	nvidia := Device{PCI: "0000:c1:00.0", Driver: "nvidia", Name: "NVIDIA H200", VRAMUsedBytes: p(int64(1234 << 20)), VRAMTotalBytes: p(int64(143771 << 20)), TempC: p(41.0)}
	got, err := Sensors{Root: root, SMI: script(t, root, "nvidia-smi", fakeSMI)}.Devices(t.Context())
	want := []Device{nvidia, amd, {PCI: "0009:01:00.0", Driver: "nvidia", Name: "NVIDIA GB10"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	broken := Sensors{Root: root, SMI: script(t, root, "broken", "echo NVIDIA-SMI has failed because; exit 9")}
	got, err = broken.Devices(t.Context())
	want = []Device{{PCI: "0000:c1:00.0", Driver: "nvidia"}, amd}
	if diff := cmp.Diff(want, got); diff != "" || err == nil || !strings.Contains(err.Error(), "has failed because") {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if got, err := (Sensors{Root: t.TempDir()}).Devices(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("a host without GPU: %v, %v", got, err)
	}
}

func TestProcesses(t *testing.T) {
	root := host(t)
	s := Sensors{Root: root, SMI: script(t, root, "nvidia-smi", fakeSMI)}
	started := time.Unix(1700000002, 500_000_000)
	want := []Process{
		{5100, started, "/lib/ld.so llama-server --api-key (masked) --token=(masked) -m x.gguf", []string{"0000:c4:00.0"}, p(int64(8<<20 + 512<<10))},
		{5200, started, "python3 train.py", []string{"0000:c1:00.0"}, p(int64(600 << 20))},
		{5300, started, "worker", nil, nil},
		{PID: 90001, Devices: []string{"0000:c1:00.0"}},
	}
	got, err := s.Processes(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	// What our front end started is ours.
	got, err = s.Residents(t.Context(), 5000, 5300)
	if diff := cmp.Diff([]Process{want[1], want[3]}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestEvictedMS(t *testing.T) {
	s := Sensors{Root: host(t)}
	for _, tt := range []struct {
		pids []int
		ms   int64
		ok   bool
	}{{[]int{5100}, 1523, true}, {[]int{5100, 5300, 1}, 1530, true}, {[]int{5200}, 0, false}, {nil, 0, false}} {
		if ms, ok := s.EvictedMS(tt.pids); ms != tt.ms || ok != tt.ok {
			t.Errorf("%v: %d %v", tt.pids, ms, ok)
		}
	}
}

// More memory than the fdinfo tells, as when a process may not be looked into.
func TestComputeDriverAlone(t *testing.T) {
	root := host(t)
	if err := os.RemoveAll(filepath.Join(root, "proc/5100/fdinfo")); err != nil {
		t.Fatal(err)
	}
	got, err := Sensors{Root: root}.Processes(t.Context())
	if err != nil || len(got) != 3 || got[0].PID != 5100 || *got[0].Bytes != 3<<20 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestComputeDriverIDs(t *testing.T) {
	root := host(t)
	write(t, root, "sys/class/kfd/kfd/topology/nodes/2/gpu_id", "77\n")
	write(t, root, "sys/class/kfd/kfd/topology/nodes/2/properties", "location_id 1322\ndomain 1\n")
	if diff := cmp.Diff(map[string]string{"5257": "0000:c4:00.0", "77": "0001:05:05.2"}, Sensors{Root: root}.kfdDevices()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestBusID(t *testing.T) {
	for in, want := range map[string]string{"00000000:C1:00.0": "0000:c1:00.0", "0000:18:00": "0000:18:00.0", "00010000:01:00.0": "10000:01:00.0", "x": "x", "": ""} {
		if got := busID(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzClient(f *testing.F) {
	f.Add("drm-pdev:\t0000:c4:00.0\ndrm-client-id: 3\ndrm-memory-vram:\t1 KiB\ndrm-resident-gtt: 7 GiB")
	f.Add("drm-pdev:x\ndrm-resident-vram:9223372036854775807\ndrm-resident-vram0:-1 KiB\ndrm-memory-local0: 1 TiB")
	f.Fuzz(func(t *testing.T, text string) {
		if c, ok := parseClient(text); ok && c.bytes != nil && *c.bytes < 0 {
			t.Fatalf("%+v", c)
		}
	})
}

func FuzzSMI(f *testing.F) {
	f.Add([]byte("00000000:C1:00.0, 5200, 600\nNo running processes found\n, , \n"), 3)
	f.Add([]byte("a, 1, [N/A], x, NVIDIA, Inc\n"), 5)
	f.Fuzz(func(t *testing.T, out []byte, fields int) {
		if fields < 1 || fields > 9 {
			return
		}
		for _, row := range smiRows(out, fields) {
			if len(row) != fields {
				t.Fatalf("%q", row)
			}
			if n := mebibytes(row[0]); n != nil && *n < 0 {
				t.Fatalf("%q: %d", row[0], *n)
			}
		}
	})
}

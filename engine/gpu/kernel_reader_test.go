package gpu

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readAll makes events of a whole log.
func readAll(log string) []Event {
	var r KernelReader
	var events []Event
	for line := range strings.Lines(log) {
		events = append(events, r.Feed(line)...)
	}
	return append(events, r.Flush()...)
}

// brief is an event in short: kind, device, process, whose it is.
func brief(e Event, pids []int, devices []string) string {
	words := []string{e.Kind}
	if !e.Fault {
		words = append(words, "(no fault)")
	}
	words = append(words, e.Device)
	if e.PID != 0 || e.Process != "" {
		words = append(words, strings.TrimSpace(e.Process+" "+strings.TrimPrefix(itoa(e.PID), "0")))
	}
	if ours := e.Ours(pids, nil, devices); ours != "" {
		words = append(words, "= our "+ours)
	}
	return strings.Join(words, " ")
}

// Recorded logs of three generations: what is ours, somebody else's, a warning, nothing.
func TestKernelLogs(t *testing.T) {
	pids, devices := []int{5100}, []string{"0000:0b:00.0", "0000:c4:00.0"}
	tests := map[string][]string{
		"a-old": { // the reset "succeeded"
			"ring-timeout 0000:0b:00.0 llama-server 5100 = our process",
			"reset 0000:0b:00.0 llama-server 5100 = our process",
			"vram-lost 0000:0b:00.0 llama-server 5100 = our process",
		},
		"b-mid": { // all of it is the desktop's
			"ring-timeout 0000:0b:00.0 desktop-shell 901",
			"scheduler 0000:0b:00.0 desktop-shell 901",
			"reset-failed 0000:0b:00.0 desktop-shell 901",
		},
		"c-new": { // no process is blamed; one that cannot be suspended is a victim
			"ring-timeout 0000:c4:00.0 = our device",
			"reset 0000:c4:00.0 = our device",
			"vram-lost 0000:c4:00.0 = our device",
			"wedged 0000:c4:00.0 = our device",
			"suspend 0000:c4:00.0 = our device",
		},
		"d-soft": {
			"soft-recovered (no fault)  = our device",
			"fence-fallback (no fault) 0000:0b:00.0 = our device",
		},
		"e-fault": { // three faults, one ours
			"page-fault 0000:0b:00.0 Engine::WorkerC 6200",
			"page-fault 0000:0b:00.0 (driver)",
			"page-fault 0000:0b:00.0 llama-server 5100 = our process",
		},
		"f-benign": nil,
	}
	for name, want := range tests {
		log, err := os.ReadFile(filepath.Join("testdata/kernel", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range readAll(string(log)) {
			got = append(got, brief(e, pids, devices))
		}
		// Which of several devices is flushed first says nothing.
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
		for _, e := range readAll(string(log)) {
			if ours := e.Ours([]int{77}, nil, []string{"0000:99:00.0"}); ours != "" && e.Device != "" {
				t.Errorf("%s: %s is ours on another device", name, e.Kind)
			}
		}
	}
}

func TestKernelLines(t *testing.T) {
	const at = "amdgpu 0000:c5:00.0: amdgpu: "
	tests := map[string][]string{
		// One event a fault, whatever it has to say; the process on the next line.
		at + "[gfxhub] page fault (src_id:0 ring:153 vmid:8 pasid:32771)\n" +
			at + " Process VLLM::EngineCor pid 2419 thread VLLM::EngineCor pid 2419\n" +
			at + "  in page starting at address 0x00007f58f8001000 from client 10\n" +
			at + "GCVM_L2_PROTECTION_FAULT_STATUS:0x00800932\n" + at + "\t Faulty UTCL2 client ID: CPF (0x4)\n" +
			at + "MES failed to respond to msg=REMOVE_QUEUE\n" + at + "Failed to evict queue 1\n" + at + "GPU reset begin!\n": {
			"page-fault 0000:c5:00.0 VLLM::EngineCor 2419", "scheduler 0000:c5:00.0 VLLM::EngineCor 2419",
			"queue 0000:c5:00.0 VLLM::EngineCor 2419", "reset 0000:c5:00.0 VLLM::EngineCor 2419"},
		at + "[gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32771)\n" + at + " in process x pid 7 thread x pid 7)\n": {"page-fault 0000:c5:00.0 x 7"},
		at + "GCVM_L2_PROTECTION_FAULT_STATUS:0x00800932\n":                                                               {"page-fault 0000:c5:00.0"},
		// Two devices at once.
		"amdgpu 0000:83:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:40 vmid:8 pasid:32776)\n" +
			"amdgpu 0000:03:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:40 vmid:8 pasid:32775)\n" +
			"amdgpu 0000:83:00.0: amdgpu:  Process a pid 1 thread a pid 1\namdgpu 0000:03:00.0: amdgpu:  Process b pid 2 thread b pid 2\n": {
			"page-fault 0000:03:00.0 b 2", "page-fault 0000:83:00.0 a 1"},
		// A name cannot pass for another process.
		at + "ring gfx timeout, signaled seq=1, emitted seq=2\n" + at + "Process information: process a pid 5 thread pid 901 thread b pid 930\n": {"ring-timeout 0000:c5:00.0 a pid 5 thread 901"},
		// What comes long after has another cause.
		"[ 10.0] " + at + "ring gfx timeout, signaled seq=1, emitted seq=2\n[ 10.0] " + at + " Process a pid 9 thread a pid 9\n[ 400.0] " + at + "GPU reset begin!\n":                          {"ring-timeout 0000:c5:00.0 a 9", "reset 0000:c5:00.0"},
		"Nov 30 23:59:50 h kernel: " + at + "ring gfx timeout, x\nNov 30 23:59:50 h kernel: " + at + " Process a pid 9 thread a pid 9\nDec 01 00:00:05 h kernel: " + at + "GPU reset begin!\n": {"ring-timeout 0000:c5:00.0 a 9", "reset 0000:c5:00.0 a 9"},
		at + "GPU reset begin!. Source:  3\n" + at + "MODE2 reset\n" + at + "GPU reset succeeded, trying to resume\n":                                                                          {"reset 0000:c5:00.0"},
		at + "GPU reset(9) failed\n" + at + "GPU reset end with ret = -22\n":                                                                                                                   {"reset-failed 0000:c5:00.0", "reset-failed 0000:c5:00.0"},
		at + "[drm] device wedged, needs recovery\n" + at + "device lost from bus!\n":                                                                                                          {"wedged 0000:c5:00.0", "lost 0000:c5:00.0"},
		at + "MES(1) failed to respond to msg=SUSPEND\n[drm:mes_v11_0_submit_pkt_and_poll_completion.constprop.0 [amdgpu]] *ERROR* MES failed to response msg=14\n":                            {"scheduler 0000:c5:00.0", "scheduler 0000:c5:00.0"},
		"amdgpu 0000:15:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!\n":                                                                                           {"ecc 0000:15:00.0"},
		"[229652.878954] amdgpu: Freeing queue vital buffer 0x70db22c00000, queue evicted\n":                                                                                                   {"evict (no fault) "},
		"[1.5] Evicting pid 5100\n": {"evict (no fault)  5100 = our process"},
		"amdgpu: SVM mapping failed, exceeds resident system memory limit\namdgpu: init_user_pages: Failed to get user pages: -1\n": {"memory (no fault) ", "memory (no fault) "},
		"amdgpu: Failed to suspend process pid 5100\n": {"suspend  5100 = our process"},
		// NVIDIA.
		"NVRM: Xid (PCI:0000:03:00): 31, pid=5100, name=llama-server, channel 0x00000019, intr 10000000. MMU Fault: ENGINE GRAPHICS GPC0 faulted @ 0x32_0134b000.\n": {"xid-31 0000:03:00.0 llama-server 5100 = our process"},
		"NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\nNVRM: GPU at PCI:0000:18:00.0 has fallen off the bus.\n":      {"xid-79 0000:18:00.0"},
		"NVRM: Xid (PCI:0000:c1:00 GPU-I:02 GPU-CI:00): 13, pid=77, name=python3, Graphics SM Warp Exception\n":                                                      {"xid-13 0000:c1:00.0 python3 77"},
		"NVRM: Xid (0000:01:00): 31, Ch 0000000b, engmask 00000120, intr 10000000\n":                                                                                 {"xid-31 0000:01:00.0"},
		"NVRM: Xid (PCI:0000:dc:00): 45, pid=5100, name=llama-server, Ch 00000001\n":                                                                                 {"xid-45 (no fault) 0000:dc:00.0 llama-server 5100 = our process"},
		"NVRM: Xid (PCI:0000:b9:00): 74, pid=<unknown>, name=<unknown>, NVLink: fatal error detected on link 6(0x10000, 0x0)\n":                                      {"xid-74 0000:b9:00.0"},
		// Nothing: other devices' drivers, programs that say the words.
		"radeon 0000:01:00.0: ring 0 stalled for more than 10000msec\n[drm] Initialized i915\nusb 1-1: reset high-speed USB device\n": nil,
		"Nov 14 17:21:23 h llama-server[12]: prompt: amdgpu 0000:c4:00.0: GPU reset begin!\n":                                         nil,
		"Nov 14 17:21:23 h llama[12]: 10:00:00 h kernel: amdgpu 0000:c4:00.0: GPU reset begin!\n":                                     nil,
		"12,7,5,-;amdgpu 0000:c4:00.0: GPU reset begin!\n":                                                                            nil, // a program wrote it
		"workqueue: amdgpu_amdkfd_restore_userptr_worker [amdgpu] hogged CPU for >10000us 7 times\n":                                  nil,
		"amdgpu 0000:c4:00.0: amdgpu: ring sdma0 uses VM inv eng 12 on hub 0\n":                                                       nil,
	}
	for log, want := range tests {
		var got []string
		for _, e := range readAll(log) {
			got = append(got, brief(e, []int{5100}, nil))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s(-want +got)\n%s", log, diff)
		}
	}
}

// Every way in which a line is handed down.
func TestKernelLinePrefixes(t *testing.T) {
	const msg = "amdgpu 0000:c4:00.0: ring sdma0 timeout, signaled seq=3, emitted seq=7"
	placed := time.Date(2026, 6, 6, 2, 26, 53, 13816000, time.UTC)
	for prefix, at := range map[string]time.Time{
		"":                                {},
		"[ 1201.100000] ":                 {},
		"[    5.012345][  T123] ":         {},
		"[Thu Sep 10 14:00:01 2026] ":     {},
		"kern  :err   : [ 1201.100000] ":  {},
		"kvě 11 10:00:01 node-b kernel: ": {},
		"11月 10 10:00:01 node-b kernel: [   7.5] ":           {},
		"Thg 1 02 10:00:01.123 node-b kernel: ":              {},
		"[ 1201.100000] node-b kernel: ":                     {},
		"2026-06-06T10:26:53.013816+08:00 node-b kernel: ":   placed,
		"2026-06-06T02:26:53,013816+00:00 ":                  placed,
		"2026-06-06T02:26:53.013816Z node-b kernel: [ 7.5] ": placed,
		"3,1234,7500000,-;":                                  {},
		"3,1234,7500000,c,caller=T12;":                       {},
		"\x1b[32m[ 1201.1] \x1b[0m":                          {},
	} {
		events := readAll(prefix + msg + "\r\n")
		if len(events) != 1 || events[0].Text != msg || !events[0].At.Equal(at) {
			t.Errorf("%q: %+v", prefix, events)
		}
	}
}

func TestOurs(t *testing.T) {
	pids, names, devices := []int{10, 11}, []string{"test-backend-ops"}, []string{"0000:0b:00.0"}
	for want, events := range map[string][]Event{
		OursProcess: {{PID: 11}, {PID: 10, Device: "0000:99:00.0"}, {Process: "test-backend-op"}},
		OursDevice:  {{Device: "0000:0b:00.0"}, {}},
		"":          {{PID: 12, Device: "0000:0b:00.0", Process: "test-backend-op"}, {Process: "Xorg", Device: "0000:0b:00.0"}, {Device: "0000:0c:00.0"}, {Device: "0000:0b:00.0", Process: Driver}},
	} {
		for _, e := range events {
			if got := e.Ours(pids, names, devices); got != want {
				t.Errorf("%+v: %q, want %q", e, got, want)
			}
		}
	}
	if (Event{}).Ours(pids, names, nil) != "" {
		t.Error("who uses no device is blamed")
	}
}

// A storm of lines takes no memory.
func TestKernelReaderIsBounded(t *testing.T) {
	var r KernelReader
	n := 0
	for i := range 5000 {
		n += len(r.Feed("amdgpu " + busID("0000:"+hex(i)+":00.0") + ": GPU reset begin!" + strings.Repeat("x", 4096)))
		r.Feed("amdgpu 0000:00:00.0: amdgpu: and more " + strings.Repeat("y", 4096))
	}
	if len(r.open) > maxOpen || len(r.blamed) > maxOpen || n < 4900 {
		t.Errorf("%d open, %d blamed, %d told", len(r.open), len(r.blamed), n)
	}
	for _, e := range r.open {
		if len(e.Text) > maxLines*(maxLine+1) {
			t.Errorf("a text of %d bytes", len(e.Text))
		}
	}
}

func FuzzKernelReader(f *testing.F) {
	for _, path := range glob("testdata/kernel/*.txt") {
		log, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(log))
	}
	f.Add("NVRM: Xid (PCI:0000:03:00): 31, pid=99999999999999999999, name=\xff, x\n12,1,1,-;Evicting pid 7")
	f.Add("[drm] VRAM is lost due to GPU reset!\namdgpu 0000:0b:00.0: GPU reset begin!\n[drm] x")
	f.Fuzz(func(t *testing.T, log string) {
		lines := strings.Count(log, "\n") + 1
		events := readAll(log)
		if len(events) > lines {
			t.Fatalf("%d events of %d lines", len(events), lines)
		}
		for _, e := range events {
			if e.Kind == "" || e.Text == "" || e.PID < 0 || len(e.Process) > 15 {
				t.Fatalf("%+v", e)
			}
			if e.PID == 0 && e.Process == "" && e.Ours([]int{1}, nil, []string{e.Device}) != OursDevice {
				t.Fatalf("nobody is blamed and the device is not ours: %+v", e)
			}
		}
	})
}

func TestFeedMessage(t *testing.T) {
	at := time.Date(2026, 10, 23, 10, 45, 12, 250000000, time.UTC)
	r := KernelReader{}
	done := r.FeedMessage("amdgpu 0000:c4:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=1, emitted seq=2", at)
	done = append(done, r.FeedMessage("amdgpu 0000:c4:00.0: amdgpu: Process information: process llama-server pid 77 thread llama-server pid 78", at)...)
	done = append(done, r.FeedMessage("usb 1-1: new device", at)...)
	done = append(done, r.Flush()...)
	if len(done) != 1 || done[0].Kind != KindRingTimeout || done[0].PID != 77 || !done[0].At.Equal(at) {
		t.Errorf("%+v", done)
	}
}

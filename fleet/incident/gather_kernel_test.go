package incident

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// kernelLines are entries of the kernel's, a second apart.
func kernelLines(at time.Time, text string) []systemd.Entry {
	var entries []systemd.Entry
	for line := range strings.Lines(text) {
		entries = append(entries, systemd.Entry{At: at, Message: strings.TrimRight(line, "\n"), Fields: map[string]string{"_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0"}})
		at = at.Add(time.Second)
	}
	return entries
}

func TestOOMKills(t *testing.T) {
	at := stageNow.Add(-time.Minute)
	for _, test := range []struct {
		name, lines string
		want        []OOMKill
	}{
		{"a limit", `llama-server invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=200
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=user.slice,mems_allowed=0,oom_memcg=/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service,task_memcg=/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service,task=llama-server,pid=4711,uid=1000
Memory cgroup out of memory: Killed process 4711 (llama-server) total-vm:1048576kB, anon-rss:65000kB, file-rss:1000kB, shmem-rss:0kB, UID:1000 pgtables:300kB oom_score_adj:200
`, []OOMKill{{PID: 4711, Process: "llama-server", Group: "/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service", Task: "/user.slice/user-1000.slice/user@1000.service/app.slice/llm.service"}}},
		{"the host", `oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/x.service,task=we, (ird)=x,pid=12,uid=0
Out of memory: Killed process 12 (we, (ird)=x) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0
`, []OOMKill{{PID: 12, Process: "we, (ird)=x", Task: "/system.slice/x.service"}}},
		{"a whole group", `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/a.slice,task_memcg=/a.slice/llm.service,task=llama-server,pid=7,uid=0
Memory cgroup out of memory: Killed process 7 (llama-server) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0
Tasks in /a.slice/llm.service are going to be killed due to memory.oom.group set
Memory cgroup out of memory: Killed process 8 (1bit) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0
`, []OOMKill{{PID: 7, Process: "llama-server", Group: "/a.slice", Task: "/a.slice/llm.service"}, {PID: 8, Process: "1bit", Group: "/a.slice", Task: "/a.slice/llm.service"}}},
		{"an older kernel", "Out of memory: Killed process 9 (x) UID 0, total-vm:1kB, anon-rss:1kB\nOut of memory: Killed process 10 (y), UID 5, total-vm:1kB\n",
			[]OOMKill{{PID: 9, Process: "x"}, {PID: 10, Process: "y"}}},
		{"words of others", "audit: Killed process 9 (x) total-vm\nOut of memory: Kill process 3 (x) score 5 or sacrifice child\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := oomKills(kernelLines(at, test.lines))
			if d := cmp.Diff(test.want, got, cmpopts.IgnoreFields(OOMKill{}, "At", "Text")); d != "" {
				t.Error(d)
			}
			for _, k := range got {
				if !strings.Contains(test.lines, k.Text) || k.At.Before(at) {
					t.Errorf("%+v", k)
				}
			}
		})
	}
}

// The window of the kernel's log has GPU events and kills; what programs wrote into it has not happened.
func TestGatherKernel(t *testing.T) {
	end := stageNow.Add(-time.Minute)
	s := &stageHost{inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}}}
	s.life("a", end.Add(-time.Hour*3), end, "abort")
	s.journal = append(s.journal, kernelLines(end.Add(-2*time.Hour), "amdgpu 0000:c4:00.0: amdgpu: GPU reset begin!\n")...) // before the window
	s.journal = append(s.journal, kernelLines(end.Add(-10*time.Second), `amdgpu 0000:c4:00.0: amdgpu: ring comp_1.0.0 timeout, signaled seq=10, emitted seq=12
amdgpu 0000:c4:00.0: amdgpu: Process information: process llama-server pid 77 thread llama-server pid 77
usb 1-1: new high-speed USB device
Memory cgroup out of memory: Killed process 77 (llama-server) total-vm:1kB, anon-rss:1kB
`)...)
	forged := kernelLines(end, "amdgpu 0000:c4:00.0: amdgpu: VRAM is lost due to GPU reset!\nOut of memory: Killed process 1 (init) total-vm:1kB\n")
	for i := range forged {
		forged[i].Fields["SYSLOG_FACILITY"] = "1"
	}
	s.journal = append(s.journal, forged...)
	e := s.gather(t, nil)
	if len(e.Kernel) != 1 || e.Kernel[0].Kind != gpu.KindRingTimeout || e.Kernel[0].PID != 77 || !e.Kernel[0].At.Equal(end.Add(-10*time.Second)) {
		t.Errorf("%+v", e.Kernel)
	}
	if len(e.OOM) != 1 || e.OOM[0].PID != 77 || len(e.Kernels) != 3 {
		t.Errorf("%+v, %d lines", e.OOM, len(e.Kernels))
	}
}

// A GPU that hangs for hours fills nothing.
func TestGatherKernelIsBounded(t *testing.T) {
	end := stageNow.Add(-time.Minute)
	s := &stageHost{inspection: &fleet.Inspection{Service: fleet.Service{Unit: stageUnit}}}
	s.life("a", end.Add(-time.Hour*3), end, "abort")
	for i := range 5000 {
		s.journal = append(s.journal, kernelLines(end.Add(time.Duration(i-5000)*10*time.Millisecond), "amdgpu 0000:c4:00.0: amdgpu: ring gfx timeout, signaled seq=1, emitted seq=2\n")...)
	}
	e := s.gather(t, nil)
	if len(e.Kernels) > keepKernel || len(e.Kernel) > keepEvents || !strings.Contains(strings.Join(e.Missing, "\n"), "the last 1000 are kept") {
		t.Errorf("%d lines, %d events, %q", len(e.Kernels), len(e.Kernel), e.Missing)
	}
}

func FuzzOOMKills(f *testing.F) {
	f.Add("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/a/b,task=x,pid=7,uid=0\nMemory cgroup out of memory: Killed process 7 (x) total-vm:1kB\n")
	f.Add("Out of memory: Killed process 99999999999999999999 (()) total-vm")
	f.Add("Tasks in  are going to be killed due to memory.oom.group set\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, k := range oomKills(kernelLines(stageNow, text)) {
			if k.PID < 0 || !strings.Contains(text, k.Process) || !strings.Contains(text, k.Group) || !strings.Contains(text, k.Task) {
				t.Errorf("%+v", k)
			}
		}
	})
}

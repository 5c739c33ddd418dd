package testhost_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/internal/testhost"
)

// In a machine MemoryMax= is enforced, systemd and the kernel say so, in both managers.
func TestMachineEnforcesMemory(t *testing.T) {
	testhost.InMachine(t, 512<<20, func(t *testing.T, m testhost.Machine) {
		for _, manager := range [][]string{{"--system"}, {"--user", "--machine=" + m.User + "@"}} {
			run := append([]string{"systemd-run", "--wait", "--unit=eater", "-pMemoryMax=20M"}, manager...)
			out, err := exec.Command(run[0], append(run[1:], "dd", "if=/dev/zero", "of=/dev/null", "bs=100M", "count=1")...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "oom-kill") {
				t.Errorf("%v: %v\n%s", manager, err, out)
			}
		}
		if out, err := exec.Command("journalctl", "-k", "--grep=Memory cgroup out of memory: Killed process").CombinedOutput(); err != nil {
			t.Errorf("the kernel's log: %v\n%s", err, out)
		}
	})
}

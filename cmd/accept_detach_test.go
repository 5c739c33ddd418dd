package cmd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/procfs"
)

// A soak that goes on by itself would go on when the claim under which it was started is over.
func TestNoDetachedSoakUnderAClaim(t *testing.T) {
	ticks, _ := engine.StartTicks("/proc", os.Getpid())
	boot := procfs.FirstLine("/proc/sys/kernel/random/boot_id")
	a := &app{environ: []string{fmt.Sprintf("ONEBIT_CLAIM=%d-%d-%s", os.Getpid(), ticks, boot)}}
	err := a.detachSoak(t.Context(), "a-package", t.TempDir(), nil)
	if err == nil || !strings.Contains(err.Error(), "outlive the claim") || !strings.Contains(err.Error(), "leave --detach out") {
		t.Errorf("under a claim: %v", err)
	}
}

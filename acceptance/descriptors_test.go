package acceptance

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
)

func TestRunnersOwnTrouble(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.EMFILE: true, syscall.EADDRNOTAVAIL: true, syscall.ENOBUFS: true,
		syscall.ECONNREFUSED: false, syscall.ECONNRESET: false, io.EOF: false,
	} {
		if got := runnersOwn(fmt.Errorf("dial tcp: %w", err)); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

func TestDescriptors(t *testing.T) {
	p := fakePackage(t, "works")
	if err := fakePlan(t, p, "", "").checkDescriptors(); err != nil {
		t.Error(err)
	}
	plan := fakePlan(t, p, "", "")
	plan.Load.InFlight = 1 << 30
	if err := plan.checkDescriptors(); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("a plan of too many requests at once: %v", err)
	}
}

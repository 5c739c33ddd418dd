package acceptance

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// runnersOwn tells whether a request failed for what this host or this process
// lacks, and not for anything that the server did.
func runnersOwn(err error) bool {
	for _, lack := range []error{unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EADDRNOTAVAIL} {
		if errors.Is(err, lack) {
			return true
		}
	}
	return false
}

// Descriptors that a run needs: its own, and for each request in flight the
// connection and what may be left of the one before.
const (
	ownDescriptors     = 48
	requestDescriptors = 2
)

// checkDescriptors refuses a plan that has more in flight than this process may
// have connections. The error wraps ErrPlan.
func (p *Plan) checkDescriptors() error {
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &have); err != nil {
		return fmt.Errorf("look how many files may be open: %w", err)
	}
	most := 0
	for _, l := range p.Lives() {
		most = max(most, l.Load.InFlight)
	}
	if need := uint64(ownDescriptors + requestDescriptors*most); have.Cur < need {
		return fmt.Errorf("%w: load.in_flight: %d requests at once need %d open files, and %d are allowed: raise the limit (ulimit -n %[3]d)",
			ErrPlan, most, need, have.Cur)
	}
	return nil
}

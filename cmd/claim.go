package cmd

import (
	"cmp"
	"errors"
	"io/fs"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/engine/gpu"
)

func newClaimCommand(a *app) *cobra.Command {
	c := group("claim", "Take turns at the GPU")
	c.AddCommand(newClaimRunCommand(a), newClaimStatusCommand(a), newClaimGuardCommand(a))
	return c
}

// claims is the lock and the memory floor of this host. They belong to the host: where the configuration in force says
// nothing of them, that of the system does, so that its users and sudo share one lock.
func (a *app) claims() (lock claim.Lock, floorGiB float64, err error) {
	c := a.config
	if c.ClaimLock == "" || c.ClaimFloorGiB == nil {
		host, err := a.readConfig(systemConfigFile, false, pflag.NewFlagSet("", pflag.ContinueOnError))
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return lock, 0, err
		}
		c.ClaimLock = cmp.Or(c.ClaimLock, host.ClaimLock)
		c.ClaimFloorGiB = cmp.Or(c.ClaimFloorGiB, host.ClaimFloorGiB)
	}
	floorGiB = claim.DefaultFloorGiB
	if c.ClaimFloorGiB != nil {
		floorGiB = *c.ClaimFloorGiB
	}
	return claim.Lock{Path: cmp.Or(c.ClaimLock, claim.DefaultPath)}, floorGiB, nil
}

// sensors reads this host's GPUs.
func (a *app) sensors() gpu.Sensors {
	var s gpu.Sensors
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		s.SMI = path
	}
	return s
}

// claimError gives an error the exit status of a wrapper's own, which its command's are told from.
type claimError struct {
	err  error
	code int
}

func (e *claimError) Error() string { return e.err.Error() }
func (e *claimError) Unwrap() error { return e.err }

// ownError is an error of claim run itself, whatever its kind.
func ownError(err error) error {
	var has *claimError
	if err == nil || errors.As(err, &has) || errors.As(err, new(statusError)) {
		return err
	}
	return &claimError{err, claim.ExitFailed}
}

// claimHints say what to do where the message does not.
var claimHints = []struct {
	is   error
	hint string
}{
	{claim.ErrBusy, "1bit claim status shows who waits; without --wait it is waited as long as it takes"},
	{claim.ErrMemory, "1bit claim status shows who has a GPU open"},
}

// claimHint is what to do about an error of claim run.
func claimHint(err error) string {
	for _, h := range claimHints {
		if errors.Is(err, h.is) {
			return h.hint
		}
	}
	return ""
}

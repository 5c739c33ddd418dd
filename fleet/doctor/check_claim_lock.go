package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/internal/procfs"
)

// claimLock looks whether work can take its turn on the GPU.
func claimLock() Check {
	return Check{
		Name:   "claim-lock",
		Reason: "Work that cannot take the claim lock, waits behind a claim whose time is over or finds too little memory does not start.",
		Remedy: "Name a lock file that every user of the host may open, with claim_lock in the configuration file.",
		find: func(_ context.Context, l *look, add adder) error {
			lock := l.Claim
			if lock.Path == "" {
				lock.Path = claim.DefaultPath
			}
			if err := lock.Usable(); err != nil {
				remedy := ""
				if errors.Is(err, fs.ErrPermission) {
					remedy = fmt.Sprintf("echo 'f %s 0666' | sudo tee /etc/tmpfiles.d/1bit-gpu.conf && sudo systemd-tmpfiles --create /etc/tmpfiles.d/1bit-gpu.conf", lock.Path)
				}
				add(lock.Path, remedy, "%v", err)
				return nil
			}
			if kib, ok := procfs.Counter(l.path("proc/meminfo"), "MemAvailable:"); ok && l.ClaimFloorGiB > 0 {
				if gib := float64(kib) / (1 << 20); gib < l.ClaimFloorGiB {
					add("", "end what holds the memory: 1bit claim status lists the processes that use the GPU", "%.1f GiB of memory are available, and a claim wants %.1f GiB (claim_floor_gib): claims are refused now", gib, l.ClaimFloorGiB)
				}
			}
			holder, held, err := lock.Holder()
			if _, ok := procfs.Counter(l.path("proc/meminfo"), "MemAvailable:"); !ok && l.ClaimFloorGiB > 0 {
				return errors.Join(errors.New("/proc/meminfo does not say how much memory is available"), err)
			}
			if err != nil {
				return fmt.Errorf("who holds %s: %w", filepath.Clean(lock.Path), err)
			}
			if held && holder != nil && !holder.Until.IsZero() && l.Now.After(holder.Until) {
				add(lock.Path, fmt.Sprintf("ask %s to end it, or end process %d and what it started", holder.User, holder.PID),
					"the claim %q of %s should have ended at %s", holder.Label, holder.User, holder.Until.Local().Format("2006-01-02 15:04:05"))
			}
			return nil
		},
	}
}

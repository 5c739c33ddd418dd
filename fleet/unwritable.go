package fleet

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayWrite refuses what this account may not do in the unit's drop-in folder, or in the one that it would be made in.
func (h *Host) mayWrite(unit string) error {
	dir := filepath.Clean(h.dropInDir(unit))
	for {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		switch parent := filepath.Dir(dir); {
		case errors.Is(err, unix.ENOENT) && parent != dir:
			dir = parent
		case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
			return unwritable(dir, err)
		default:
			return nil // what else stands in the way says so itself
		}
	}
}

// unwritable adds to the error of a write below dir what to do about it. The disk's owner has to act; nothing here
// can.
func unwritable(dir string, err error) error {
	remedy := ""
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.EROFS):
		remedy = "it is on a file system that is mounted read-only: remount it for writing (mount -o remount,rw), or use units in a folder that can be written (--scope user)"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		remedy = "this account may not write there: act as the account that owns it (sudo for units of the system), or hand the switch to its owner with: 1bit pkg propose UNIT ID --out FILE"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "there is no room: free some (1bit pkg gc --dry-run says what is not needed); a rollback needs none"
	default:
		return err
	}
	return fmt.Errorf("write to the folder %s: %w; %s", dir, err, remedy)
}

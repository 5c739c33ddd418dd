package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/systemd"
)

// writable looks whether this account may write what its commands have to write.
func writable() Check {
	return Check{
		Name:   "writable",
		Reason: "A command that was run once with sudo leaves files of root's among those of the account, which then can neither install, switch nor take notes of it.",
		Remedy: "Give the folder back to the account that acts: sudo chown -R USER FOLDER",
		find: func(_ context.Context, l *look, add adder) error {
			if len(l.Hosts) == 0 {
				return nil
			}
			h := l.Hosts[0]
			if h.ReadOnly || h.Scope == systemd.ScopeSystem && l.UID != 0 {
				return nil // acts are for another account
			}
			var unseen []error
			for _, dir := range []string{h.Store.Dir, h.StateDir, h.UnitDir} {
				unseen = append(unseen, l.mayWrite(nearest(dir), add))
			}
			inside := []string{filepath.Join(h.Store.Dir, ".1bit-staging")}
			entries, err := os.ReadDir(h.StateDir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) { // which is told of the folder
				unseen = append(unseen, err)
			}
			for _, e := range entries {
				inside = append(inside, filepath.Join(h.StateDir, e.Name()))
			}
			for _, path := range inside {
				unseen = append(unseen, l.mayWrite(path, add))
			}
			return errors.Join(unseen...)
		},
	}
}

// mayWrite looks at one folder or file. One that is not there is made when it is needed.
func (l *look) mayWrite(path string, add adder) error {
	mode := uint32(unix.W_OK)
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		mode |= unix.X_OK
	}
	switch err := unix.Access(path, mode); {
	case errors.Is(err, unix.EACCES):
		if info != nil {
			if _, _, err := l.owner(info); err != nil {
				return fmt.Errorf("%s may not write %s, and whose it is is not known: %w", l.User, path, err)
			}
		}
		add(path, fmt.Sprintf("sudo chown -R %s %s", l.User, path), "%s may not write there%s", l.User, ownedBy(path))
	case err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EROFS): // a read-only file system is told as one
		return fmt.Errorf("whether %s may write %s: %w", l.User, path, err)
	}
	return nil
}

// ownedBy adds whose a file is.
func ownedBy(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(": it belongs to uid %d and its mode is %v", info.Sys().(*syscall.Stat_t).Uid, info.Mode())
}

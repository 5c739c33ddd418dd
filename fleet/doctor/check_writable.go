package doctor

import (
	"context"
	"errors"
	"fmt"
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
				unseen = append(unseen, l.mayWrite(dir, add))
			}
			staging := filepath.Join(h.Store.Dir, ".1bit-staging")
			if _, err := os.Lstat(staging); err == nil {
				unseen = append(unseen, l.mayWrite(staging, add))
			}
			return errors.Join(unseen...)
		},
	}
}

// mayWrite looks at a folder that commands write in and, of one that is ours alone, at the files in it.
func (l *look) mayWrite(dir string, add adder) error {
	at := nearest(dir)
	remedy := fmt.Sprintf("sudo chown -R %s %s", l.User, at)
	switch err := unix.Access(at, unix.W_OK|unix.X_OK); {
	case errors.Is(err, unix.EACCES):
		add(at, remedy, "%s may not write there%s", l.User, ownedBy(at))
		return nil
	case err != nil && !errors.Is(err, unix.EROFS): // a read-only file system is told as one
		return fmt.Errorf("whether %s may write in %s: %w", l.User, at, err)
	}
	if filepath.Base(dir) != "1bit" || at != dir {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if errors.Is(unix.Access(path, unix.W_OK), unix.EACCES) && (e.IsDir() || e.Type().IsRegular()) {
			add(path, remedy, "%s may not write it%s", l.User, ownedBy(path))
		}
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

package testhost

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// settleSystem takes from the copy of the machine's configuration what starts the machine's own services or waits
// for its devices, and makes it a machine of its own.
func settleSystem(_ plan, root string) error {
	etc := filepath.Join(root, "etc")
	for _, pattern := range []string{"systemd/system/*.wants/*", "systemd/system/*.requires/*", "systemd/system/*.upholds/*",
		"systemd/system/default.target", "systemd/user/*.wants/*", "machine-id", "fstab", "crypttab", "hostname"} {
		found, err := filepath.Glob(filepath.Join(etc, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // it never fails
	if err := os.WriteFile(filepath.Join(etc, "machine-id"), fmt.Appendf(nil, "%x\n", id), 0o444); err != nil {
		return err
	}
	// No terminal, no remote machines, no time of its own, no cleaning of folders that are the machine's.
	for _, unit := range []string{"getty.target", "console-getty.service", "systemd-tmpfiles-clean.timer",
		"systemd-timesyncd.service", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
		"systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount", "tmp.mount"} {
		path := filepath.Join(etc, "systemd/system", unit)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Symlink("/dev/null", path); err != nil {
			return err
		}
	}
	return maskGenerators(root)
}

// maskGenerators takes away the programs that make units of the machine's mounts, disks and old scripts: there are none
// here, and every reload of a manager would run them all.
func maskGenerators(root string) error {
	for _, kind := range []string{"system-generators", "user-generators"} {
		masks := filepath.Join(root, "etc/systemd", kind)
		if err := os.MkdirAll(masks, 0o755); err != nil {
			return err
		}
		for _, dir := range []string{"usr/lib/systemd", "lib/systemd", "usr/local/lib/systemd", "etc/systemd"} {
			entries, err := os.ReadDir(filepath.Join(root, dir, kind))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, entry := range entries {
				mask := filepath.Join(masks, entry.Name())
				if err := os.Remove(mask); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
				if err := os.Symlink("/dev/null", mask); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addUser adds the lingering user, whose home lies on the disk itself.
func addUser(p plan, root string) error {
	home := "/home/" + p.User
	for _, entry := range []struct{ file, line string }{
		{"passwd", fmt.Sprintf("%s:x:%d:%d:test user:%s:/bin/sh", p.User, p.UID, p.UID, home)},
		{"group", fmt.Sprintf("%s:x:%d:", p.User, p.UID)},
		{"shadow", fmt.Sprintf("%s:*:19000:0:99999:7:::", p.User)},
	} {
		if err := replaceEntry(filepath.Join(root, "etc", entry.file), p.User, entry.line); err != nil {
			return err
		}
	}
	linger := filepath.Join(root, "var/lib/systemd/linger")
	if err := os.RemoveAll(linger); err != nil {
		return err
	}
	if err := os.MkdirAll(linger, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(linger, p.User), nil, 0o644); err != nil {
		return err
	}
	on, disk := root+home, filepath.Join(p.Dir, "disk/home")
	if err := os.MkdirAll(on, 0o755); err != nil {
		return err
	}
	if err := errors.Join(os.Chown(disk, p.UID, p.UID), os.Chmod(disk, 0o750)); err != nil {
		return err
	}
	if err := unix.Mount(disk, on, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind the home: %w", err)
	}
	return nil
}

// replaceEntry puts line into a file of accounts in place of the entry of that name.
func replaceEntry(path, name, line string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b strings.Builder
	for have := range strings.Lines(string(text)) {
		if !strings.HasPrefix(have, name+":") {
			b.WriteString(strings.TrimRight(have, "\n") + "\n")
		}
	}
	b.WriteString(line + "\n")
	return os.WriteFile(path, []byte(b.String()), 0o640)
}

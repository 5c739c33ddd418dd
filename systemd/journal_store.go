package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// journalStore is what there is of journal files on this host, as far as this user may look.
type journalStore struct {
	readable, closed int  // files
	hidden           int  // folders that may not be listed
	persistent       bool // some of it is on disk
}

// store looks for the files of the journal. The error wraps ErrNoJournal where none may be read.
func (j journal) store() (journalStore, error) {
	var s journalStore
	id, _ := os.ReadFile(filepath.Join(j.root, "etc/machine-id"))
	var tops []string
	for _, top := range []string{"var/log/journal", "run/log/journal"} {
		tops = append(tops, "/"+top)
		folders, err := os.ReadDir(filepath.Join(j.root, top))
		if errors.Is(err, fs.ErrPermission) {
			s.hidden++
		}
		for _, folder := range folders {
			if folder.Name() != strings.TrimSpace(string(id)) && len(id) > 0 {
				continue
			}
			dir := filepath.Join(j.root, top, folder.Name())
			files, err := os.ReadDir(dir)
			if errors.Is(err, fs.ErrPermission) {
				s.hidden++
			}
			for _, file := range files {
				s.add(filepath.Join(dir, file.Name()), top == "var/log/journal")
			}
		}
	}
	where := strings.Join(tops, " and ")
	switch {
	case s.readable > 0:
		return s, nil
	case s.closed+s.hidden == 0:
		return s, fmt.Errorf("%w: %s hold no file of this machine's; see whether journald runs, and whether journald.conf says Storage=none", ErrNoJournal, where)
	}
	return s, fmt.Errorf("%w: this user may read no file of it in %s; %s", ErrNoJournal, where, joinGroup)
}

// joinGroup says how a user gets to read the whole journal.
const joinGroup = "root lets a user read all of it with: usermod --append --groups systemd-journal USER (from the next login on)"

func (s *journalStore) add(path string, onDisk bool) {
	if name := filepath.Base(path); !strings.HasSuffix(name, ".journal") && !strings.HasSuffix(name, ".journal~") {
		return
	}
	switch err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK, unix.AT_EACCESS); err {
	case nil:
		s.readable++
		s.persistent = s.persistent || onDisk
	case unix.ENOENT: // rotated away
	default:
		s.closed++
	}
}

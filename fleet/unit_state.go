package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/systemd"
)

// loadable refuses a unit that the manager has not loaded, with what to do about it.
func (h *Host) loadable(u *systemd.Unit) error {
	switch u.LoadState {
	case "loaded":
		return nil
	case "masked":
		return fmt.Errorf("%w: %s is masked by %s: nothing starts it, whatever its drop-ins say; %s, then try again",
			ErrRefused, u.ID, maskedBy(u.FragmentPath), h.unmask(u))
	}
	return fmt.Errorf("%w: the manager cannot load %s (%s): systemctl%s status %s says why",
		ErrRefused, u.ID, u.LoadState, h.userFlag(), u.ID)
}

func (h *Host) userFlag() string {
	if h.Scope == systemd.ScopeSystem {
		return ""
	}
	return " --user"
}

// unmask says how a mask goes away: systemctl removes a link, and an empty file only its owner can.
func (h *Host) unmask(u *systemd.Unit) string {
	if info, err := os.Lstat(u.FragmentPath); err == nil && info.Mode().IsRegular() {
		return "write a unit into that file, or remove it"
	}
	runtime := ""
	if strings.HasPrefix(u.FragmentPath, "/run/") {
		runtime = " --runtime"
	}
	return fmt.Sprintf("systemctl%s%s unmask %s lifts it", h.userFlag(), runtime, u.ID)
}

func maskedBy(path string) string {
	if path == "" {
		return "a file"
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		return path + " (an empty file)"
	}
	return path + " (a link to /dev/null)"
}

// masks tells whether a unit file is one that masks: empty, or a link to /dev/null.
func masks(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return info.Mode().IsRegular() && info.Size() == 0 || err == nil && os.SameFile(info, null)
}

// reloadable refuses a unit that our own reload would take away: its file is gone or masks it, and the manager has
// not seen that yet. It notes another unit file that the reload would take up.
func (v *view) reloadable() (notes []string, err error) {
	u := v.loaded
	if _, err := os.Stat(u.FragmentPath); u.FragmentPath != "" && errors.Is(err, fs.ErrNotExist) {
		if other := u.Fragment(); other == "" {
			return nil, fmt.Errorf("%w: its unit file %s is gone: the service can be started no more after a reload; put the file back, or let go of the unit with: 1bit pkg unswitch %s",
				ErrRefused, u.FragmentPath, u.ID)
		}
	}
	for _, path := range []string{u.Fragment(), u.FragmentPath} {
		if path != "" && masks(path) {
			return nil, fmt.Errorf("%w: %s masks it, and the reload of a switch would take that up: nothing could start it then; unmask it first",
				ErrRefused, maskedBy(path))
		}
		if path != "" {
			break // the stronger one counts
		}
	}
	if other := u.Fragment(); other != "" && !sameFile(other, u.FragmentPath) {
		notes = append(notes, fmt.Sprintf("the reload also loads another unit file for it: %s in place of %s", other, or(u.FragmentPath, "none")))
	}
	return notes, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, yerr := os.Stat(b)
	return a == b || err == nil && yerr == nil && os.SameFile(x, y)
}

// edits says in words which edits of the unit itself our reload loads along with ours.
func (v *view) edits() []string {
	var names []string
	for _, path := range v.disk.DropInPaths {
		if path != v.path && !slices.Contains(v.loaded.DropInPaths, path) {
			names = append(names, path)
		}
	}
	for _, path := range v.loaded.DropInPaths {
		if path != v.path && !slices.Contains(v.disk.DropInPaths, path) {
			names = append(names, path+" (removed)")
		}
	}
	switch {
	case len(names) > 0:
		return []string{"the reload also loads edits of the unit itself: " + strings.Join(names, ", ")}
	case v.loaded.NeedDaemonReload && slices.Equal(v.armed, v.onDisk):
		return []string{"the reload also loads edits of the unit itself, in one of " + strings.Join(v.files(), ", ")}
	}
	return nil
}

// files are the files of the unit that are not ours.
func (v *view) files() []string {
	var out []string
	for _, path := range append([]string{v.loaded.FragmentPath}, v.disk.DropInPaths...) {
		if path != "" && filepath.Clean(path) != v.path {
			out = append(out, path)
		}
	}
	return out
}

package systemd

import (
	"os"
	"path/filepath"
	"strings"
)

// Fragment is the unit file that a reload would find for the unit in its search path, "" for none: the one in the
// strongest folder, and for an instance without a file of its own that of its template.
func (u *Unit) Fragment() string {
	names := []string{u.ID}
	if prefix, rest, ok := strings.Cut(u.ID, "@"); ok {
		names = append(names, prefix+"@"+filepath.Ext(rest))
	}
	for _, name := range names {
		for _, dir := range u.SearchPath {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				return path
			}
		}
	}
	return ""
}

// sameFile says whether two paths lead to one file: a unit file that was linked into a folder is loaded under the
// path that the link leads to.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	y, yerr := os.Stat(b)
	return err == nil && yerr == nil && os.SameFile(x, y)
}

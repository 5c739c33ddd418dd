package fleet

import (
	"fmt"
	"path/filepath"
)

// takeIn says how a folder that has no manifest becomes a package: whose store it lies in decides who can import it.
func (h *Host) takeIn(folder string) string {
	dir := filepath.Dir(folder)
	switch {
	case sameFile(dir, h.Store.Dir):
		return fmt.Sprintf("take it in with: 1bit pkg import %s", folder)
	case h.ownedByOthers(dir):
		return fmt.Sprintf("root takes it in with: 1bit pkg import --scope system %s", folder)
	}
	return fmt.Sprintf("whoever owns it takes it in with: 1bit pkg import %s", folder)
}

// ownedByOthers tells whether a folder is a store of the machine's beside the own one.
func (h *Host) ownedByOthers(dir string) bool {
	for _, one := range h.Store.Also {
		if sameFile(dir, one.Dir) {
			return true
		}
	}
	return false
}

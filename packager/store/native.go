package store

import (
	"os"
	"path/filepath"
	"strings"
)

// nativeName is the folder in a data home with a file for each package that
// the machine's own package manager put there. The file has the folder's name
// and holds the format, and the package's own name where that is another.
const nativeName = ".1bit-native"

// Who installed a package, where it was not this program.
const (
	InstalledByUs     = "1bit"
	InstalledByImport = "import"
)

// native is a package manager that a package belongs to.
type native struct{ format, program, removal string }

// readNative reads the mark of a folder in the data home; nil without one.
func (s *Store) readNative(base string) *native {
	b, err := os.ReadFile(filepath.Join(s.Dir, nativeName, base))
	if err != nil {
		return nil
	}
	words := strings.Fields(string(b))
	format, name := "", base
	if len(words) > 0 {
		format = words[0]
	}
	if len(words) > 1 {
		name = words[1]
	}
	switch format {
	case "deb":
		return &native{format, "dpkg", "apt-get remove " + name}
	case "rpm":
		return &native{format, "rpm", "dnf remove " + name + " (or rpm -e " + name + ")"}
	case "archlinux":
		return &native{format, "pacman", "pacman -R " + name}
	}
	return &native{format, "another package manager", "remove it with that"}
}

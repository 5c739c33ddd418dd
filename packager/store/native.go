package store

import (
	"errors"
	"io/fs"
	"path/filepath"
	"syscall"
	"time"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// nativeName is the folder in a data home with a file for each package that
// the machine's own package manager put there. The file has the folder's name
// and holds the format, and the package's own name where that is another.
const nativeName = ".1bit-native"

// A mark is two words at the most, of what names of packages are made of.
var markWord = lazyregexp.New(`[0-9A-Za-z@._+:-]+`)

const maxMark = 512 // bytes

// Who installed a package, where it was not this program.
const (
	InstalledByUs     = "1bit"
	InstalledByImport = "import"
)

// native is a package manager that a package belongs to.
type native struct {
	format, program, removal string
	since                    time.Time // when it put the package there
}

// readNative reads the mark of a folder in the data home; nil without one.
func (s *Store) readNative(base string) *native {
	name := filepath.Join(s.Dir, nativeName, base)
	b, info, err := readSmall(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return nativeOf(nil, base) // a mark, but not one of ours
	}
	n := nativeOf(markWord().FindAllString(string(b[:min(len(b), maxMark)]), 2), base)
	// Every file carries the time of the build. When the mark's inode changed
	// last is the machine's own word.
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		n.since = time.Unix(st.Ctim.Unix())
	}
	return n
}

// nativeOf reads the words of a mark.
func nativeOf(words []string, name string) *native {
	format := ""
	if len(words) > 0 {
		format = words[0]
	}
	if len(words) > 1 {
		name = words[1]
	}
	switch format {
	case "deb":
		return &native{format: format, program: "dpkg", removal: "apt-get remove " + name}
	case "rpm":
		return &native{format: format, program: "rpm", removal: "dnf remove " + name + " (or rpm -e " + name + ")"}
	case "archlinux":
		return &native{format: format, program: "pacman", removal: "pacman -R " + name}
	}
	return &native{format: format, program: "another package manager", removal: "remove it with that"}
}

package build

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// Formats of what a build writes.
const (
	FormatArchive = "tar.zst"
	FormatDeb     = "deb"
	FormatRPM     = "rpm"
	FormatArch    = "archlinux"
)

// ErrFormat is wrapped by the error about a format that no build knows, or
// that cannot hold the package.
var ErrFormat = errors.New("format cannot be built")

// Formats lists all formats.
func Formats() []string { return []string{FormatArchive, FormatDeb, FormatRPM, FormatArch} }

// ParseFormats reads a list of formats with commas in between. The order is
// kept. Its errors wrap [ErrFormat].
func ParseFormats(list string) ([]string, error) {
	var out []string
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		switch {
		case !slices.Contains(Formats(), name):
			return nil, fmt.Errorf("format %q: %w: there are %s", name, ErrFormat, strings.Join(Formats(), ", "))
		case slices.Contains(out, name):
			return nil, fmt.Errorf("format %q is named twice: %w", name, ErrFormat)
		}
		out = append(out, name)
	}
	return out, nil
}

// Package is one file that a build wrote.
type Package struct {
	Format       string
	Path         string
	Size         int64  // in bytes
	SHA256       string // 64 hex digits
	AlreadyThere bool   // the same bytes were there before
	// Undeclared is what the host must have and a dependency of this format
	// does not say, such as "device /dev/kfd"; none of the archive, which has
	// no dependencies.
	Undeclared []string
}

// extensions are what the names of files end in. A release page changes
// characters other than letters, digits, dots, hyphens and underscores in a
// name, so no version is in it.
var extensions = map[string]string{
	FormatArchive: ".tar.zst", FormatDeb: ".deb", FormatRPM: ".rpm", FormatArch: ".pkg.tar.zst",
}

// fileName is the name of a package's file of that format.
func fileName(m *packager.Manifest, format string) string {
	return m.DirName() + "-linux-" + cmp.Or(m.Machine, defaultMachine) + extensions[format]
}

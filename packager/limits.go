package packager

import (
	"cmp"
	"fmt"
)

// What is read from an archive without an option.
const (
	// DefaultFiles is how many entries a package may have.
	DefaultFiles = 1 << 16
	// DefaultBytes is how many bytes its files may have together.
	DefaultBytes = 32 << 30
	// DefaultPath is how many bytes a path or a link's target may have.
	DefaultPath = 1024
	// DefaultRatio is how many bytes may come out of one byte of an archive,
	// all in all and beyond the first [RatioSlack]. Engines are at 2 to 10, text
	// below 30; a frame of zeros is at 30,000.
	DefaultRatio = 100
	// RatioSlack is what may come out of an archive before anybody asks for the
	// ratio, in bytes: a file of zeros of modest size is no bomb.
	RatioSlack = 256 << 20
)

// Ceilings that no option raises. They bound what a manifest can do to this
// program, installed ones included.
const (
	// MaxManifest is the largest manifest, in bytes.
	MaxManifest = 64 << 20

	maxFiles = 1 << 20
	maxBytes = 1 << 46
	maxPath  = 3584 // with the store's folder in front it must fit the kernel's 4096

	// A manifest may have this many bytes for every entry that the limits
	// allow. An entry is 170 bytes and its path.
	manifestPerFile = 256
)

// Limits bound what an archive may ask of the host that reads it. They are
// asked while reading and never of what is installed, so that a package that
// was let in is a package like any other. Zero is the default of each.
type Limits struct {
	// Files is the number of entries, [DefaultFiles].
	Files int
	// Bytes is the sum of the files' sizes, [DefaultBytes].
	Bytes int64
	// Ratio is the number of bytes unpacked for each byte of the archive,
	// [DefaultRatio].
	Ratio int
	// Path is the length of a path or a link's target in bytes, [DefaultPath].
	Path int
	// Window is the zstd window in bytes, [MaxWindow].
	Window int64
}

// NoLimits is the ceiling of everything, for a look at an archive from which
// nothing is unpacked.
func NoLimits() Limits {
	return Limits{Files: maxFiles, Bytes: maxBytes, Ratio: maxBytes, Path: maxPath, Window: 1 << 30}
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Files: cmp.Or(max(l.Files, 0), DefaultFiles), Bytes: cmp.Or(max(l.Bytes, 0), DefaultBytes),
		Ratio: cmp.Or(max(l.Ratio, 0), DefaultRatio), Path: cmp.Or(max(l.Path, 0), DefaultPath),
		Window: cmp.Or(max(l.Window, 0), MaxWindow),
	}
}

// Limit names one of the [Limits].
type Limit string

// The limits.
const (
	LimitFiles  Limit = "files"
	LimitBytes  Limit = "bytes"
	LimitRatio  Limit = "ratio"
	LimitPath   Limit = "path"
	LimitWindow Limit = "window"
)

// LimitError says that an archive needs more than a limit allows. It may be
// quite in order: raising the limit to Need lets it in.
type LimitError struct {
	Limit Limit
	// Need is what the archive needs at least, in the limit's own unit. Of a
	// ratio it is what surely suffices.
	Need, Allowed int64
	// What is the thing that needs it, such as a path; may be "".
	What string
}

func (e *LimitError) Error() string {
	switch e.Limit {
	case LimitFiles:
		return fmt.Sprintf("archive needs %d entries, limit %d", e.Need, e.Allowed)
	case LimitBytes:
		return fmt.Sprintf("archive needs %d bytes for its files, limit %d", e.Need, e.Allowed)
	case LimitPath:
		return fmt.Sprintf("archive needs a path of %d bytes (%.40q…), limit %d", e.Need, e.What, e.Allowed)
	case LimitWindow:
		return fmt.Sprintf("archive needs a zstd window of %s, limit %s", mib(e.Need), mib(e.Allowed))
	}
	return fmt.Sprintf("archive unpacks to more than %d times its size, limit %d beyond the first %s (%d would do)", e.Allowed, e.Allowed, mib(RatioSlack), e.Need)
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }

// Check compares a manifest with the limits; the error is a [*LimitError].
func (l Limits) Check(m *Manifest) error {
	l = l.withDefaults()
	if n := len(m.Files); n > l.Files {
		return &LimitError{Limit: LimitFiles, Need: int64(n), Allowed: int64(l.Files)}
	}
	if n := m.Size(); n > l.Bytes {
		return &LimitError{Limit: LimitBytes, Need: n, Allowed: l.Bytes}
	}
	var longest string
	for i := range m.Files {
		for _, s := range []string{m.Files[i].Path, m.Files[i].Target} {
			if len(s) > len(longest) {
				longest = s
			}
		}
	}
	if len(longest) > l.Path {
		return &LimitError{Limit: LimitPath, Need: int64(len(longest)), Allowed: int64(l.Path), What: longest}
	}
	return nil
}

// checkManifestSize bounds a manifest before it is read.
func (l Limits) checkManifestSize(n int64) error {
	if n > MaxManifest {
		return fmt.Errorf("manifest has %d bytes, limit %d", n, int64(MaxManifest))
	}
	if n > l.manifest() {
		return &LimitError{Limit: LimitFiles, Need: (n + manifestPerFile - 1) / manifestPerFile, Allowed: int64(l.Files), What: ManifestName}
	}
	return nil
}

func (l Limits) manifest() int64 {
	return min(MaxManifest, manifestPerFile*int64(max(l.Files, DefaultFiles)))
}

// checkRatio bounds what came out of an archive by what went in.
func (l Limits) checkRatio(packed, unpacked, total int64) error {
	over := unpacked - RatioSlack
	if over <= 0 || over/int64(l.Ratio) <= packed {
		return nil
	}
	return &LimitError{Limit: LimitRatio, Need: (total-RatioSlack)/max(packed, 1) + 1, Allowed: int64(l.Ratio)}
}

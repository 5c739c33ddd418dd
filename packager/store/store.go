package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/packager"
)

// Errors that a caller branches on.
var (
	ErrNotInstalled = errors.New("not installed")
	ErrAmbiguous    = errors.New("more than one package fits")
	ErrInUse        = errors.New("in use")
	ErrBusy         = errors.New("store is busy")
	// ErrDifferent says that the name is taken by something else.
	ErrDifferent = errors.New("something else of that name is installed")
	// ErrChanged says that an imported package is no longer as it was taken in.
	ErrChanged = errors.New("not as it was taken in")
	// ErrPlace says that a folder's place or name is not one of a package.
	ErrPlace = errors.New("no folder to import")
	// ErrRefused says that a package is somebody else's to remove, or none to import.
	ErrRefused = errors.New("refused")
)

// States of an installed package, told by a look at sizes, modes and times;
// only [Store.Verify] reads contents.
const (
	StateOK      = "ok"
	StateTouched = "touched" // a mode, a time or an extra file
	StateBroken  = "broken"  // a missing entry, another type or size
)

// Store is the packages of one data home.
type Store struct {
	// Dir is the data home, absolute. The packages are its entries 1bit-*.
	Dir string
	// StateDir holds the lock and the manifests of imported packages.
	StateDir string
	// Proc is the root of the proc file system, /proc unless a test says else.
	Proc string
	// Root is the root folder of the host that [Store.Verify] looks for
	// libraries on, / when empty.
	Root string
	// Limits bound what is installed from an archive.
	Limits packager.Limits
	// Shared says that every account may use the packages: its processes count
	// too, so that only root can tell that none does.
	Shared bool
	// Also are other stores whose packages are seen and never changed, such
	// as that of /opt/1bit for a user.
	Also []*Store
}

// Open returns the store in dir, with its state in stateDir. Neither has to
// be there yet.
func Open(dir, stateDir string) *Store {
	return &Store{Dir: absolute(dir), StateDir: absolute(stateDir), Proc: "/proc"}
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return filepath.Clean(dir)
}

// Package is one installed package.
type Package struct {
	Manifest *packager.Manifest
	Name     string // <flavour>-<id>
	Digest   string // sha256:<64 hex>
	Path     string // the directory, absolute
	// InstalledAt is when the manifest, or an imported package's record, was
	// written.
	InstalledAt time.Time
	State       string // StateOK, StateTouched or StateBroken
	Detail      string // what is touched or broken, for people
	Imported    bool
	// InstalledBy is InstalledByUs, InstalledByImport, or deb, rpm or
	// archlinux.
	InstalledBy string
	Size        int64 // sum of the files' sizes in bytes

	native *native
}

// Program returns the absolute path of an entry point's program. An entry
// point that the package does not have wraps fs.ErrNotExist.
func (p *Package) Program(entry string) (string, error) {
	rel, ok := p.Manifest.EntryPoints[entry]
	if !ok {
		has := strings.Join(slices.Sorted(maps.Keys(p.Manifest.EntryPoints)), ", ")
		return "", fmt.Errorf("package %s has no entry point %q (it has %s): %w", p.Name, entry, has, fs.ErrNotExist)
	}
	return filepath.Join(p.Path, filepath.FromSlash(rel)), nil
}

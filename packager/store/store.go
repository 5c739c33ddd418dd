package store

import (
	"context"
	"errors"
	"time"

	"github.com/1bit-systems/pkg/packager"
)

// Errors a caller branches on.
var (
	ErrNotInstalled = errors.New("not installed")
	ErrAmbiguous    = errors.New("ambiguous")
	ErrInUse        = errors.New("in use")
	ErrBusy         = errors.New("store is busy")
	ErrDifferent    = errors.New("another package of the same name")
)

// States of an installed package.
const (
	StateOK      = "ok"
	StateTouched = "touched"
	StateBroken  = "broken"
)

// Store is the packages of one data home.
type Store struct {
	Dir      string
	StateDir string
	// Proc is where the kernel's process folder is; Open sets /proc.
	Proc string
}

// Package is one installed package.
type Package struct {
	Manifest    *packager.Manifest
	Name        string // <flavour>-<id>
	Digest      string // sha256:<64 hex>
	Path        string // absolute
	InstalledAt time.Time
	State       string // StateOK, StateTouched, StateBroken
	Detail      string // what is touched or broken, for people
	Imported    bool
	Size        int64 // sum of file sizes in bytes
}

// Verification is the result of Verify.
type Verification struct {
	ID       string    `json:"id"`
	OK       bool      `json:"ok"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"`
	Problems []Problem `json:"problems"`
}

// Problem is one difference between a package and its manifest.
type Problem struct {
	Path string `json:"path"`
	What string `json:"what"`
}

func Open(dir, stateDir string) *Store { return &Store{Dir: dir, StateDir: stateDir, Proc: "/proc"} }

func (s *Store) Install(ctx context.Context, archive string, progress func(done, total int64)) (*Package, bool, error) {
	return nil, false, errors.ErrUnsupported
}
func (s *Store) Import(ctx context.Context, dir string) (*Package, error) {
	return nil, errors.ErrUnsupported
}
func (s *Store) List(ctx context.Context) ([]*Package, error) { return nil, errors.ErrUnsupported }
func (s *Store) Find(ctx context.Context, query string) (*Package, error) {
	return nil, errors.ErrUnsupported
}
func (s *Store) AtPath(path string) (*Package, bool) { return nil, false }
func (s *Store) Verify(ctx context.Context, p *Package, progress func(done, total int64)) (*Verification, error) {
	return nil, errors.ErrUnsupported
}
func (s *Store) Remove(ctx context.Context, p *Package, inUse func(context.Context, *Package) ([]string, error)) error {
	return errors.ErrUnsupported
}
func (s *Store) LockShared(ctx context.Context) (unlock func(), err error) {
	return nil, errors.ErrUnsupported
}
func (p *Package) Program(entry string) (string, error) { return "", errors.ErrUnsupported }

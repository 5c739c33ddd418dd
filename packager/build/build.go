package build

import (
	"context"
	"errors"

	"github.com/1bit-systems/pkg/packager"
)

// ErrRecipe is wrapped by every error about the recipe or about what the
// recipe asks of the tree.
var ErrRecipe = errors.New("recipe is wrong")

// Options say what to build.
type Options struct {
	RecipePath string
	Tree       string
	Out        string
	Version    string // the tag, such as v2026.44; may be empty
	ID         string // empty: the first 7 digits of component engine's commit
	// SourceDateEpoch is the time stamp of every entry, in seconds since 1970;
	// 0 means DefaultEpoch.
	SourceDateEpoch int64
	Progress        func(done, total int64)
}

// Result is a package that was built.
type Result struct {
	Manifest      *packager.Manifest
	Digest        string
	Path          string
	Size          int64
	SHA256        string
	InstalledSize int64
	AlreadyThere  bool
}

// Build makes a package.
func Build(ctx context.Context, o Options) (*Result, error) {
	return nil, errors.ErrUnsupported
}

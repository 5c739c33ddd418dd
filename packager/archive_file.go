package packager

import (
	"context"
	"fmt"
	"os"
)

// OpenArchive opens an archive file for [NewReader]. Anything but a regular
// file is refused, so that a pipe of that name does not hang the program.
func OpenArchive(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open archive %s: not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	return f, nil
}

// ReadManifest returns the manifest of an archive file and reads no further.
// An archive that is damaged or no package gives an error that wraps
// [ErrIntegrity].
func ReadManifest(ctx context.Context, name string, limits Limits) (*Manifest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := OpenArchive(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := NewReader(f, limits)
	if err != nil {
		return nil, fmt.Errorf("read archive %s: %w", name, err)
	}
	defer r.Close()
	return r.Manifest(), nil
}

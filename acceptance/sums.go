package acceptance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/packager/store"
)

// sums are the digests of what a run rests on, each file read once, and how it
// looked then. They are for one goroutine at a time.
type sums struct {
	files map[string]*summed // by path
	order []string           // of the paths
}

type summed struct {
	identity
	key    string // what it is, for people
	look   look
	target string // of a symbolic link; then there is no digest
}

// identity names a thing and the digest of its bytes.
type identity struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Size   int64  `json:"size,omitempty"`
}

// A look is what a file shows without being read. Whoever writes to a file, or
// puts another in its place, changes it: nobody can set its ctime.
type look struct {
	dev, ino     uint64
	size         int64
	mtime, ctime time.Time
}

func lookAt(path string) (look, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return look{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return look{st.Dev, st.Ino, st.Size, time.Unix(st.Mtim.Unix()), time.Unix(st.Ctim.Unix())}, nil
}

func newSums() *sums { return &sums{files: map[string]*summed{}} }

func (s *sums) keep(path string, f *summed) {
	if s.files[path] == nil {
		s.order = append(s.order, path)
	}
	s.files[path] = f
}

// identify reads a file's size and digest.
func (s *sums) identify(ctx context.Context, key, path string) (identity, error) {
	if f := s.files[path]; f != nil && f.target == "" {
		return f.identity, nil
	}
	f, err := sumFile(ctx, key, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return identity{}, fmt.Errorf("%w: %s: there is no file %s", ErrPlan, key, path)
	case errors.Is(err, errNoFile):
		return identity{}, fmt.Errorf("%w: %s: %w", ErrPlan, key, err)
	case err != nil:
		return identity{}, fmt.Errorf("read %s: %w", key, err)
	}
	s.keep(path, f)
	return f.identity, nil
}

// sumFile reads a file that nobody writes to meanwhile.
func sumFile(ctx context.Context, key, path string) (*summed, error) {
	before, err := lookAt(path)
	if err != nil {
		return nil, err
	}
	digest, size, err := sumInput(ctx, path)
	if err != nil {
		return nil, err
	}
	if after, err := lookAt(path); err != nil || after != before {
		return nil, errors.Join(err, fmt.Errorf("%w: %s was written to while it was read", ErrChanged, path))
	}
	return &summed{identity: identity{Name: path, Digest: "sha256:" + digest, Size: size}, key: key, look: before}, nil
}

// hold takes in the files of a package whose bytes have just been compared with
// its manifest.
func (s *sums) hold(pkg *store.Package) error {
	for _, m := range pkg.Manifest.Files {
		path := filepath.Join(pkg.Path, filepath.FromSlash(m.Path))
		f := &summed{key: "file of package " + pkg.Name, target: m.Target}
		switch {
		case s.files[path] != nil:
			continue
		case m.Type == "file":
			f.identity = identity{Name: path, Digest: "sha256:" + m.SHA256, Size: m.Size}
			var err error
			if f.look, err = lookAt(path); err != nil {
				return fmt.Errorf("look at package %s: %w", pkg.Name, err)
			}
		case m.Type != "link":
			continue
		}
		s.keep(path, f)
	}
	return nil
}

// changed names the first file that is no longer what it was; "" if all are.
// Only what looks otherwise is read again.
func (s *sums) changed(ctx context.Context) (string, error) {
	for _, path := range s.order {
		if why, err := s.files[path].changed(ctx, path); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

func (f *summed) changed(ctx context.Context, path string) (string, error) {
	if f.target != "" {
		if now, err := os.Readlink(path); err != nil || now != f.target {
			return fmt.Sprintf("%s: %s is no longer the link to %s that the run began with", f.key, path, f.target), nil
		}
		return "", nil
	}
	if now, err := lookAt(path); err == nil && now == f.look {
		return "", nil
	}
	now, err := sumFile(ctx, f.key, path)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("%s: %s is gone", f.key, path), nil
	case err != nil:
		return fmt.Sprintf("%s: %s cannot be read again: %v", f.key, path, err), nil
	case now.Digest != f.Digest:
		return fmt.Sprintf("%s: %s has the digest %s, the run began with %s", f.key, path, now.Digest, f.Digest), nil
	}
	f.look = now.look
	return "", nil
}

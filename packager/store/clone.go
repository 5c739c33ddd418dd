package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/1bit-systems/pkg/packager"
	"golang.org/x/sys/unix"
)

// minClone is the smallest file, in bytes, whose blocks are shared. Sharing
// those of a smaller one takes longer than writing it.
const minClone = 64 << 10

// cloner lets the files of a new package share the blocks of identical files
// of installed ones, where the file system can (FICLONE). The inodes stay
// apart: what is written through one name is not seen through the other.
type cloner struct {
	sources map[content][]source
	off     atomic.Bool // the file system cannot
}

// content is what makes files identical.
type content struct {
	sha256 string
	size   int64
}

// source is a file of an installed package, as it should be.
type source struct {
	p *Package
	f *packager.File
}

// newCloner looks for identical files among the packages of this store; nil
// where no blocks can be shared.
func (s *Store) newCloner(ctx context.Context, m *packager.Manifest) *cloner {
	var st unix.Statfs_t
	if err := unix.Statfs(s.Dir, &st); err != nil || st.Type == unix.EXT4_SUPER_MAGIC || st.Type == unix.TMPFS_MAGIC {
		return nil
	}
	wanted := map[content]bool{}
	for i := range m.Files {
		if f := &m.Files[i]; f.Type == packager.TypeFile && f.Size >= minClone {
			wanted[content{f.SHA256, f.Size}] = true
		}
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil
	}
	c := &cloner{sources: map[content][]source{}}
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil
		}
		if !e.IsDir() || !strings.HasPrefix(e.Name(), packager.DirPrefix) {
			continue
		}
		p, err := s.read(e.Name())
		if err != nil {
			continue
		}
		for i := range p.Manifest.Files {
			f := &p.Manifest.Files[i]
			if key := (content{f.SHA256, f.Size}); f.Type == packager.TypeFile && wanted[key] {
				c.sources[key] = append(c.sources[key], source{p, f})
			}
		}
	}
	if len(c.sources) == 0 {
		return nil
	}
	return c
}

// has tells whether a file will probably share its blocks.
func (c *cloner) has(f *packager.File) bool {
	return c != nil && len(c.sources[content{f.SHA256, f.Size}]) > 0
}

// clone fills a new file from the first source that can be had. What it holds
// then is for the caller to compare.
func (c *cloner) clone(f *packager.File, fd int) bool {
	for _, from := range c.sources[content{f.SHA256, f.Size}] {
		if c.off.Load() {
			return false
		}
		switch err := from.cloneTo(fd); {
		case err == nil:
			return true
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOTTY), errors.Is(err, unix.ENOSYS):
			c.off.Store(true)
		}
	}
	return false
}

var errTouched = errors.New("was touched")

// cloneTo shares the source's blocks with a new file, unless something about
// the source is not as its package's manifest says.
func (from source) cloneTo(fd int) error {
	name := filepath.Join(from.p.Path, filepath.FromSlash(from.f.Path))
	in, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != from.f.Size || modeProblem(from.p, from.f, info) != "" ||
		info.ModTime().UnixNano() != wantedTime(from.p, from.f) {
		return &fs.PathError{Op: "clone", Path: name, Err: errTouched}
	}
	return unix.IoctlFileClone(fd, int(in.Fd()))
}

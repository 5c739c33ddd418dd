package packager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	chunkSize = 256 << 10
	// writers is how many files are hashed, written and synced at a time.
	// Most of them wait for the disk, so it is more than processors.
	writers = 16
)

// ExtractOptions are for [Reader.Extract]; the zero value is fine.
type ExtractOptions struct {
	// Progress is told the bytes of content read and their total.
	Progress func(done, total int64)
	// Unsynced leaves it to the kernel when the bytes reach the disk, for a
	// tree that is thrown away again.
	Unsynced bool
}

// Extract writes the whole package below root, which must be empty, and
// returns when all of it is on stable storage: every file and every folder
// synced, root's own entries too. Each content is hashed while it is written
// and compared with the manifest. Modes and times are final, except for root
// itself. After an error root may hold anything that the manifest lists, and
// nothing outside root was touched.
func (a *Reader) Extract(ctx context.Context, root *os.Root, opts ExtractOptions) error {
	x := &extraction{
		reader: a, root: root, ExtractOptions: opts, total: a.manifest.Size(),
		time: time.Unix(a.manifest.SourceDateEpoch, 0),
		pool: sync.Pool{New: func() any { b := make([]byte, chunkSize); return &b }},
	}
	if err := x.run(ctx); err != nil {
		return fmt.Errorf("extract %s: %w", a.manifest.Name(), err)
	}
	return nil
}

type extraction struct {
	reader *Reader
	root   *os.Root
	ExtractOptions
	done, total int64
	time        time.Time
	pool        sync.Pool
}

func (x *extraction) run(ctx context.Context) error {
	if err := x.contents(ctx); err != nil {
		return err
	}
	m := x.reader.manifest
	for i := range m.Files {
		if f := &m.Files[i]; f.Type == TypeLink {
			if err := x.root.Symlink(f.Target, f.Path); err != nil {
				return err
			}
		}
	}
	if err := x.writeManifest(); err != nil {
		return err
	}
	return x.finishDirs(ctx)
}

// contents makes the folders and writes the files. The archive is decoded
// here; each file is hashed, written and synced by a goroutine of its own.
func (x *extraction) contents(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	readErr := x.read(ctx, group)
	writeErr := group.Wait()
	// What a writer met is the cause; the reader then only saw its context end.
	if writeErr != nil {
		return writeErr
	}
	return readErr
}

func (x *extraction) read(ctx context.Context, group *errgroup.Group) error {
	for {
		f, err := x.reader.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		switch f.Type {
		case TypeDir:
			if err := x.root.Mkdir(f.Path, 0o700); err != nil {
				return err
			}
		case TypeFile:
			chunks := make(chan *[]byte, 4)
			stop := make(chan struct{})
			group.Go(func() error {
				defer close(stop)
				return x.writeFile(f, chunks)
			})
			err := x.feed(ctx, f, chunks, stop)
			close(chunks)
			if err != nil {
				return err
			}
		}
	}
}

// feed reads one file's content and hands it to its writer, unless that gave
// up.
func (x *extraction) feed(ctx context.Context, f *File, chunks chan<- *[]byte, stop <-chan struct{}) error {
	for left := f.Size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		buf := x.pool.Get().(*[]byte)
		*buf = (*buf)[:min(left, chunkSize)]
		n, err := io.ReadFull(x.reader, *buf)
		if err != nil {
			return noEOF(err)
		}
		left -= int64(n)
		select {
		case chunks <- buf:
		case <-stop:
			return nil // the writer's error is the one to report
		}
		x.done += int64(n)
		if x.Progress != nil {
			x.Progress(x.done, x.total)
		}
	}
	return nil
}

// writeFile writes what comes out of chunks. A content that ends early is the
// reader's error, which alone knows why: damage, or an end of the context.
func (x *extraction) writeFile(f *File, chunks <-chan *[]byte) error {
	out, err := x.create(f.Path)
	if err != nil {
		return err
	}
	defer out.Close()
	sum := sha256.New()
	var n int64
	for buf := range chunks {
		n += int64(len(*buf))
		sum.Write(*buf)
		if _, err := out.Write(*buf); err != nil {
			return err
		}
		*buf = (*buf)[:chunkSize]
		x.pool.Put(buf)
	}
	if n < f.Size {
		return nil
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != f.SHA256 {
		return fmt.Errorf("%s has SHA-256 %s, the manifest says %s: %w", f.Path, got, f.SHA256, ErrIntegrity)
	}
	return x.finish(out, f.Path, fs.FileMode(InstalledMode(f.Mode)), x.time)
}

func (x *extraction) create(name string) (*os.File, error) {
	return x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// finish gives a file its mode and time, unless that is zero, and syncs it.
func (x *extraction) finish(f *os.File, name string, mode fs.FileMode, at time.Time) error {
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if !at.IsZero() {
		if err := x.root.Chtimes(name, at, at); err != nil {
			return err
		}
	}
	if !x.Unsynced {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

// writeManifest writes the manifest as it was read. Its time stamp is that of
// the extraction.
func (x *extraction) writeManifest() error {
	out, err := x.create(ManifestName)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, bytes.NewReader(x.reader.raw)); err != nil {
		return err
	}
	return x.finish(out, ManifestName, 0o444, time.Time{})
}

// finishDirs gives the folders their modes and times, inner ones first, and
// syncs them.
func (x *extraction) finishDirs(ctx context.Context) error {
	dirs := []string{"."}
	for i := range x.reader.manifest.Files {
		if f := &x.reader.manifest.Files[i]; f.Type == TypeDir {
			dirs = append(dirs, f.Path)
		}
	}
	for _, dir := range slices.Backward(dirs[1:]) {
		if err := x.root.Chtimes(dir, x.time, x.time); err != nil {
			return err
		}
		if err := x.root.Chmod(dir, 0o555); err != nil {
			return err
		}
	}
	if x.Unsynced {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, dir := range dirs {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return syncDir(x.root, dir)
		})
	}
	return group.Wait()
}

func syncDir(root *os.Root, name string) error {
	d, err := root.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync folder %s: %w", path.Join(root.Name(), name), err)
	}
	return nil
}

// InstalledMode is the mode of an entry once installed: the manifest's without
// the write bits.
func InstalledMode(m Mode) Mode { return m &^ 0o222 }

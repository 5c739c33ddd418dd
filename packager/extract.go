package packager

import (
	"context"
	"errors"
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
	// writers is how many files are hashed and written at a time.
	writers = 8
)

// ExtractOptions are for [Reader.Extract]; the zero value is fine.
type ExtractOptions struct {
	// Progress is told the bytes of content read and their total.
	Progress func(done, total int64)
	// Unsynced leaves it to the kernel when the bytes reach the disk, for a
	// tree that is thrown away again.
	Unsynced bool
	// Clone, if set, may fill a new file, open as fd, by sharing the blocks of another that
	// should have the same content, and says whether it did. It is called by
	// several goroutines. What it filled in is compared with the archive and,
	// where it differs, overwritten.
	Clone func(f *File, fd int) bool
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
	err := x.run(ctx)
	if err != nil {
		err = fmt.Errorf("extract %s: %w", a.manifest.Name(), err)
	}
	return err
}

type extraction struct {
	reader *Reader
	root   *os.Root
	ExtractOptions
	done, total int64
	time        time.Time
	pool        sync.Pool
	sync        *unsynced
	in          *openFolder // where the file before went
}

func (x *extraction) run(ctx context.Context) (err error) {
	if x.sync, err = newUnsynced(x.root, x.reader.manifest, x.Unsynced); err != nil {
		return err
	}
	defer x.sync.close()
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
	if err := x.finishDirs(); err != nil {
		return err
	}
	return x.sync.flush(ctx)
}

// contents makes the folders and writes the files. The archive is read here;
// each file is hashed and written by a goroutine of its own.
func (x *extraction) contents(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	readErr := x.read(ctx, group)
	writeErr := group.Wait()
	x.in.leave()
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
			if x.in, err = x.in.move(x.root, path.Dir(f.Path)); err != nil {
				return err
			}
			if err := x.readFile(ctx, group, f); err != nil {
				return err
			}
		}
	}
}

// readFile begins the writer of one file and reads the content for it. One of
// a single piece is read first: its writer then waits for nothing.
func (x *extraction) readFile(ctx context.Context, group *errgroup.Group, f *File) error {
	w := &fileWriter{x: x, file: f, in: x.in.enter(), chunks: make(chan *[]byte, 4)}
	stop := make(chan struct{})
	begin := func() {
		group.Go(func() error {
			defer close(stop)
			defer w.in.leave()
			return w.run(ctx)
		})
	}
	if f.Size > chunkSize {
		begin()
		defer close(w.chunks)
		return x.feed(ctx, f, w.chunks, stop)
	}
	err := x.feed(ctx, f, w.chunks, stop)
	close(w.chunks)
	if err != nil {
		w.in.leave()
		return err
	}
	begin()
	return nil
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

// writeManifest writes the manifest as it was read. Its time stamp is that of
// the extraction.
func (x *extraction) writeManifest() error {
	top, err := (*openFolder)(nil).move(x.root, ".")
	if err != nil {
		return err
	}
	defer top.leave()
	out, err := top.create(ManifestName)
	if err != nil {
		return err
	}
	if err := out.writeAt(x.reader.raw, 0); err != nil {
		return errors.Join(err, out.close())
	}
	if err := out.chmod(0o444); err != nil {
		return errors.Join(err, out.close())
	}
	return x.sync.add(out)
}

// finishDirs gives the folders their modes and times, inner ones first, and
// leaves them to be synced.
func (x *extraction) finishDirs() error {
	dirs := []string{"."}
	for i := range x.reader.manifest.Files {
		if f := &x.reader.manifest.Files[i]; f.Type == TypeDir {
			dirs = append(dirs, f.Path)
		}
	}
	for _, dir := range slices.Backward(dirs) {
		if dir != "." {
			if err := x.root.Chtimes(dir, x.time, x.time); err != nil {
				return err
			}
			if err := x.root.Chmod(dir, fs.FileMode(InstalledMode(0o755))); err != nil {
				return err
			}
		}
		x.sync.addDir(x.root, dir)
	}
	return nil
}

// InstalledMode is the mode of an entry once installed: the manifest's without
// the write bits.
func InstalledMode(m Mode) Mode { return m &^ 0o222 }

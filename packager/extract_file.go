package packager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// fileWriter writes one file of an extraction.
type fileWriter struct {
	x      *extraction
	file   *File
	in     *folder
	chunks chan *[]byte

	out    *os.File
	cloned bool // out holds what may be the content already
	begun  int64
}

// writebackSize is how many bytes of a file are written before the disk is
// set to work on them.
const writebackSize = 8 << 20

// run writes what comes out of chunks. A content that ends early is the
// reader's error, which alone knows why: damage, or an end of the context.
func (w *fileWriter) run(ctx context.Context) (err error) {
	name := path.Base(w.file.Path)
	if w.out, err = create(w.in.root, name); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = w.out.Close()
		}
	}()
	if w.x.Clone != nil && w.file.Size > 0 && w.x.Clone(w.file, w.out) {
		w.cloned = true
		if err := w.out.Truncate(w.file.Size); err != nil {
			return err
		}
	}
	sum := sha256.New()
	var n int64
	for buf := range w.chunks {
		sum.Write(*buf)
		if err := w.write(*buf, n); err != nil {
			return err
		}
		n += int64(len(*buf))
		*buf = (*buf)[:chunkSize]
		w.x.pool.Put(buf)
		if n-w.begun >= writebackSize {
			w.writeback(n)
		}
	}
	if n < w.file.Size {
		return w.out.Close()
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != w.file.SHA256 {
		return fmt.Errorf("%s has SHA-256 %s, the manifest says %s: %w", w.file.Path, got, w.file.SHA256, ErrIntegrity)
	}
	if err := w.out.Chmod(fs.FileMode(InstalledMode(w.file.Mode))); err != nil {
		return err
	}
	if err := w.in.root.Chtimes(name, w.x.time, w.x.time); err != nil {
		return err
	}
	w.writeback(n)
	w.x.sync.add(w.out)
	return w.x.sync.flushIfMany(ctx)
}

// write writes a piece of the content at an offset. A cloned file has it
// already, unless what it was cloned from was damaged.
func (w *fileWriter) write(b []byte, at int64) error {
	if w.cloned {
		there := w.x.pool.Get().(*[]byte)
		defer w.x.pool.Put(there)
		n, err := w.out.ReadAt((*there)[:len(b)], at)
		if err == nil && n == len(b) && bytes.Equal((*there)[:n], b) {
			return nil
		}
		_, err = w.out.WriteAt(b, at)
		return err
	}
	_, err := w.out.Write(b)
	return err
}

// writeback lets the disk begin with what was written so far. Whether it
// succeeds is told by the sync.
func (w *fileWriter) writeback(n int64) {
	if !w.x.Unsynced && !w.cloned && n > w.begun {
		_ = unix.SyncFileRange(int(w.out.Fd()), w.begun, n-w.begun, unix.SYNC_FILE_RANGE_WRITE)
	}
	w.begun = n
}

// create makes a new file. It can be read too, to look at a clone.
func create(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// folder is an open folder of the tree that is extracted, for the files in
// it. It is closed when the last of those who entered leaves.
type folder struct {
	path string
	root *os.Root
	in   atomic.Int32
}

// move leaves f, which may be nil, and enters the folder of that path, unless
// it is the same.
func (f *folder) move(root *os.Root, path string) (*folder, error) {
	if f != nil && f.path == path {
		return f, nil
	}
	f.leave()
	opened, err := root.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	f = &folder{path: path, root: opened}
	return f.enter(), nil
}

func (f *folder) enter() *folder {
	f.in.Add(1)
	return f
}

func (f *folder) leave() {
	if f != nil && f.in.Add(-1) == 0 {
		_ = f.root.Close()
	}
}

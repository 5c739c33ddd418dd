package packager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// fileWriter writes one file of an extraction.
type fileWriter struct {
	x      *extraction
	file   *File
	in     *openFolder
	chunks chan *[]byte

	out    *newFile
	cloned bool // out holds what may be the content already
	begun  int64
}

// writebackSize is how many bytes of a file are written before the disk is
// set to work on them. For small files that costs more than it gains.
const writebackSize = 8 << 20

// run writes what comes out of chunks. A content that ends early is the
// reader's error, which alone knows why: damage, or an end of the context.
func (w *fileWriter) run(ctx context.Context) (err error) {
	name := path.Base(w.file.Path)
	if w.out, err = w.in.create(name); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = w.out.close()
		}
	}()
	if w.x.Clone != nil && w.file.Size > 0 && w.x.Clone(w.file, w.out.fd) {
		w.cloned = true
		if err := w.out.truncate(w.file.Size); err != nil {
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
		return w.out.close()
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != w.file.SHA256 {
		return fmt.Errorf("%s has SHA-256 %s, the manifest says %s: %w", w.file.Path, got, w.file.SHA256, ErrIntegrity)
	}
	if err := w.out.chmod(uint32(InstalledMode(w.file.Mode))); err != nil {
		return err
	}
	if err := w.in.setTime(name, w.x.time); err != nil {
		return err
	}
	if w.begun > 0 {
		w.writeback(n)
	}
	if err := w.x.sync.add(w.out); err != nil {
		return err
	}
	return w.x.sync.flushIfMany(ctx)
}

// write writes a piece of the content at an offset. A cloned file has it
// already, unless what it was cloned from was damaged.
func (w *fileWriter) write(b []byte, at int64) error {
	if w.cloned {
		there := w.x.pool.Get().(*[]byte)
		*there = (*there)[:chunkSize]
		defer w.x.pool.Put(there)
		n, err := w.out.readAt((*there)[:len(b)], at)
		if err == nil && bytes.Equal((*there)[:n], b) {
			return nil
		}
	}
	return w.out.writeAt(b, at)
}

// writeback lets the disk begin with what was written so far. Whether it
// succeeds is told by the sync.
func (w *fileWriter) writeback(n int64) {
	if !w.x.Unsynced && !w.cloned && n > w.begun {
		_ = unix.SyncFileRange(w.out.fd, w.begun, n-w.begun, unix.SYNC_FILE_RANGE_WRITE)
	}
	w.begun = n
}

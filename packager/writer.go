package packager

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest zstd window written and read, in bytes. It is what
// `zstd -d` accepts without an option.
const MaxWindow = 128 << 20

const (
	minWindow = 1 << 20
	// blockSize is how much content shares one set of entropy tables. On
	// engine trees 32 KiB give 1 % less than the encoder's own 128 KiB, in no
	// more time: machine code changes its statistics from section to section.
	blockSize = 32 << 10
)

// ErrChanged says that a content is not what the manifest says.
var ErrChanged = errors.New("changed while it was read")

// WriteArchive writes the package as tar.zst to w: the top folder, the
// manifest, then every entry in the manifest's order, with the content that
// open returns for it. The same manifest and content give the same bytes,
// whatever the machine. A content that is not what the manifest says is an
// error that wraps [ErrChanged]: the file changed after the manifest was made. progress may be nil; it
// is told the bytes of content written and their total.
func WriteArchive(ctx context.Context, w io.Writer, m *Manifest, open func(*File) (io.ReadCloser, error), progress func(done, total int64)) error {
	manifest, err := m.Encode()
	if err != nil {
		return err
	}
	if len(manifest) > MaxManifest {
		return fmt.Errorf("manifest of %s has %d bytes, limit %d: %w", m.Name(), len(manifest), int64(MaxManifest), ErrIntegrity)
	}
	// One goroutine beside ours: the bytes do not depend on the number of
	// processors.
	enc, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithWindowSize(window(m)), zstd.WithEncoderConcurrency(2), zstd.WithConcurrentBlocks(false))
	if err != nil {
		return fmt.Errorf("set up compression: %w", err)
	}
	a := &archive{ctx: ctx, m: m, tw: tar.NewWriter(&blocked{enc: enc}), open: open, progress: progress, total: m.Size()}
	if err := a.write(manifest); err != nil {
		_ = enc.Close()
		return fmt.Errorf("write archive of %s: %w", m.Name(), err)
	}
	if err := enc.Close(); err != nil {
		return fmt.Errorf("write archive of %s: %w", m.Name(), err)
	}
	return nil
}

// window is the smallest power of two that sees the whole package, within
// bounds: a small package then needs little memory to unpack.
func window(m *Manifest) int {
	n := m.Size() + int64(len(m.Files))*1024
	if n >= MaxWindow {
		return MaxWindow
	}
	return max(minWindow, 1<<bits.Len64(uint64(n)))
}

// blocked ends a zstd block after every blockSize bytes, however they come.
type blocked struct {
	enc  *zstd.Encoder
	fill int
}

func (b *blocked) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		k, err := b.enc.Write(p[:min(len(p), blockSize-b.fill)])
		n += k
		if err != nil {
			return n, err
		}
		p = p[k:]
		if b.fill += k; b.fill == blockSize {
			b.fill = 0
			if err := b.enc.Flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

type archive struct {
	ctx         context.Context
	m           *Manifest
	tw          *tar.Writer
	open        func(*File) (io.ReadCloser, error)
	progress    func(done, total int64)
	done, total int64
}

func (a *archive) write(manifest []byte) error {
	top := a.m.DirName() + "/"
	if err := a.header(tar.Header{Typeflag: tar.TypeDir, Name: top, Mode: 0o755}); err != nil {
		return err
	}
	if err := a.header(tar.Header{Typeflag: tar.TypeReg, Name: top + ManifestName, Mode: 0o644, Size: int64(len(manifest))}); err != nil {
		return err
	}
	if _, err := a.tw.Write(manifest); err != nil {
		return err
	}
	for i := range a.m.Files {
		if err := a.entry(top, &a.m.Files[i]); err != nil {
			return err
		}
	}
	return a.tw.Close()
}

func (a *archive) header(h tar.Header) error {
	h.ModTime = time.Unix(a.m.SourceDateEpoch, 0)
	return a.tw.WriteHeader(&h)
}

func (a *archive) entry(top string, f *File) error {
	switch f.Type {
	case TypeDir:
		return a.header(tar.Header{Typeflag: tar.TypeDir, Name: top + f.Path + "/", Mode: int64(f.Mode)})
	case TypeLink:
		return a.header(tar.Header{Typeflag: tar.TypeSymlink, Name: top + f.Path, Linkname: f.Target, Mode: 0o777})
	}
	if err := a.header(tar.Header{Typeflag: tar.TypeReg, Name: top + f.Path, Mode: int64(f.Mode), Size: f.Size}); err != nil {
		return err
	}
	r, err := a.open(f)
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(a.tw, sum), io.TeeReader(io.LimitReader(&ctxReader{a.ctx, r}, f.Size), a))
	if err != nil {
		return fmt.Errorf("copy %s: %w", f.Path, err)
	}
	if n == f.Size && hex.EncodeToString(sum.Sum(nil)) == f.SHA256 {
		// It may have grown.
		if _, err = io.ReadFull(r, make([]byte, 1)); err == io.EOF {
			return nil
		}
	}
	return fmt.Errorf("%s %w: try again when nothing writes to it", f.Path, ErrChanged)
}

// Write counts content for the progress.
func (a *archive) Write(p []byte) (int, error) {
	a.done += int64(len(p))
	if a.progress != nil {
		a.progress(a.done, a.total)
	}
	return len(p), nil
}

// ctxReader ends a copy when its context does.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

package packager

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// MaxWindow is the largest zstd window written and read, in bytes. It is what
// `zstd -d` accepts without an option.
const MaxWindow = 128 << 20

// ErrChanged says that a content is not what the manifest says.
var ErrChanged = errors.New("changed while it was read")

// ArchiveOptions say how an archive is made. The zero value is the default.
type ArchiveOptions struct {
	// Level is how hard to compress; "" means LevelDefault.
	Level Level
	// Progress is told the bytes of content written and their total; it may be
	// nil.
	Progress func(done, total int64)
}

// WriteArchive writes the package as tar.zst to w: the top folder, the
// manifest, then every entry in the manifest's order, with the content that
// open returns for it. The same manifest and content give the same bytes,
// whatever the machine. A content that is not what the manifest says is an
// error that wraps [ErrChanged]: the file changed after the manifest was made.
// LevelBest without the program that it needs wraps [ErrNoCompressor].
func WriteArchive(ctx context.Context, w io.Writer, m *Manifest, open func(*File) (io.ReadCloser, error), o ArchiveOptions) error {
	manifest, err := m.Encode()
	if err != nil {
		return err
	}
	// What would not be installed without an option is not made.
	limits := Limits{}.withDefaults()
	if err := errors.Join(limits.Check(m), limits.checkManifestSize(int64(len(manifest)))); err != nil {
		return fmt.Errorf("write archive of %s: %w: %w", m.Name(), err, ErrIntegrity)
	}
	out := &counter{w: w}
	enc, err := compressor(ctx, out, o.Level, windowSize(m))
	if err != nil {
		return err
	}
	a := &archive{ctx: ctx, m: m, tw: tar.NewWriter(enc), open: open, progress: o.Progress, total: m.Size()}
	err = a.write(manifest)
	// A compressor that failed says why when it is closed.
	if cerr := enc.Close(); cerr != nil && (err == nil || errors.Is(err, syscall.EPIPE)) {
		err = cerr
	}
	if err == nil {
		err = limits.checkRatio(out.n, m.Size(), m.Size())
	}
	if err != nil {
		return fmt.Errorf("write archive of %s: %w", m.Name(), err)
	}
	return nil
}

// counter counts the bytes written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
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

package packager

import (
	"archive/tar"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

const (
	// headRoom bounds what may stand before and around the manifest, and
	// entryRoom what an entry may take beside its content: tar headers with
	// two long names. tailRoom bounds the zeros that tar programs pad with.
	headRoom  = 64 << 10
	entryRoom = 16 << 10
	tailRoom  = 64 << 10

	// decoders is how many blocks are decompressed ahead of what is read. More
	// than one also decodes on a processor of its own.
	decoders = 4
)

// Reader reads a package's archive from a stream that may be hostile. It hands
// out entries only as the manifest lists them.
type Reader struct {
	src      *source
	zr       *zstd.Decoder
	in       *meter
	blocks   *tarBlocks
	tr       *tar.Reader
	limits   Limits
	manifest *Manifest
	raw      []byte
	next     int // index of the next entry
}

// NewReader reads as far as the manifest. Errors about what the bytes say wrap
// [ErrIntegrity], [*LimitError] included; an error of r itself does not. The
// caller closes the Reader.
func NewReader(r io.Reader, limits Limits) (*Reader, error) {
	limits = limits.withDefaults()
	src := &source{r: r}
	buf := bufio.NewReaderSize(src, 256<<10)
	if err := checkMagic(buf); err != nil {
		return nil, src.blame(err)
	}
	// The frames are checked on their way to the decoder, which would allocate
	// first. Its own limit cannot be a smaller one.
	window := uint64(min(max(limits.Window, 1<<10), 1<<40))
	zr, err := zstd.NewReader(&frames{r: buf, window: limits.Window}, zstd.WithDecoderMaxWindow(window),
		zstd.WithDecoderMaxMemory(max(window, maxBytes)), zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(decoders))
	if err != nil {
		return nil, src.blame(fmt.Errorf("begin to decompress: %w", err))
	}
	in := &meter{r: zr, limit: limits.manifest() + headRoom, packed: &src.n, limits: limits}
	blocks := &tarBlocks{r: in}
	a := &Reader{src: src, zr: zr, in: in, blocks: blocks, tr: tar.NewReader(blocks), limits: limits}
	if err := a.readManifest(); err != nil {
		a.Close()
		return nil, src.blame(err)
	}
	return a, nil
}

// checkMagic tells what is no archive at all from a damaged one.
func checkMagic(buf *bufio.Reader) error {
	b, err := buf.Peek(4)
	switch {
	case len(b) == 0 && err == io.EOF:
		return errors.New("archive is empty")
	case err != nil && err != io.EOF:
		return err
	case len(b) < 4:
		return fmt.Errorf("archive is cut off after %d bytes", len(b))
	}
	switch magic := binary.LittleEndian.Uint32(b); {
	case magic != frameMagic && magic&skippableMagicMask != skippableMagic:
		return fmt.Errorf("not a zstd archive: it begins with %x", b)
	}
	return nil
}

// Close frees the decoder. It does not close the underlying reader.
func (a *Reader) Close() { a.zr.Close() }

// Manifest is the package's manifest.
func (a *Reader) Manifest() *Manifest { return a.manifest }

func (a *Reader) readManifest() error {
	top, err := a.header()
	if err == io.EOF {
		return errors.New("archive holds no entries")
	}
	if err != nil {
		return err
	}
	dir := strings.TrimSuffix(top.Name, "/")
	if top.Typeflag != tar.TypeDir || !strings.HasPrefix(dir, DirPrefix) || strings.Contains(dir, "/") {
		return fmt.Errorf("archive begins with %q, not with a folder %s<flavour>-<id>: not a package", top.Name, DirPrefix)
	}
	h, err := a.header()
	if err != nil {
		return fmt.Errorf("archive has no manifest: %w", noEOF(err))
	}
	if h.Name != dir+"/"+ManifestName || h.Typeflag != tar.TypeReg {
		return fmt.Errorf("archive has %q where %s belongs: not a package", h.Name, ManifestName)
	}
	if err := a.limits.checkManifestSize(h.Size); err != nil {
		return err
	}
	raw, err := io.ReadAll(a.tr)
	if err != nil {
		return fmt.Errorf("read manifest: %w", err)
	}
	m, err := DecodeManifest(raw)
	if err != nil {
		return err
	}
	if err := a.limits.Check(m); err != nil {
		return err
	}
	if m.Imported {
		return errors.New("manifest is that of an imported directory")
	}
	if m.DirName() != dir {
		return fmt.Errorf("manifest is that of %s, the folder is %q", m.DirName(), dir)
	}
	if err := checkHeader(top, m.DirName()+"/", &File{Type: TypeDir, Mode: 0o755}); err != nil {
		return err
	}
	if err := checkHeader(h, m.DirName()+"/"+ManifestName, &File{Type: TypeFile, Mode: 0o644, Size: h.Size}); err != nil {
		return err
	}
	a.manifest, a.raw = m, raw
	a.in.limit = a.in.n + m.Size() + int64(len(m.Files))*(entryRoom+tarBlock) + tailRoom
	a.in.total = m.Size()
	return nil
}

// Next returns the next entry; its content is then read with [Reader.Read].
// After the last one it checks the end of the archive and returns io.EOF.
func (a *Reader) Next() (*File, error) {
	f, err := a.advance()
	if err != nil && err != io.EOF {
		return nil, a.src.blame(err)
	}
	return f, err
}

func (a *Reader) advance() (*File, error) {
	h, err := a.header()
	if a.next == len(a.manifest.Files) {
		switch err {
		case io.EOF:
			return nil, a.tail()
		case nil:
			return nil, fmt.Errorf("archive has %q, which the manifest does not list", h.Name)
		}
		return nil, err
	}
	f := &a.manifest.Files[a.next]
	if err != nil {
		return nil, fmt.Errorf("archive ends before %q: %w", f.Path, noEOF(err))
	}
	name := a.manifest.DirName() + "/" + f.Path
	if f.Type == TypeDir {
		name += "/"
	}
	if err := checkHeader(h, name, f); err != nil {
		return nil, err
	}
	a.next++
	return f, nil
}

// Read reads the content of the entry that Next returned. It does not check
// the digest.
func (a *Reader) Read(p []byte) (int, error) {
	n, err := a.tr.Read(p)
	if err != nil && err != io.EOF {
		return n, a.src.blame(fmt.Errorf("read content: %w", err))
	}
	return n, err
}

// header returns the next tar header, over global headers that say nothing.
func (a *Reader) header() (*tar.Header, error) {
	for {
		h, err := a.tr.Next()
		if err == io.EOF {
			return nil, io.EOF
		}
		if err != nil {
			return nil, fmt.Errorf("read archive: %w", err)
		}
		if h.Typeflag != tar.TypeXGlobalHeader {
			return h, nil
		}
	}
}

// tail is reached when the tar reader saw the end. That reader takes a cut
// for an end, so this looks again: the end was there, at most zeros follow,
// and the decoder has nothing more and no complaint.
func (a *Reader) tail() error {
	if !a.blocks.ended() {
		return errors.New("archive is cut off: no end-of-archive blocks")
	}
	buf := make([]byte, 4<<10)
	for rest := 0; ; {
		n, err := a.blocks.Read(buf)
		if rest += n; rest > tailRoom {
			return errors.New("archive has too much padding after its end")
		}
		if err == io.EOF {
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("read the end of the archive: %w", err)
		}
	}
}

// checkHeader compares a tar header with what the manifest says.
func checkHeader(h *tar.Header, name string, f *File) error {
	want := tar.Header{Typeflag: tar.TypeReg, Mode: int64(f.Mode), Size: f.Size}
	switch f.Type {
	case TypeDir:
		want.Typeflag = tar.TypeDir
	case TypeLink:
		want.Typeflag, want.Mode, want.Linkname = tar.TypeSymlink, 0o777, f.Target
	}
	switch {
	case h.Name != name:
		return fmt.Errorf("archive has %q where the manifest lists %q", h.Name, name)
	case h.Typeflag != want.Typeflag:
		return fmt.Errorf("%q is of tar type %q, the manifest says %q", h.Name, h.Typeflag, want.Typeflag)
	case h.Mode != want.Mode:
		return fmt.Errorf("%q has mode %04o, the manifest says %04o", h.Name, h.Mode, want.Mode)
	case h.Size != want.Size:
		return fmt.Errorf("%q has %d bytes, the manifest says %d", h.Name, h.Size, want.Size)
	case h.Linkname != want.Linkname:
		return fmt.Errorf("%q points to %q, the manifest says %q", h.Name, h.Linkname, want.Linkname)
	}
	return nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// source remembers its own error, to tell a bad disk from a bad archive. The
// decoder reads it from a goroutine of its own.
type source struct {
	r   io.Reader
	n   atomic.Int64
	err atomic.Pointer[error]
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n.Add(int64(n))
	if err != nil && err != io.EOF {
		s.err.Store(&err)
	}
	return n, err
}

func (s *source) blame(err error) error {
	if cause := s.err.Load(); cause != nil {
		return fmt.Errorf("read archive: %w", *cause)
	}
	if errors.Is(err, ErrIntegrity) {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("archive is cut off, or still being copied: %w", err)
	}
	return fmt.Errorf("%w: %w", err, ErrIntegrity)
}

// meter counts what was read and ends it at a limit, or when too much comes
// out of too little.
type meter struct {
	r        io.Reader
	n, limit int64
	packed   *atomic.Int64
	limits   Limits
	total    int64
}

func (c *meter) Read(p []byte) (int, error) {
	if c.n >= c.limit {
		return 0, fmt.Errorf("archive unpacks to more than its manifest allows (%d bytes)", c.limit)
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.limit-c.n)])
	c.n += int64(n)
	if rerr := c.limits.checkRatio(c.packed.Load(), c.n, max(c.total, c.n)); rerr != nil {
		return 0, rerr
	}
	return n, err
}

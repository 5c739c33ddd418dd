package packager

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Level is how hard an archive is compressed.
type Level string

// Levels. Each gives the same bytes for the same input; LevelBest also depends
// on the version of zstd(1).
const (
	// LevelFast is for a build that is tried once: on an engine tree a fifth
	// of the time of LevelDefault for 15 % more bytes.
	LevelFast Level = "fast"
	// LevelDefault is what "" means.
	LevelDefault Level = "default"
	// LevelBest is for what many download: a tenth fewer bytes than
	// LevelDefault, in eight times its time. The program zstd does it.
	LevelBest Level = "best"
)

// Levels lists the levels from quick to small.
func Levels() []Level { return []Level{LevelFast, LevelDefault, LevelBest} }

// CheckLevel says what is wrong with a level.
func CheckLevel(l Level) error {
	if l == "" || slices.Contains(Levels(), l) {
		return nil
	}
	return fmt.Errorf("compression level %q is not fast, default or best", l)
}

// ErrNoCompressor says that the program for LevelBest is missing.
var ErrNoCompressor = errors.New("no program zstd")

const (
	minWindow = 1 << 20
	// blockSize is how much content shares one set of entropy tables. On
	// engine trees 32 KiB give 1 % less than the encoder's own 128 KiB, in no
	// more time: machine code changes its statistics from section to section.
	blockSize = 32 << 10
)

// compressor compresses to w what is written to it. Close ends the stream, and
// abandons it if that can only fail.
func compressor(ctx context.Context, w io.Writer, l Level, window int) (io.WriteCloser, error) {
	if err := CheckLevel(l); err != nil {
		return nil, err
	}
	level := zstd.SpeedBestCompression
	switch l {
	case LevelBest:
		return startZstd(ctx, w, window)
	case LevelFast:
		level = zstd.SpeedDefault
	}
	// One goroutine beside ours: the bytes do not depend on the number of
	// processors.
	enc, err := zstd.NewWriter(w, zstd.WithEncoderLevel(level),
		zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(2), zstd.WithConcurrentBlocks(false))
	if err != nil {
		return nil, fmt.Errorf("set up compression: %w", err)
	}
	return &blocked{enc: enc}, nil
}

// windowSize is the smallest power of two that sees the whole package, within
// bounds: a small package then needs little memory to unpack.
func windowSize(m *Manifest) int {
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

func (b *blocked) Close() error { return b.enc.Close() }

// zstdProgram is zstd(1), fed on its standard input.
type zstdProgram struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *sink
	stderr strings.Builder
}

// sink remembers why it could not be written to: the program only knows that
// nobody reads what it says.
type sink struct {
	w   io.Writer
	err error
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.w.Write(b)
	if err != nil {
		s.err = err
	}
	return n, err
}

func startZstd(ctx context.Context, w io.Writer, window int) (*zstdProgram, error) {
	// One thread: with more the bytes depend on how many there are.
	p := &zstdProgram{out: &sink{w: w}, cmd: exec.CommandContext(ctx, "zstd", "-q", "-c", "-19", "-T1", fmt.Sprintf("--long=%d", bits.Len(uint(window))-1))}
	p.cmd.Env = []string{} // ZSTD_CLEVEL and its like
	p.cmd.Stdout, p.cmd.Stderr = p.out, &p.stderr
	p.cmd.WaitDelay = time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("compression level best: %w: install it (package zstd), or take level default", ErrNoCompressor)
		}
		return nil, fmt.Errorf("start zstd: %w", err)
	}
	return p, nil
}

func (p *zstdProgram) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p *zstdProgram) Close() error {
	err := p.in.Close()
	werr := p.cmd.Wait()
	if p.out.err != nil {
		return p.out.err
	}
	if werr != nil {
		return fmt.Errorf("zstd: %w: %s", werr, strings.TrimSpace(p.stderr.String()))
	}
	return err
}

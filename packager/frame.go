package packager

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// frames passes a zstd stream on and follows its frames by their headers
// (RFC 8878, section 3.1). It lets only frames with content through: what a
// skippable frame holds no digest covers and no decoder shows, so that
// anything could be hung on an archive unseen.
type frames struct {
	r      io.Reader
	window int64 // the largest that a frame may need, 0 for any
	state  frameState
	field  []byte // of a header, as far as it is read
	skip   int64  // bytes that say nothing about the frames
	sum    bool   // a checksum ends this frame
}

type frameState int

const (
	atMagic frameState = iota
	atDescriptor
	atWindow
	atBlock
)

const (
	frameMagic         = 0xFD2FB528
	skippableMagic     = 0x184D2A50
	skippableMagicMask = 0xFFFFFFF0
)

func (f *frames) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if ferr := f.follow(p[:n]); ferr != nil {
		return 0, ferr
	}
	return n, err
}

func (f *frames) follow(b []byte) error {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, int64(len(b)))
			b, f.skip = b[n:], f.skip-n
			continue
		}
		f.field, b = append(f.field, b[0]), b[1:]
		if err := f.step(); err != nil {
			return err
		}
	}
	return nil
}

// step takes a field once it is whole.
func (f *frames) step() error {
	switch {
	case f.state == atMagic && len(f.field) == 4:
		switch magic := binary.LittleEndian.Uint32(f.field); {
		case magic&skippableMagicMask == skippableMagic:
			return errors.New("archive has a skippable frame, which nothing checks: compress it anew without")
		case magic != frameMagic:
			return fmt.Errorf("archive has bytes that are no zstd frame (%x…)", f.field)
		}
		f.state = atDescriptor
	case f.state == atDescriptor:
		f.sum = f.field[0]&4 != 0
		f.state = atWindow
		return nil
	case f.state == atWindow && len(f.field) == 1+headerRest(f.field[0]):
		if need := windowOf(f.field); f.window > 0 && need > uint64(f.window) {
			return &LimitError{Limit: LimitWindow, Need: int64(min(need, 1<<62)), Allowed: f.window}
		}
		f.state = atBlock
	case f.state == atBlock && len(f.field) == 3:
		h := uint32(f.field[0]) | uint32(f.field[1])<<8 | uint32(f.field[2])<<16
		f.skip = int64(h >> 3)
		if h>>1&3 == 1 { // one byte, repeated
			f.skip = 1
		}
		if h&1 == 1 {
			f.state = atMagic
			if f.sum {
				f.skip += 4
			}
		}
	default:
		return nil
	}
	f.field = f.field[:0]
	return nil
}

// headerRest is how many bytes of a frame's header follow its descriptor.
func headerRest(d byte) int {
	single := d >> 5 & 1
	return int([]byte{0, 1, 2, 4}[d&3]) + int([]byte{single, 2, 4, 8}[d>>6]) + int(1-single)
}

// windowOf is the memory that a frame needs by its header, in bytes: its
// window, or all of its content if it is a single segment.
func windowOf(header []byte) uint64 {
	d, rest := header[0], header[1:]
	if d>>5&1 == 0 {
		base := uint64(1) << (10 + rest[0]>>3)
		return base + base/8*uint64(rest[0]&7)
	}
	rest = rest[[]int{0, 1, 2, 4}[d&3]:]
	var size [8]byte
	copy(size[:], rest)
	n := binary.LittleEndian.Uint64(size[:])
	if len(rest) == 2 {
		n += 256
	}
	return n
}

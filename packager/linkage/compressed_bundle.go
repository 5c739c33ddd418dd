package linkage

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// unpacker reads the lists of compressed bundles.
type unpacker struct {
	spent *budget // what comes out counts as read, too
	zstd  *zstd.Decoder
}

var errNoBundle = errors.New("no compressed bundle")

// list reads the ids of a compressed bundle; next is where it ends.
func (u *unpacker) list(f *file, at, end uint64) (ids []string, next uint64) {
	next = at + uint64(len(compressedMagic))
	b, err := f.bytes(at, int(min(end-at, maxHeadBytes)))
	if err != nil {
		return nil, end
	}
	// Magic number, version and method, then by version the sizes, with and
	// without compression, and a digest.
	if len(b) < 8 {
		return nil, next
	}
	head, total := uint64(0), end-at
	switch le := binary.LittleEndian; {
	case le.Uint16(b[4:]) == 1 && len(b) >= 20:
		head = 20
	case le.Uint16(b[4:]) == 2 && len(b) >= 24:
		head, total = 24, uint64(le.Uint32(b[8:]))
	case le.Uint16(b[4:]) == 3 && len(b) >= 32:
		head, total = 32, le.Uint64(b[8:])
	default:
		return nil, next
	}
	if total < head || total > end-at {
		return nil, next
	}
	plain, err := u.unpack(binary.LittleEndian.Uint16(b[6:]), io.NewSectionReader(f.r, int64(at+head), int64(total-head)))
	if err != nil {
		return nil, next
	}
	ids, _, _ = parseList(plain)
	if total < end-at {
		next = at + total
	}
	return ids, next
}

// unpack returns the beginning of what r holds, as far as a list may reach.
func (u *unpacker) unpack(method uint16, r io.Reader) ([]byte, error) {
	var plain io.Reader
	switch method {
	case 0:
		z, err := zlib.NewReader(r)
		if err != nil {
			return nil, err
		}
		plain = z
	case 1:
		narrow, err := narrowWindow(r)
		if err != nil {
			return nil, err
		}
		if u.zstd == nil {
			u.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(listWindow))
			if err != nil {
				return nil, err
			}
		}
		if err := u.zstd.Reset(narrow); err != nil {
			return nil, err
		}
		plain = u.zstd
	default:
		return nil, errNoBundle
	}
	if u.spent.left -= maxList; u.spent.left < 0 {
		return nil, errSpent
	}
	b := make([]byte, maxList)
	n, err := io.ReadFull(plain, b)
	if n == 0 {
		return nil, err
	}
	return b[:n], nil // a frame that is damaged further on is none of ours
}

// listWindow is how far back the beginning of a frame can refer; a list never
// reaches further.
const listWindow = 1 << 20

// narrowWindow gives a zstd frame a small window. The bundler writes frames
// whose window is all of their content, which may be gigabytes, and a decoder
// would make room for that; the first megabyte of content refers to nothing
// that is further away.
func narrowWindow(r io.Reader) (io.Reader, error) {
	var b [5]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(b[:]) != 0xfd2fb528 {
		return nil, fmt.Errorf("no zstd frame: %w", errNoBundle)
	}
	// RFC 8878, 3.1.1.1.1: the descriptor tells how long the header is.
	descriptor := b[4]
	single := descriptor>>5&1 == 1
	n := []int64{0, 1, 2, 4}[descriptor&3] + []int64{0, 2, 4, 8}[descriptor>>6]
	if single && descriptor>>6 == 0 {
		n++
	}
	if !single {
		n++
	}
	if _, err := io.CopyN(io.Discard, r, n); err != nil {
		return nil, err
	}
	const window = 10 << 3 // 2^(10+10) bytes, listWindow
	return io.MultiReader(bytes.NewReader([]byte{b[0], b[1], b[2], b[3], 0, window}), r), nil
}

package packager

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

// TestFramesFollowsEveryEncoder holds the walk along the headers to what real
// encoders write: with and without checksum, content size and single segment,
// raw, repeated and compressed blocks, in reads of every size.
func TestFramesFollowsEveryEncoder(t *testing.T) {
	noise := make([]byte, 300<<10)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	contents := map[string][]byte{
		"nothing": nil, "a byte": {1}, "zeros": make([]byte, 1<<20), "noise": noise,
		"text": bytes.Repeat([]byte("the quick brown fox "), 50000),
	}
	var all, plain []byte
	for name, content := range contents {
		for _, options := range [][]zstd.EOption{
			nil, {zstd.WithEncoderCRC(false)}, {zstd.WithSingleSegment(true)}, {zstd.WithEncoderLevel(zstd.SpeedBestCompression)},
			{zstd.WithZeroFrames(true)}, {zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false)},
		} {
			w, err := zstd.NewWriter(nil, options...)
			if err != nil {
				t.Fatal(err)
			}
			b := w.EncodeAll(content, nil)
			var stream bytes.Buffer
			w.Reset(&stream)
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			b = append(b, stream.Bytes()...)
			f := &frames{r: iotest.OneByteReader(bytes.NewReader(b))}
			if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, b) || f.state != atMagic || f.skip != 0 || len(f.field) != 0 {
				t.Errorf("%s: %v, ends in state %d with %d to skip", name, err, f.state, f.skip)
			}
			all, plain = append(all, b...), append(append(plain, content...), content...)
		}
	}
	r, err := zstd.NewReader(&frames{r: bytes.NewReader(all)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("%d bytes of %d, %v", len(got), len(plain), err)
	}
}

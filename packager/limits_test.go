package packager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// readAll reads a package and throws its contents away.
func readAll(b []byte, limits Limits) error {
	r, err := NewReader(bytes.NewReader(b), limits)
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		if _, err := r.Next(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return err
		}
	}
}

// rawFrame holds b uncompressed in a frame with that window descriptor.
func rawFrame(b []byte, window byte) []byte {
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window}
	for {
		n := min(len(b), 1<<16)
		h := uint32(n) << 3
		if n == len(b) {
			h |= 1
		}
		out = append(append(out, byte(h), byte(h>>8), byte(h>>16)), b[:n]...)
		if b = b[n:]; len(b) == 0 {
			return out
		}
	}
}

// TestLimits raises each limit as far as the error says, and no further.
func TestLimits(t *testing.T) {
	m, texts := example(), map[string]string{}
	for k, v := range contents {
		texts[k] = v
	}
	long := strings.Repeat("d/", 700)
	for i := 2; i <= len(long); i += 2 {
		m.Files = append(m.Files, File{Path: long[:i-1], Type: TypeDir, Mode: 0o755})
	}
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	plain := tarOf(t, crafts(t, m, texts))
	all := Limits{Path: len(long)}
	for name, c := range map[string]struct {
		b       []byte
		limits  Limits
		limit   Limit
		need    int64
		message string
		raise   func(*Limits, int64)
	}{
		"files":  {compress(t, plain), Limits{Path: len(long), Files: 700}, LimitFiles, int64(len(m.Files)), "limit 700", func(l *Limits, n int64) { l.Files = int(n) }},
		"bytes":  {compress(t, plain), Limits{Path: len(long), Bytes: 10}, LimitBytes, m.Size(), "limit 10", func(l *Limits, n int64) { l.Bytes = n }},
		"path":   {compress(t, plain), Limits{}, LimitPath, int64(len(long) - 1), "limit 1024", func(l *Limits, n int64) { l.Path = int(n) }},
		"window": {rawFrame(plain, 17<<3|1), all, LimitWindow, 144 << 20, "needs a zstd window of 144 MiB, limit 128 MiB", func(l *Limits, n int64) { l.Window = n }},
		"window of another frame": {slices.Concat(rawFrame(plain[:5000], 17<<3), rawFrame(plain[5000:], 17<<3|7)), all, LimitWindow, 240 << 20, "limit 128 MiB",
			func(l *Limits, n int64) { l.Window = n }},
		"a smaller window": {rawFrame(plain, 7<<3), Limits{Path: len(long), Window: 1 << 16}, LimitWindow, 128 << 10, "limit 1 MiB", func(l *Limits, n int64) { l.Window = n }},
	} {
		t.Run(name, func(t *testing.T) {
			err := readAll(c.b, c.limits)
			var limit *LimitError
			if !errors.As(err, &limit) || !errors.Is(err, ErrIntegrity) || limit.Limit != c.limit || limit.Need != c.need || !strings.Contains(err.Error(), c.message) {
				t.Fatalf("got %v", err)
			}
			raised := c.limits
			c.raise(&raised, limit.Need-1)
			if err := readAll(c.b, raised); !errors.As(err, &limit) {
				t.Errorf("a little less: %v", err)
			}
			c.raise(&raised, limit.Need)
			if err := readAll(c.b, raised); err != nil {
				t.Errorf("raised: %v", err)
			}
		})
	}
	if err := readAll(rawFrame(plain, 17<<3), all); err != nil {
		t.Errorf("128 MiB: %v", err)
	}
	if b, err := m.Encode(); err != nil {
		t.Error(err)
	} else if _, err := DecodeManifest(b); err != nil {
		t.Errorf("what was let in cannot be loaded: %v", err)
	}
	if err := WriteArchive(context.Background(), io.Discard, m, opener(texts), ArchiveOptions{}); !errors.Is(err, ErrIntegrity) || !strings.Contains(err.Error(), "a path of 1399 bytes") {
		t.Errorf("written: %v", err)
	}
}

// TestWindowAllocatesNothing refuses a window before any memory is taken.
func TestWindowAllocatesNothing(t *testing.T) {
	for name, b := range map[string][]byte{
		"2 GiB": frame(t, 21<<3), "3.75 GiB": frame(t, 21<<3|7), "the largest": frame(t, 0xff),
		"one segment of 10 GiB": {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0x80, 2, 0, 0, 0, 1, 0, 0},
		"one segment of 16 EiB": {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0},
		"in a second frame":     slices.Concat(compress(t, make([]byte, 512)), frame(t, 21<<3)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := readAll(b, Limits{})
		runtime.ReadMemStats(&after)
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Limit != LimitWindow {
			t.Errorf("%s: got %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d bytes were allocated", name, n)
		}
	}
}

func TestLimitRatio(t *testing.T) {
	const size = RatioSlack + 64<<20
	m := &Manifest{Schema: Schema, Flavour: "hrx", ID: "3092596", Files: []File{{Path: "zeros", Type: TypeFile, Mode: 0o644, Size: size}}}
	sum := sha256.New()
	if _, err := io.CopyN(sum, zeroReader{}, size); err != nil {
		t.Fatal(err)
	}
	m.Files[0].SHA256 = hex.EncodeToString(sum.Sum(nil))
	open := func(*File) (io.ReadCloser, error) { return io.NopCloser(io.LimitReader(zeroReader{}, size)), nil }
	var limit *LimitError
	if err := WriteArchive(context.Background(), io.Discard, m, open, ArchiveOptions{Level: LevelFast}); !errors.As(err, &limit) || limit.Limit != LimitRatio {
		t.Errorf("written: %v", err)
	}
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf)
	if err != nil {
		t.Fatal(err)
	}
	head := tarOf(t, append(crafts(t, m, nil)[:2], craft{}))
	head = head[:len(head)-2*tarBlock-tarBlock]
	if _, err := io.Copy(w, io.MultiReader(bytes.NewReader(head), bytes.NewReader(raw(top+"zeros", '0', size)), io.LimitReader(zeroReader{}, size+1024))); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	err = readAll(buf.Bytes(), Limits{})
	if !errors.As(err, &limit) || limit.Limit != LimitRatio || !errors.Is(err, ErrIntegrity) {
		t.Fatalf("got %v", err)
	}
	if err := readAll(buf.Bytes(), Limits{Ratio: int(limit.Need)}); err != nil {
		t.Errorf("raised to %d: %v", limit.Need, err)
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestMostFiles writes and reads as many entries as the default allows.
func TestMostFiles(t *testing.T) {
	m := &Manifest{Schema: Schema, Flavour: "hrx", ID: "3092596"}
	texts, empty := map[string]string{}, sha("")
	for i := range DefaultFiles {
		name := fmt.Sprintf("f%05x", i)
		m.Files, texts[name] = append(m.Files, File{Path: name, Type: TypeFile, Mode: 0o644, SHA256: empty}), ""
	}
	var buf bytes.Buffer
	if err := WriteArchive(context.Background(), &buf, m, opener(texts), ArchiveOptions{Level: LevelFast}); err != nil {
		t.Fatal(err)
	}
	if err := readAll(buf.Bytes(), Limits{}); err != nil {
		t.Error(err)
	}
	m.Files, texts["g"] = append(m.Files, File{Path: "g", Type: TypeFile, Mode: 0o644, SHA256: empty}), ""
	var limit *LimitError
	if err := WriteArchive(context.Background(), io.Discard, m, opener(texts), ArchiveOptions{Level: LevelFast}); !errors.As(err, &limit) || limit.Limit != LimitFiles {
		t.Errorf("one more: %v", err)
	}
	// A manifest of so many names that it is too long by itself.
	for i := range m.Files {
		m.Files[i].Path = strings.Repeat("g", 200) + m.Files[i].Path
	}
	m.Files = m.Files[:DefaultFiles]
	if err := WriteArchive(context.Background(), io.Discard, m, opener(texts), ArchiveOptions{Level: LevelFast}); !errors.As(err, &limit) || limit.What != ManifestName {
		t.Errorf("a long manifest: %v", err)
	}
}

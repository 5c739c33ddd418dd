package linkage

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/1bit-systems/pkg/internal/testelf"
)

// bundle is what clang-offload-bundler writes for these ids: the list, and
// code of size bytes each, aligned.
func bundle(size int, ids ...string) []byte {
	var list bytes.Buffer
	le := binary.LittleEndian
	list.WriteString(bundleMagic)
	list.Write(le.AppendUint64(nil, uint64(len(ids))))
	head := len(bundleMagic) + 8
	for _, id := range ids {
		head += 24 + len(id)
	}
	at := (head + 4095) &^ 4095
	var code []byte
	for i, id := range ids {
		list.Write(le.AppendUint64(nil, uint64(at+len(code))))
		list.Write(le.AppendUint64(nil, uint64(size)))
		list.Write(le.AppendUint64(nil, uint64(len(id))))
		list.WriteString(id)
		// Code may hold the magic numbers too: it is passed over whole.
		code = append(code, bytes.Repeat([]byte{byte(i)}, size-len(compressedMagic))...)
		code = append(code, compressedMagic...)
	}
	return append(append(list.Bytes(), make([]byte, at-list.Len())...), code...)
}

// compressed is a compressed bundle of that version.
func compressed(t testing.TB, plain []byte, version uint16, method uint16) []byte {
	t.Helper()
	var packed []byte
	if method == 0 {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		if _, err := z.Write(plain); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		packed = b.Bytes()
	} else {
		z, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true), zstd.WithEncoderCRC(true))
		if err != nil {
			t.Fatal(err)
		}
		packed = z.EncodeAll(plain, nil)
	}
	le := binary.LittleEndian
	b := le.AppendUint16(le.AppendUint16([]byte(compressedMagic), version), method)
	switch version {
	case 1:
		b = le.AppendUint32(b, uint32(len(plain)))
	case 2:
		b = le.AppendUint32(le.AppendUint32(b, uint32(24+len(packed))), uint32(len(plain)))
	default:
		b = le.AppendUint64(le.AppendUint64(b, uint64(32+len(packed))), uint64(len(plain)))
	}
	return append(append(b, "digest!!"...), packed...)
}

const hip = "hipv4-amdgcn-amd-amdhsa--"

func TestGPUTargets(t *testing.T) {
	one := bundle(5000, "host-x86_64-unknown-linux-gnu-", hip+"gfx1151", hip+"gfx90a:sramecc+:xnack-", "hip-spirv64-amd-amdhsa--amdgcnspirv", "openmp-amdgcn-amd-amdhsa-gfx906")
	oneIs := []string{"amdgcnspirv", "gfx1151", "gfx906", "gfx90a"}
	two := bundle(9000, "host-x86_64-unknown-linux--", hip+"gfx1100", hip+"gfx1151", hip+"gfx12-generic")
	bothAre := []string{"amdgcnspirv", "gfx1100", "gfx1151", "gfx12-generic", "gfx906", "gfx90a"}
	pad := make([]byte, 3000)
	fat := func(parts ...[]byte) []byte {
		return testelf.File{Soname: "libggml-hip.so", Sections: []testelf.Section{
			{Name: ".text", Data: []byte(bundleMagic)}, {Name: ".hip_fatbin", Data: slices.Concat(parts...)}, {Name: ".data", Data: one},
		}}.Bytes()
	}
	narrow := testelf.File{Narrow: true, Machine: elf.EM_386, Sections: []testelf.Section{{Name: ".hip_fatbin", Data: one}}}.Bytes()
	damaged := fat(one)
	binary.LittleEndian.PutUint64(damaged[40:], uint64(len(damaged)-10)) // where the section headers are
	for _, tt := range []struct {
		name string
		data []byte
		want []string
	}{
		{"code object", testelf.File{Machine: elf.EM_AMDGPU, Flags: 0x54a}.Bytes(), []string{"gfx1151"}},
		{"code object, relocatable", testelf.File{Machine: elf.EM_AMDGPU, Type: elf.ET_REL, Flags: 0x3f}.Bytes(), []string{"gfx90a"}},
		{"code object of an unknown processor", testelf.File{Machine: elf.EM_AMDGPU, Flags: 0xfe}.Bytes(), nil},
		{"bundle", one, oneIs},
		{"bundles", slices.Concat(one, pad, two), bothAre},
		{"library", fat(one), oneIs},
		{"library with two", fat(one, pad, two), bothAre},
		{"library with two of zstd, version 1", fat(compressed(t, one, 1, 1), pad, compressed(t, two, 1, 1)), bothAre},
		{"library with two of zstd, version 2", fat(compressed(t, one, 2, 1), pad, compressed(t, two, 2, 1)), bothAre},
		{"library with two of zlib, version 3", fat(compressed(t, one, 3, 0), compressed(t, two, 3, 0)), bothAre},
		{"one plain and one compressed", fat(one, pad, compressed(t, two, 3, 1)), bothAre},
		{"compressed bundle", compressed(t, one, 2, 1), oneIs},
		{"large content", compressed(t, bundle(40<<20, hip+"gfx1200"), 3, 1), []string{"gfx1200"}},
		{"library of 32 bits", narrow, oneIs},
		{"version to come", compressed(t, one, 9, 1), nil},
		{"method to come", compressed(t, one, 2, 7), nil},
		{"damaged sections", damaged, nil},
		{"ids that are no word", bundle(100, hip+"gfx\x1b[2J", hip+"GFX1", hip, "amdgcn"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			if o := read(t, tt.data); o != nil {
				got = o.GPUTargets
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// counted counts what is read.
type counted struct {
	*bytes.Reader
	n int
}

func (c *counted) ReadAt(b []byte, off int64) (int, error) {
	c.n += len(b)
	return c.Reader.ReadAt(b, off)
}

func TestHostileBundles(t *testing.T) {
	huge := bundle(100, hip+"gfx1151")
	binary.LittleEndian.PutUint64(huge[24:], 1<<63) // entries
	endless := bundle(100, hip+"gfx1151")
	binary.LittleEndian.PutUint64(endless[40:], ^uint64(0)-4095) // the size of one
	backwards := bundle(100, hip+"gfx1151")
	binary.LittleEndian.PutUint64(backwards[32:], 0)
	binary.LittleEndian.PutUint64(backwards[40:], 0)
	many := bytes.Repeat([]byte(bundleMagic+"\x00\x00\x00\x00\x00\x00\x00\x00"), 100_000)
	bomb := compressed(t, make([]byte, 64<<20), 3, 1)
	for name, b := range map[string][]byte{
		"huge": huge, "endless": endless, "backwards": backwards, "many": many, "bomb": bomb, "bombs": bytes.Repeat(bomb, 1000),
		"magics": bytes.Repeat([]byte(compressedMagic), 1<<20),
	} {
		c := &counted{Reader: bytes.NewReader(b)}
		o, err := Read(c, int64(len(b)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if limit := 4*len(b) + spareReads + 1<<20; c.n > limit {
			t.Errorf("%s: read %d bytes, limit %d", name, c.n, limit)
		}
		t.Logf("%s: %d bytes, read %d, %v", name, len(b), c.n, o)
	}
}

// Files that clang-offload-bundler 22.1.8 wrote, with -compress and
// COMPRESSED_BUNDLE_FORMAT_VERSION 2 and 3.
func TestBundlesOfTheRealTool(t *testing.T) {
	for _, name := range []string{"zstd-2.hipfb", "zstd-3.hipfb"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		want := &Object{Machine: GPU, GPUTargets: []string{"gfx1151", "gfx90a"}}
		if diff := cmp.Diff(want, read(t, b), cmp.AllowUnexported(Object{}, version{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMachNames(t *testing.T) {
	seen := map[string]bool{}
	for n, name := range machNames {
		if n < 0x20 || n > 0x5f || !strings.HasPrefix(name, "gfx") || seen[name] {
			t.Errorf("%#x: %s", n, name)
		}
		seen[name] = true
	}
}

func FuzzBundles(f *testing.F) {
	plain := bundle(100, "host-x86_64-unknown-linux-gnu-", hip+"gfx1151")
	f.Add(plain)
	f.Add(slices.Concat(plain, plain))
	for version := range uint16(4) {
		f.Add(compressed(f, plain, version, 0))
		f.Add(compressed(f, plain, version, 1))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		targets, err := bundleTargets(&file{bytes.NewReader(b), int64(len(b))}, 0, int64(len(b)))
		if err != nil || len(targets) > maxTargets || !slices.IsSorted(targets) {
			t.Error(fmt.Sprint(targets, err))
		}
	})
}

// Sections that all are the same bytes are read once, not once for each of
// them.
func TestManySectionsOfTheSameBytes(t *testing.T) {
	const size, count = 1 << 20, 60_000
	code := make([]byte, size)
	copy(code[size/2:], bundle(100, hip+"gfx1151"))
	b := testelf.File{Sections: []testelf.Section{{Name: ".hip_fatbin", Data: code}}}.Bytes()
	le := binary.LittleEndian
	table := b[le.Uint64(b[40:]):]
	names, fat := table[2*64:3*64], table[64:2*64]
	le.PutUint64(b[40:], uint64(len(b)))
	b = append(b, make([]byte, 64)...)
	b = append(b, names...)
	for i := range uint64(count) {
		b = append(b, fat...)
		s := b[len(b)-64:]
		le.PutUint64(s[24:], le.Uint64(s[24:])+i%4096) // each a little further
		le.PutUint64(s[32:], le.Uint64(s[32:])-4096)
	}
	le.PutUint16(b[60:], count+2)
	le.PutUint16(b[62:], 1)
	c := &counted{Reader: bytes.NewReader(b)}
	o, err := Read(c, int64(len(b)))
	if err != nil || !slices.Equal(o.GPUTargets, []string{"gfx1151"}) {
		t.Fatalf("%+v, %v", o, err)
	}
	if c.n > 2*len(b) {
		t.Errorf("read %d bytes of %d", c.n, len(b))
	}
}

// What compressed bundles unpack to is bounded for the whole file.
func TestUnpackedIsBounded(t *testing.T) {
	scan := newBundleScan(&file{}, 0)
	var plain bytes.Buffer
	z := zlib.NewWriter(&plain)
	if _, err := z.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	u, n := &unpacker{spent: scan.spent}, 0
	for ; n <= spareReads/maxList; n++ {
		if _, err := u.unpack(0, bytes.NewReader(plain.Bytes())); err != nil {
			break
		}
	}
	if n != spareReads/maxList {
		t.Errorf("unpacked %d times", n)
	}
}

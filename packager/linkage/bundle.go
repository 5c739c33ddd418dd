package linkage

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/1bit-systems/pkg/packager"
)

// Bundles of GPU code, as clang's offload bundler makes them: a list of what
// is inside, each with an id such as "hipv4-amdgcn-amd-amdhsa--gfx1151:xnack-",
// and the code objects. The compressed form has a header of its own and all of
// that compressed behind it.
const (
	bundleMagic     = "__CLANG_OFFLOAD_BUNDLE__"
	compressedMagic = "CCOB"

	maxBundles   = 64 << 10
	maxEntries   = 1 << 10
	maxList      = 64 << 10 // bytes of a bundle's list
	maxTargets   = 1 << 10
	scanStep     = 64 << 10
	firstStep    = 4 << 10 // what is read at first: a list or padding is mostly shorter
	spareReads   = 64 << 20
	fatbinName   = ".hip_fatbin"
	maxHeadBytes = 32 // of a compressed bundle, the longest of its versions
)

// fatTargets are the processors of the GPU code inside a host's ELF file: of
// its sections .hip_fatbin. The loader ignores section headers, so damaged
// ones are no damage: they only hide GPU code.
func (e *image) fatTargets() ([]string, error) {
	var found []string
	sections := e.sections()
	for _, s := range sections {
		targets, err := bundleTargets(e.file, s.Off, int64(s.Size))
		if err != nil {
			return nil, err
		}
		found = append(found, targets...)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// sections returns the sections .hip_fatbin that are wholly in the file.
func (e *image) sections() []elf.Section64 {
	size := binary.Size(elf.Section32{})
	if e.wide {
		size = binary.Size(elf.Section64{})
	}
	if e.head.Shoff == 0 || int(e.head.Shentsize) != size {
		return nil
	}
	at := func(i int) (elf.Section64, error) {
		var s elf.Section64
		off := e.head.Shoff + uint64(i*size)
		if e.wide {
			return s, e.decode(off, &s)
		}
		var t elf.Section32
		err := e.decode(off, &t)
		return elf.Section64{Name: t.Name, Type: t.Type, Off: uint64(t.Off), Size: uint64(t.Size), Link: t.Link}, err
	}
	count, names := int(e.head.Shnum), int(e.head.Shstrndx)
	if count == 0 || names == int(elf.SHN_XINDEX) { // too many for the header: the first section tells
		first, err := at(0)
		if err != nil {
			return nil
		}
		if count == 0 {
			count = int(min(first.Size, maxSections))
		}
		if names == int(elf.SHN_XINDEX) {
			names = int(first.Link)
		}
	}
	table, err := at(names)
	if err != nil || table.Size > maxSectionNames {
		return nil
	}
	text, err := e.bytes(table.Off, int(table.Size))
	if err != nil {
		return nil
	}
	var found []elf.Section64
	for i := range count {
		s, err := at(i)
		if err != nil {
			return found
		}
		whole := s.Off <= uint64(e.size) && s.Size <= uint64(e.size)-s.Off
		if elf.SectionType(s.Type) == elf.SHT_NOBITS || !whole || uint64(s.Name) >= uint64(len(text)) {
			continue
		}
		if bytes.HasPrefix(text[s.Name:], []byte(fatbinName+"\x00")) {
			found = append(found, s)
		}
	}
	return found
}

// bundleTargets are the processors of all bundles in n bytes at off. Between
// two bundles there is padding; what is no bundle is passed over.
func bundleTargets(f *file, off uint64, n int64) ([]string, error) {
	end := off + uint64(n)
	var found []string
	var unpack *unpacker
	// Lists may be made to overlap, so that far more is read than is there.
	f = &file{r: &budget{f.r, 4*n + spareReads}, size: f.size}
	for range maxBundles {
		at, compressed, err := findBundle(f, off, end)
		if errors.Is(err, errSpent) {
			break
		}
		if err != nil {
			return nil, err
		}
		if at == end {
			break
		}
		var ids []string
		if compressed {
			if unpack == nil {
				unpack = &unpacker{}
			}
			ids, off = unpack.list(f, at, end)
		} else {
			ids, off = readList(f, at, end)
		}
		for _, id := range ids {
			if t := idTarget(id); t != "" && !slices.Contains(found, t) && len(found) < maxTargets {
				found = append(found, t)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// findBundle finds the next magic number from off on, end if there is none.
func findBundle(f *file, off, end uint64) (at uint64, compressed bool, err error) {
	const overlap = len(bundleMagic) - 1
	for step := uint64(firstStep); off < end; step = scanStep {
		n := int(min(end-off, step))
		b, err := f.bytes(off, n)
		if err != nil {
			return 0, false, err
		}
		plain, packed := bytes.Index(b, []byte(bundleMagic)), bytes.Index(b, []byte(compressedMagic))
		if packed >= 0 && (plain < 0 || packed < plain) {
			return off + uint64(packed), true, nil
		}
		if plain >= 0 {
			return off + uint64(plain), false, nil
		}
		if n <= overlap {
			break
		}
		off += uint64(n - overlap)
	}
	return end, false, nil
}

// readList reads the list of a bundle; next is where the bundle ends.
func readList(f *file, at, end uint64) (ids []string, next uint64) {
	var size uint64
	for n, whole := uint64(firstStep), false; !whole && n <= maxList; n *= maxList / firstStep {
		b, err := f.bytes(at, int(min(end-at, n)))
		if err != nil {
			return nil, end
		}
		ids, size, whole = parseList(b)
	}
	next = at + uint64(len(bundleMagic))
	if size <= end-at {
		next = max(next, at+size)
	}
	return ids, next
}

// parseList reads the ids of the list at the beginning of b, and the size of
// the bundle; whole is false if the list goes on behind b. It takes what it
// can: what a damaged list hides is only a name.
func parseList(b []byte) (ids []string, size uint64, whole bool) {
	if !bytes.HasPrefix(b, []byte(bundleMagic)) || len(b) < len(bundleMagic)+8 {
		return nil, 0, false
	}
	count := binary.LittleEndian.Uint64(b[len(bundleMagic):])
	b = b[len(bundleMagic)+8:]
	for range min(count, maxEntries) {
		if len(b) < 24 {
			return ids, size, false
		}
		off, n, length := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
		b = b[24:]
		if length > uint64(len(b)) {
			return ids, size, false
		}
		ids = append(ids, string(b[:length]))
		b = b[length:]
		if off+n >= off {
			size = max(size, off+n)
		}
	}
	return ids, size, true
}

// budget ends reading after so many bytes.
type budget struct {
	io.ReaderAt
	left int64
}

var errSpent = errors.New("read enough")

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errSpent
	}
	return b.ReaderAt.ReadAt(p, off)
}

// idTarget is the processor in the id of a code object, "" if it is no GPU's.
func idTarget(id string) string {
	if !strings.Contains(id, "amdgcn") && !strings.Contains(id, "spirv") {
		return ""
	}
	_, target, ok := strings.Cut(id, "--")
	if !ok { // older: the processor comes right after the triple
		if i := strings.LastIndex(id, "-gfx"); i >= 0 {
			target = id[i+1:]
		}
	}
	target, _, _ = strings.Cut(target, ":")
	if packager.CheckWord(target) != nil {
		return ""
	}
	return target
}

// unpacker reads the lists of compressed bundles.
type unpacker struct{ zstd *zstd.Decoder }

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

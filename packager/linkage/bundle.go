package linkage

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"

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

package linkage

import (
	"bytes"
	"cmp"
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
	maxFatbins   = 1 << 10 // sections of GPU code, far more than the one that there is
	scanStep     = 64 << 10
	firstStep    = 4 << 10 // what is read at first: a list or padding is mostly shorter
	spareReads   = 64 << 20
	fatbinName   = ".hip_fatbin"
	maxHeadBytes = 32 // of a compressed bundle, the longest of its versions
)

// fatTargets are the processors of the GPU code inside a host's ELF file: of
// its sections .hip_fatbin. The loader ignores section headers, so damaged
// ones are no damage: they only hide GPU code. Sections may be made to overlap
// by the ten thousand, so every byte is looked at for one of them only.
func (e *image) fatTargets() ([]string, error) {
	sections := e.sections()
	slices.SortFunc(sections, func(a, b section) int { return cmp.Compare(a.off, b.off) })
	var merged []section
	total := uint64(0)
	for _, s := range sections {
		if last := len(merged) - 1; last >= 0 && s.off < merged[last].end {
			total += max(s.end, merged[last].end) - merged[last].end
			merged[last].end = max(s.end, merged[last].end)
		} else if len(merged) < maxFatbins {
			merged = append(merged, s)
			total += s.end - s.off
		}
	}
	scan := newBundleScan(e.file, int64(total))
	for _, s := range merged {
		if err := scan.look(s.off, s.end); err != nil {
			return nil, err
		}
	}
	return scan.targets(), nil
}

// section is where a section is in the file.
type section struct{ off, end uint64 }

// sections returns the sections .hip_fatbin that are wholly in the file.
func (e *image) sections() []section {
	size := binary.Size(elf.Section32{})
	if e.wide {
		size = binary.Size(elf.Section64{})
	}
	if e.head.Shoff == 0 || e.head.Shoff > uint64(e.size) || int(e.head.Shentsize) != size {
		return nil
	}
	// In one piece: tens of thousands, one at a time, take a while.
	count := min(int(min((uint64(e.size)-e.head.Shoff)/uint64(size), maxSections)), max(int(e.head.Shnum), 1))
	table, err := e.bytes(e.head.Shoff, count*size)
	if err != nil || count == 0 {
		return nil
	}
	names := int(e.head.Shstrndx)
	if first := e.section(table); e.head.Shnum == 0 || names == int(elf.SHN_XINDEX) { // too many for the header: the first section tells
		if e.head.Shnum == 0 {
			count = int(min((uint64(e.size)-e.head.Shoff)/uint64(size), maxSections, first.Size))
			if table, err = e.bytes(e.head.Shoff, count*size); err != nil {
				return nil
			}
		}
		if names == int(elf.SHN_XINDEX) {
			names = int(first.Link)
		}
	}
	if names >= count {
		return nil
	}
	list := e.section(table[names*size:])
	if list.Size > maxSectionNames {
		return nil
	}
	text, err := e.bytes(list.Off, int(list.Size))
	if err != nil {
		return nil
	}
	var found []section
	for ; len(table) >= size; table = table[size:] {
		s := e.section(table)
		whole := s.Off <= uint64(e.size) && s.Size <= uint64(e.size)-s.Off
		if elf.SectionType(s.Type) == elf.SHT_NOBITS || !whole || uint64(s.Name) >= uint64(len(text)) {
			continue
		}
		if bytes.HasPrefix(text[s.Name:], []byte(fatbinName+"\x00")) {
			found = append(found, section{s.Off, s.Off + s.Size})
		}
	}
	return found
}

// section reads what matters of a section's header, which b has all of.
func (e *image) section(b []byte) elf.Section64 {
	s := elf.Section64{Name: e.order.Uint32(b), Type: e.order.Uint32(b[4:])}
	if e.wide {
		s.Off, s.Size, s.Link = e.order.Uint64(b[24:]), e.order.Uint64(b[32:]), e.order.Uint32(b[40:])
	} else {
		s.Off, s.Size, s.Link = uint64(e.order.Uint32(b[16:])), uint64(e.order.Uint32(b[20:])), e.order.Uint32(b[24:])
	}
	return s
}

// bundleTargets are the processors of all bundles in n bytes at off.
func bundleTargets(f *file, off uint64, n int64) ([]string, error) {
	scan := newBundleScan(f, n)
	if err := scan.look(off, off+uint64(n)); err != nil {
		return nil, err
	}
	return scan.targets(), nil
}

// bundleScan looks for bundles in one file. It does so much work and no more:
// lists may be made to overlap, and compressed ones to unpack to far more than
// is there.
type bundleScan struct {
	f       *file
	spent   *budget
	unpack  *unpacker
	bundles int
	found   []string
}

// newBundleScan makes one for n bytes of a file.
func newBundleScan(f *file, n int64) *bundleScan {
	spent := &budget{f.r, 4*n + spareReads}
	return &bundleScan{f: &file{r: spent, size: f.size}, spent: spent}
}

// look looks from off to end. Between two bundles there is padding; what is no
// bundle is passed over.
func (s *bundleScan) look(off, end uint64) error {
	for ; s.bundles < maxBundles; s.bundles++ {
		at, compressed, err := findBundle(s.f, off, end)
		if errors.Is(err, errSpent) || at == end && err == nil {
			return nil
		}
		if err != nil {
			return err
		}
		var ids []string
		if compressed {
			if s.unpack == nil {
				s.unpack = &unpacker{spent: s.spent}
			}
			ids, off = s.unpack.list(s.f, at, end)
		} else {
			ids, off = readList(s.f, at, end)
		}
		for _, id := range ids {
			if t := idTarget(id); t != "" && !slices.Contains(s.found, t) && len(s.found) < maxTargets {
				s.found = append(s.found, t)
			}
		}
	}
	return nil
}

func (s *bundleScan) targets() []string {
	slices.Sort(s.found)
	return s.found
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

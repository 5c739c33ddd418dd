// Package testelf writes small ELF files for tests: nothing but headers, a
// dynamic section and what it names. They hold no code, but the real loader
// takes them (`ld.so --list FILE`), so a test can ask it whether it agrees.
package testelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// File is what an ELF file says. The zero value is a library for x86-64 that
// asks for nothing.
type File struct {
	Type    elf.Type    // 0: ET_DYN
	Machine elf.Machine // 0: EM_X86_64
	Flags   uint32
	Narrow  bool // 32 bits
	Big     bool // the highest byte first

	Interp  string
	Soname  string
	Needed  []string
	Runpath []string // joined with colons; nil: none
	Rpath   []string
	// Names are more entries of the dynamic section that name something.
	Names []Name
	// Asks are versions by library, Defines the versions that this one has.
	Asks    map[string][]string
	Defines []string
	// Static leaves the dynamic section out.
	Static   bool
	Sections []Section
}

// Name is an entry of the dynamic section.
type Name struct {
	Tag  elf.DynTag
	Name string
}

// Section is a section of any content.
type Section struct {
	Name string
	Data []byte
}

// Interp is the loader of programs for x86-64.
const Interp = "/lib64/ld-linux-x86-64.so.2"

// writer lays a file out: everything is in one segment whose addresses are
// the offsets in the file.
type writer struct {
	bytes.Buffer
	order   binary.ByteOrder
	strings bytes.Buffer // names, for the dynamic section
}

func (w *writer) put(v any) int {
	for w.Len()%8 != 0 {
		w.WriteByte(0)
	}
	at := w.Len()
	if b, ok := v.([]byte); ok {
		w.Write(b)
	} else if err := binary.Write(w, w.order, v); err != nil {
		panic(err) // a structure of this file that has no fixed size
	}
	return at
}

func (w *writer) name(s string) uint32 {
	at := w.strings.Len()
	w.strings.WriteString(s + "\x00")
	return uint32(at)
}

// Bytes is the whole file.
func (f File) Bytes() []byte {
	w := &writer{order: binary.LittleEndian}
	if f.Big {
		w.order = binary.BigEndian
	}
	w.name("")
	var tags [][2]uint64
	tag := func(t elf.DynTag, v uint64) { tags = append(tags, [2]uint64{uint64(t), v}) }
	for _, n := range f.Needed {
		tag(elf.DT_NEEDED, uint64(w.name(n)))
	}
	for _, n := range f.Names {
		tag(n.Tag, uint64(w.name(n.Name)))
	}
	if f.Soname != "" {
		tag(elf.DT_SONAME, uint64(w.name(f.Soname)))
	}
	if f.Rpath != nil {
		tag(elf.DT_RPATH, uint64(w.name(strings.Join(f.Rpath, ":"))))
	}
	if f.Runpath != nil {
		tag(elf.DT_RUNPATH, uint64(w.name(strings.Join(f.Runpath, ":"))))
	}

	w.Write(make([]byte, 64+4*56)) // the headers, written last
	interp := w.put([]byte(f.Interp + "\x00"))
	if need := f.verneed(w); len(need) > 0 {
		tag(elf.DT_VERNEED, uint64(w.put(need)))
		tag(elf.DT_VERNEEDNUM, uint64(len(f.Asks)))
	}
	if def := f.verdef(w); len(def) > 0 {
		tag(elf.DT_VERDEF, uint64(w.put(def)))
		tag(elf.DT_VERDEFNUM, uint64(len(f.Defines)))
	}
	tag(elf.DT_HASH, uint64(w.put([]uint32{1, 1, 0, 0}))) // one bucket, one symbol
	tag(elf.DT_SYMTAB, uint64(w.put(make([]byte, 24))))
	tag(elf.DT_SYMENT, 24)
	tag(elf.DT_STRTAB, uint64(w.put(w.strings.Bytes())))
	tag(elf.DT_STRSZ, uint64(w.strings.Len()))
	tag(elf.DT_NULL, 0)
	dynamic := w.Len()
	for i, t := range tags {
		var at int
		if f.Narrow {
			at = w.put32(uint32(t[0]), uint32(t[1]))
		} else {
			at = w.put([]uint64{t[0], t[1]})
		}
		if i == 0 {
			dynamic = at
		}
	}
	end := w.Len()
	sections, names, count := f.sections(w)
	f.heads(w, interp, dynamic, end, sections, names, count)
	return w.Bytes()
}

func (w *writer) put32(v ...uint32) int {
	at := w.Len()
	if err := binary.Write(w, w.order, v); err != nil {
		panic(err)
	}
	return at
}

func (f File) verneed(w *writer) []byte {
	var b bytes.Buffer
	left := len(f.Asks)
	for _, library := range slices.Sorted(maps.Keys(f.Asks)) {
		names := f.Asks[library]
		left--
		next := uint32(0)
		if left > 0 {
			next = uint32(16 + 16*len(names))
		}
		for _, v := range []any{uint16(1), uint16(len(names)), w.name(library), uint32(16), next} {
			_ = binary.Write(&b, w.order, v)
		}
		for i, name := range names {
			next := uint32(16)
			if i == len(names)-1 {
				next = 0
			}
			for _, v := range []any{hash(name), uint16(0), uint16(i + 2), w.name(name), next} {
				_ = binary.Write(&b, w.order, v)
			}
		}
	}
	return b.Bytes()
}

func (f File) verdef(w *writer) []byte {
	var b bytes.Buffer
	for i, name := range f.Defines {
		next := uint32(28)
		if i == len(f.Defines)-1 {
			next = 0
		}
		for _, v := range []any{uint16(1), uint16(0), uint16(i + 1), uint16(1), hash(name), uint32(20), next, w.name(name), uint32(0)} {
			_ = binary.Write(&b, w.order, v)
		}
	}
	return b.Bytes()
}

// hash is the ELF hash of a name, which the loader compares first.
func hash(name string) uint32 {
	var h uint32
	for _, c := range []byte(name) {
		h = h<<4 + uint32(c)
		h ^= h >> 24 & 0xf0
	}
	return h & 0x0fffffff
}

// sections writes the sections with their table, and the one of their names
// last.
func (f File) sections(w *writer) (table, names, count int) {
	if len(f.Sections) == 0 {
		return 0, 0, 0
	}
	text := []byte{0}
	list := []elf.Section64{{}}
	all := append(f.Sections[:len(f.Sections):len(f.Sections)], Section{Name: ".shstrtab"})
	for i, s := range all {
		h := elf.Section64{Name: uint32(len(text)), Type: uint32(elf.SHT_PROGBITS)}
		text = append(append(text, s.Name...), 0)
		if i == len(all)-1 {
			h.Type, s.Data = uint32(elf.SHT_STRTAB), text
		}
		h.Off, h.Size = uint64(w.put(s.Data)), uint64(len(s.Data))
		list = append(list, h)
	}
	if !f.Narrow {
		return w.put(list), len(list) - 1, len(list)
	}
	var narrow []elf.Section32
	for _, h := range list {
		narrow = append(narrow, elf.Section32{Name: h.Name, Type: h.Type, Off: uint32(h.Off), Size: uint32(h.Size)})
	}
	return w.put(narrow), len(list) - 1, len(list)
}

// heads writes the headers over the room that was left for them.
func (f File) heads(w *writer, interp, dynamic, end, sections, names, count int) {
	typ, machine := f.Type, f.Machine
	if typ == 0 {
		typ = elf.ET_DYN
	}
	if machine == 0 {
		machine = elf.EM_X86_64
	}
	total := w.Len()
	progs := []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: 6, Filesz: uint64(total), Memsz: uint64(total), Align: 0x1000},
		{Type: uint32(elf.PT_GNU_STACK), Flags: 6, Align: 16},
	}
	if !f.Static {
		progs = append(progs, elf.Prog64{
			Type: uint32(elf.PT_DYNAMIC), Flags: 6, Off: uint64(dynamic), Vaddr: uint64(dynamic), Paddr: uint64(dynamic),
			Filesz: uint64(end - dynamic), Memsz: uint64(end - dynamic), Align: 8,
		})
	}
	if f.Interp != "" {
		n := uint64(len(f.Interp) + 1)
		progs = append(progs, elf.Prog64{Type: uint32(elf.PT_INTERP), Flags: 4, Off: uint64(interp), Vaddr: uint64(interp), Filesz: n, Memsz: n, Align: 1})
	}
	var ident [elf.EI_NIDENT]byte
	copy(ident[:], elf.ELFMAG)
	ident[elf.EI_CLASS], ident[elf.EI_DATA], ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	if f.Big {
		ident[elf.EI_DATA] = byte(elf.ELFDATA2MSB)
	}
	h := &writer{order: w.order}
	if f.Narrow {
		ident[elf.EI_CLASS] = byte(elf.ELFCLASS32)
		head := elf.Header32{
			Ident: ident, Type: uint16(typ), Machine: uint16(machine), Version: 1, Phoff: 52, Shoff: uint32(sections), Flags: f.Flags,
			Ehsize: 52, Phentsize: 32, Phnum: uint16(len(progs)), Shentsize: 40, Shnum: uint16(count), Shstrndx: uint16(names),
		}
		_ = binary.Write(h, h.order, head)
		for _, p := range progs {
			_ = binary.Write(h, h.order, elf.Prog32{Type: p.Type, Off: uint32(p.Off), Vaddr: uint32(p.Vaddr), Filesz: uint32(p.Filesz), Memsz: uint32(p.Memsz), Flags: p.Flags, Align: uint32(p.Align)})
		}
	} else {
		head := elf.Header64{
			Ident: ident, Type: uint16(typ), Machine: uint16(machine), Version: 1, Phoff: 64, Shoff: uint64(sections), Flags: f.Flags,
			Ehsize: 64, Phentsize: 56, Phnum: uint16(len(progs)), Shentsize: 64, Shnum: uint16(count), Shstrndx: uint16(names),
		}
		_ = binary.Write(h, h.order, head)
		_ = binary.Write(h, h.order, progs)
	}
	copy(w.Bytes(), h.Bytes())
}

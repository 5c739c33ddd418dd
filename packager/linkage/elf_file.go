package linkage

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Bounds of what is read. The kernel and the loader have some of them
// themselves; the others are far above any library that was ever built.
const (
	maxSegmentTable = 64 << 10 // the kernel starts nothing with more
	maxInterp       = 4 << 10  // the kernel's PATH_MAX
	maxDynamic      = 1 << 20
	maxNeeded       = 4 << 10
	maxPathEntries  = 1 << 10
	maxString       = 64 << 10
	maxTextShare    = 4       // of the names together, in sizes of the file
	maxText         = 4 << 20 // and in bytes
	maxSections     = 64 << 10
	maxSectionNames = 4 << 20
	maxVersions     = 4 << 10
)

// file is the bytes of a file.
type file struct {
	r    io.ReaderAt
	size int64
}

// bytes reads n bytes at off, all of them or an error.
func (f *file) bytes(off uint64, n int) ([]byte, error) {
	if off > math.MaxInt64 || int64(off) > f.size-int64(n) {
		return nil, fmt.Errorf("it ends before byte %d: %w", off+uint64(n), ErrMalformed)
	}
	b := make([]byte, n)
	if got, err := f.r.ReadAt(b, int64(off)); got < n {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("it ends before byte %d: %w", off+uint64(n), ErrMalformed)
		}
		return nil, err
	}
	return b, nil
}

// text reads a string that a NUL ends.
func (f *file) text(off uint64) (string, error) {
	var text []byte
	for len(text) < maxString {
		if off > math.MaxInt64 || int64(off) >= f.size {
			return "", fmt.Errorf("a name runs over its end: %w", ErrMalformed)
		}
		b, err := f.bytes(off, int(min(256, f.size-int64(off))))
		if err != nil {
			return "", err
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			return string(append(text, b[:i]...)), nil
		}
		text = append(text, b...)
		off += uint64(len(b))
	}
	return "", fmt.Errorf("a name has more than %d bytes: %w", maxString, ErrMalformed)
}

// image is an ELF file as the loader sees it: by its program headers. The
// package debug/elf goes by the section headers, which the loader ignores and
// which need not be there, and reads whole sections of any size.
type image struct {
	*file
	order binary.ByteOrder
	wide  bool // 64 bits
	head  elf.Header64
	load  []elf.Prog64
	text  int64 // bytes of names read: in a hostile file all may overlap
}

// name reads a name of the dynamic section.
func (e *image) name(off uint64) (string, error) {
	s, err := e.file.text(off)
	if e.text += int64(len(s)); err == nil && e.text > min(maxTextShare*e.size, maxText) {
		err = fmt.Errorf("its names have more than %d bytes: %w", min(maxTextShare*e.size, maxText), ErrMalformed)
	}
	if err != nil {
		return "", err
	}
	return s, nil
}

func readELF(f *file) (*Object, error) {
	e := &image{file: f}
	if err := e.header(); err != nil {
		return nil, err
	}
	o := &Object{}
	machine := elf.Machine(e.head.Machine)
	if machine == elf.EM_AMDGPU {
		o.Machine, o.GPUTargets = GPU, machTargets(e.head.Flags)
		return o, nil
	}
	var err error
	if o.GPUTargets, err = e.fatTargets(); err != nil {
		return nil, err
	}
	switch elf.Type(e.head.Type) {
	case elf.ET_EXEC, elf.ET_DYN:
	default:
		if len(o.GPUTargets) == 0 {
			return nil, nil
		}
		return o, nil
	}
	o.Machine = machineName(machine, e.wide, e.order)
	dynamic, err := e.segments(o)
	if err != nil {
		return nil, err
	}
	o.Program = o.Interp != "" || elf.Type(e.head.Type) == elf.ET_EXEC
	if dynamic != nil {
		if err := e.dynamic(o, dynamic); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// header reads the first header into the form of 64 bits.
func (e *image) header() error {
	ident, err := e.bytes(0, elf.EI_NIDENT)
	if err != nil {
		return err
	}
	switch elf.Data(ident[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		e.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		e.order = binary.BigEndian
	default:
		return fmt.Errorf("its byte order is %d: %w", ident[elf.EI_DATA], ErrMalformed)
	}
	switch elf.Class(ident[elf.EI_CLASS]) {
	case elf.ELFCLASS64:
		e.wide = true
		return e.decode(0, &e.head)
	case elf.ELFCLASS32:
		var h elf.Header32
		if err := e.decode(0, &h); err != nil {
			return err
		}
		e.head = elf.Header64{
			Type: h.Type, Machine: h.Machine, Phoff: uint64(h.Phoff), Shoff: uint64(h.Shoff), Flags: h.Flags,
			Phentsize: h.Phentsize, Phnum: h.Phnum, Shentsize: h.Shentsize, Shnum: h.Shnum, Shstrndx: h.Shstrndx,
		}
		return nil
	}
	return fmt.Errorf("its class is %d: %w", ident[elf.EI_CLASS], ErrMalformed)
}

// decode reads a structure of the file's own byte order.
func (e *image) decode(off uint64, to any) error {
	b, err := e.bytes(off, binary.Size(to))
	if err != nil {
		return err
	}
	_, err = binary.Decode(b, e.order, to)
	return err
}

// segments reads the program headers: what is loaded where, the loader's name
// and where the dynamic section is, nil if there is none.
func (e *image) segments(o *Object) (dynamic *elf.Prog64, err error) {
	size := binary.Size(elf.Prog32{})
	if e.wide {
		size = binary.Size(elf.Prog64{})
	}
	n := int(e.head.Phnum)
	if n > 0 && int(e.head.Phentsize) != size || n*size > maxSegmentTable {
		return nil, fmt.Errorf("it has %d program headers of %d bytes: %w", n, e.head.Phentsize, ErrMalformed)
	}
	for i := range n {
		var p elf.Prog64
		at := e.head.Phoff + uint64(i*size)
		if e.wide {
			err = e.decode(at, &p)
		} else {
			var q elf.Prog32
			err = e.decode(at, &q)
			p = elf.Prog64{Type: q.Type, Off: uint64(q.Off), Vaddr: uint64(q.Vaddr), Filesz: uint64(q.Filesz)}
		}
		if err != nil {
			return nil, err
		}
		switch elf.ProgType(p.Type) {
		case elf.PT_LOAD:
			// The loader takes it, and the program dies when it touches what is not there.
			if p.Filesz > 0 && (p.Off > uint64(e.size) || p.Filesz > uint64(e.size)-p.Off) {
				return nil, &cutOffError{size: e.size, end: p.Off + p.Filesz}
			}
			e.load = append(e.load, p)
		case elf.PT_DYNAMIC:
			if p.Filesz > 0 { // split-off debug data has an empty one
				dynamic = &p
			}
		case elf.PT_INTERP:
			if p.Filesz == 0 {
				continue
			}
			if p.Filesz > maxInterp {
				return nil, fmt.Errorf("its loader's name has %d bytes: %w", p.Filesz, ErrMalformed)
			}
			b, err := e.bytes(p.Off, int(p.Filesz))
			if err != nil {
				return nil, err
			}
			name, _, _ := bytes.Cut(b, []byte{0})
			o.Interp = string(name)
		}
	}
	return dynamic, nil
}

// offset finds where in the file an address is.
func (e *image) offset(addr uint64) (uint64, error) {
	for _, p := range e.load {
		if addr >= p.Vaddr && addr-p.Vaddr < p.Filesz {
			return p.Off + (addr - p.Vaddr), nil
		}
	}
	return 0, fmt.Errorf("address %#x is not in the file: %w", addr, ErrMalformed)
}

// machineName spells a machine as uname does.
func machineName(m elf.Machine, wide bool, order binary.ByteOrder) string {
	little := order == binary.ByteOrder(binary.LittleEndian)
	switch m {
	case elf.EM_X86_64:
		if !wide {
			return "x32"
		}
		return "x86_64"
	case elf.EM_386:
		return "i386"
	case elf.EM_AARCH64:
		return "aarch64"
	case elf.EM_ARM:
		return "arm"
	case elf.EM_RISCV:
		if wide {
			return "riscv64"
		}
		return "riscv32"
	case elf.EM_PPC64:
		if little {
			return "ppc64le"
		}
		return "ppc64"
	case elf.EM_S390:
		return "s390x"
	case elf.EM_LOONGARCH:
		return "loongarch64"
	}
	return fmt.Sprintf("elf%d", uint16(m))
}

package linkage

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// What package debug/elf has no names for (glibc, elf/elf.h).
const (
	dtDepaudit  elf.DynTag = 0x6ffffefb
	dtAudit     elf.DynTag = 0x6ffffefc
	dtAuxiliary elf.DynTag = 0x7ffffffd
	dtFilter    elf.DynTag = 0x7fffffff
)

// tags are the entries of a dynamic section that matter here.
type tags struct {
	needed, audit                     []uint64
	soname, rpath, runpath            uint64
	hasSoname, hasRpath, hasRunpath   bool
	strings, verneed, verdef          uint64
	verneedCount, verdefCount         uint64
	hasStrings, hasVerneed, hasVerdef bool
}

// dynamic reads what a dynamic section says.
func (e *image) dynamic(o *Object, p *elf.Prog64) error {
	t, err := e.tags(p)
	if err != nil {
		return err
	}
	if !t.hasStrings {
		return nil // as in a program that relocates itself: it asks for nothing
	}
	table, err := e.offset(t.strings)
	if err != nil {
		return fmt.Errorf("find its names: %w", err)
	}
	text := func(off uint64) string {
		if err != nil {
			return ""
		}
		var s string
		s, err = e.name(table + off)
		return s
	}
	seen := map[string]bool{}
	for _, off := range t.needed {
		if name := text(off); !seen[name] {
			seen[name] = true
			o.Needed = append(o.Needed, name)
		}
	}
	for _, off := range t.audit {
		o.Audit = append(o.Audit, text(off))
	}
	if t.hasSoname {
		o.Soname = text(t.soname)
	}
	// An RPATH counts only where there is no RUNPATH, empty or not.
	switch {
	case t.hasRunpath:
		o.Runpath = splitPath(text(t.runpath))
	case t.hasRpath:
		o.Rpath = splitPath(text(t.rpath))
	}
	if err != nil {
		return err
	}
	if len(o.Runpath)+len(o.Rpath) > maxPathEntries {
		return fmt.Errorf("its RUNPATH has more than %d entries: %w", maxPathEntries, ErrMalformed)
	}
	if t.hasVerneed {
		if err := e.asked(o, t, table); err != nil {
			return fmt.Errorf("read the versions it asks for: %w", err)
		}
	}
	if t.hasVerdef {
		if err := e.defined(o, t, table); err != nil {
			return fmt.Errorf("read the versions it defines: %w", err)
		}
	}
	return nil
}

// splitPath takes a search path apart. An empty one has no entries at all, but
// is there, so it is not nil; between or beside colons an empty entry is the
// current folder.
func splitPath(s string) []string {
	if s == "" {
		return []string{}
	}
	return strings.Split(s, ":")
}

func (e *image) tags(p *elf.Prog64) (*tags, error) {
	size := binary.Size(elf.Dyn32{})
	if e.wide {
		size = binary.Size(elf.Dyn64{})
	}
	if p.Filesz > maxDynamic {
		return nil, fmt.Errorf("its dynamic section has %d bytes: %w", p.Filesz, ErrMalformed)
	}
	b, err := e.bytes(p.Off, int(p.Filesz))
	if err != nil {
		return nil, fmt.Errorf("read the dynamic section: %w", err)
	}
	t := &tags{}
	for ; len(b) >= size; b = b[size:] {
		var tag, val uint64
		if e.wide {
			tag, val = e.order.Uint64(b), e.order.Uint64(b[8:])
		} else {
			tag, val = uint64(e.order.Uint32(b)), uint64(e.order.Uint32(b[4:]))
		}
		switch elf.DynTag(tag) {
		case elf.DT_NULL:
			return t, nil
		// A filter and an auxiliary are loaded as what is needed is, by the same
		// folders, and their symbols go first. The loader does without an
		// auxiliary that is not there, but the program is another one then.
		case elf.DT_NEEDED, dtFilter, dtAuxiliary:
			if len(t.needed) == maxNeeded {
				return nil, fmt.Errorf("it needs more than %d libraries: %w", maxNeeded, ErrMalformed)
			}
			t.needed = append(t.needed, val)
		case dtAudit, dtDepaudit:
			if len(t.audit) == maxNeeded {
				return nil, fmt.Errorf("it is audited by more than %d libraries: %w", maxNeeded, ErrMalformed)
			}
			t.audit = append(t.audit, val)
		case elf.DT_SONAME:
			t.soname, t.hasSoname = val, true
		case elf.DT_RPATH:
			t.rpath, t.hasRpath = val, true
		case elf.DT_RUNPATH:
			t.runpath, t.hasRunpath = val, true
		case elf.DT_STRTAB:
			t.strings, t.hasStrings = val, true
		case elf.DT_VERNEED:
			t.verneed, t.hasVerneed = val, true
		case elf.DT_VERNEEDNUM:
			t.verneedCount = val
		case elf.DT_VERDEF:
			t.verdef, t.hasVerdef = val, true
		case elf.DT_VERDEFNUM:
			t.verdefCount = val
		}
	}
	return t, nil
}

// asked reads the versions that an object asks of its libraries.
func (e *image) asked(o *Object, t *tags, table uint64) error {
	at, err := e.offset(t.verneed)
	if err != nil {
		return err
	}
	for left := maxVersions; t.verneedCount > 0; t.verneedCount-- {
		b, err := e.bytes(at, 16) // vn_version, vn_cnt, vn_file, vn_aux, vn_next
		if err != nil {
			return err
		}
		library, err := e.name(table + uint64(e.order.Uint32(b[4:])))
		if err != nil {
			return err
		}
		aux := at + uint64(e.order.Uint32(b[8:]))
		for count := e.order.Uint16(b[2:]); count > 0; count-- {
			if left--; left < 0 {
				return fmt.Errorf("more than %d of them: %w", maxVersions, ErrMalformed)
			}
			a, err := e.bytes(aux, 16) // vna_hash, vna_flags, vna_other, vna_name, vna_next
			if err != nil {
				return err
			}
			name, err := e.name(table + uint64(e.order.Uint32(a[8:])))
			if err != nil {
				return err
			}
			const weak = 2 // VER_FLG_WEAK: the loader goes on without it
			if e.order.Uint16(a[4:])&weak == 0 {
				o.versions = append(o.versions, version{library, name})
				o.Glibc = newer(o.Glibc, glibcVersion(library, name))
			}
			next := e.order.Uint32(a[12:])
			if next == 0 {
				break
			}
			aux += uint64(next)
		}
		next := e.order.Uint32(b[12:])
		if next == 0 {
			break
		}
		at += uint64(next)
	}
	return nil
}

// defined reads the versions that a library defines.
func (e *image) defined(o *Object, t *tags, table uint64) error {
	at, err := e.offset(t.verdef)
	if err != nil {
		return err
	}
	for left := maxVersions; t.verdefCount > 0; t.verdefCount-- {
		if left--; left < 0 {
			return fmt.Errorf("more than %d of them: %w", maxVersions, ErrMalformed)
		}
		b, err := e.bytes(at, 20) // vd_version, vd_flags, vd_ndx, vd_cnt, vd_hash, vd_aux, vd_next
		if err != nil {
			return err
		}
		a, err := e.bytes(at+uint64(e.order.Uint32(b[12:])), 8) // vda_name, vda_next
		if err != nil {
			return err
		}
		name, err := e.name(table + uint64(e.order.Uint32(a)))
		if err != nil {
			return err
		}
		o.defined = append(o.defined, name)
		next := e.order.Uint32(b[16:])
		if next == 0 {
			break
		}
		at += uint64(next)
	}
	return nil
}

package linkage

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/1bit-systems/pkg/internal/testelf"
)

func read(t *testing.T, b []byte) *Object {
	t.Helper()
	o, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRead(t *testing.T) {
	library := testelf.File{
		Soname: "liba.so.1", Needed: []string{"libb.so.2", "libc.so.6", "libb.so.2"}, Runpath: []string{"$ORIGIN", "", "/opt/x/lib"}, Rpath: []string{"/ignored"},
		Asks: map[string][]string{
			"libc.so.6":      {"GLIBC_2.4", "GLIBC_2.17", "GLIBC_PRIVATE", "GLIBC_2.9"},
			"libstdc++.so.6": {"GLIBCXX_3.4.30"},
			"libfoo.so.1":    {"GLIBC_2.99"},
		},
		Defines: []string{"liba.so.1", "A_1", "A_2"},
	}
	want := &Object{
		Machine: "x86_64", Soname: "liba.so.1", Needed: []string{"libb.so.2", "libc.so.6"}, Runpath: []string{"$ORIGIN", "", "/opt/x/lib"}, Glibc: "2.17",
		defined: []string{"liba.so.1", "A_1", "A_2"},
		versions: []version{
			{"libc.so.6", "GLIBC_2.4"}, {"libc.so.6", "GLIBC_2.17"}, {"libc.so.6", "GLIBC_PRIVATE"}, {"libc.so.6", "GLIBC_2.9"},
			{"libfoo.so.1", "GLIBC_2.99"}, {"libstdc++.so.6", "GLIBCXX_3.4.30"},
		},
	}
	narrow, big := library, library
	narrow.Narrow, narrow.Machine = true, elf.EM_386
	big.Big, big.Machine = true, elf.EM_S390
	on := func(machine string) *Object {
		o := *want
		o.Machine = machine
		return &o
	}
	for _, tt := range []struct {
		name string
		file testelf.File
		want *Object
	}{
		{"library", library, want},
		{"library of 32 bits", narrow, on("i386")},
		{"library of the other byte order", big, on("s390x")},
		{"program", testelf.File{Interp: testelf.Interp, Rpath: []string{"lib"}}, &Object{Machine: "x86_64", Program: true, Interp: testelf.Interp, Rpath: []string{"lib"}}},
		{"program that needs no loader", testelf.File{Type: elf.ET_EXEC, Static: true, Machine: elf.EM_AARCH64}, &Object{Machine: "aarch64", Program: true}},
		{"empty RUNPATH", testelf.File{Runpath: []string{}, Rpath: []string{"/ignored"}}, &Object{Machine: "x86_64", Runpath: []string{}}},
		{"relative relocations", testelf.File{Asks: map[string][]string{"libc.so.6": {"GLIBC_2.2.5", "GLIBC_ABI_DT_RELR"}}},
			&Object{Machine: "x86_64", Glibc: "2.36", versions: []version{{"libc.so.6", "GLIBC_2.2.5"}, {"libc.so.6", "GLIBC_ABI_DT_RELR"}}}},
		{"filter", testelf.File{Needed: []string{"liba.so"}, Names: []testelf.Name{{Tag: dtFilter, Name: "/x/libreal.so"}, {Tag: dtAuxiliary, Name: "libfast.so"}, {Tag: dtAudit, Name: "watch.so"}, {Tag: dtDepaudit, Name: "/x/watch.so"}}},
			&Object{Machine: "x86_64", Needed: []string{"liba.so", "/x/libreal.so", "libfast.so"}, Audit: []string{"watch.so", "/x/watch.so"}}},
		{"to be linked", testelf.File{Type: elf.ET_REL}, nil},
		{"core", testelf.File{Type: elf.ET_CORE}, nil},
		{"firmware", testelf.File{Type: elf.ET_EXEC, Machine: elf.EM_XTENSA}, &Object{Machine: "elf94", Program: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, read(t, tt.file.Bytes()), cmp.AllowUnexported(Object{}, version{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadOfOtherFiles(t *testing.T) {
	for _, text := range []string{"", "\x7f", "\x7fEL", "#!", "#! \t\n/bin/sh", "CCO", "a text that is a little longer than what is read of it first"} {
		if o := read(t, []byte(text)); o != nil {
			t.Errorf("%q is taken for %+v", text, o)
		}
	}
}

func TestReadOfScripts(t *testing.T) {
	for text, want := range map[string][]string{
		"#!/bin/sh\nset -e\n":        {"/bin/sh"},
		"#! \t/usr/bin/env\t-S  a b": {"/usr/bin/env", "-S", "a", "b"},
		"#!/bin/sh\x00/x\n":          {"/bin/sh"},
		"#!./sh":                     {"./sh"},
	} {
		if diff := cmp.Diff(&Object{Script: want}, read(t, []byte(text)), cmp.AllowUnexported(Object{}, version{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// Every prefix of a file, and every file with one byte changed, is read or
// refused.
func TestReadOfDamage(t *testing.T) {
	b := testelf.File{Interp: testelf.Interp, Soname: "x", Needed: []string{"liba.so"}, Asks: map[string][]string{"libc.so.6": {"GLIBC_2.4"}}, Defines: []string{"X"}}.Bytes()
	refused := 0
	try := func(b []byte) {
		if _, err := Read(bytes.NewReader(b), int64(len(b))); err != nil {
			refused++
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
		}
	}
	for n := 4; n < len(b); n++ {
		try(b[:n])
	}
	if refused < 300 {
		t.Errorf("of %d cut files %d were refused", len(b), refused)
	}
	for i := range b {
		for _, v := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			old := b[i]
			b[i] = v
			try(b)
			b[i] = old
		}
	}
}

// What the machine's own programs say, as debug/elf reads it.
func TestReadAgreesWithDebugELF(t *testing.T) {
	files, err := filepath.Glob("/usr/bin/[a-d]*")
	if err != nil || len(files) == 0 {
		skip(t, "no programs: %v", err)
	}
	libraries, _ := filepath.Glob("/usr/lib/*-linux-gnu/*.so*")
	seen := 0
	for _, name := range append(files, libraries...) {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		o, err := ReadFile(f, name)
		f.Close()
		if err != nil {
			t.Error(err)
			continue
		}
		e, err := elf.Open(name)
		if err != nil {
			if o != nil && o.Damage == "" && o.Script == nil {
				t.Errorf("%s: %+v, and debug/elf says %v", name, o, err)
			}
			continue
		}
		if o == nil || o.Damage != "" {
			if e.Type != elf.ET_REL {
				t.Errorf("%s: %+v", name, o)
			}
			e.Close()
			continue
		}
		seen++
		needed, _ := e.ImportedLibraries()
		soname, _ := e.DynString(elf.DT_SONAME)
		runpath, _ := e.DynString(elf.DT_RUNPATH)
		want := &Object{Path: name, Machine: "x86_64", Program: o.Program, Interp: o.Interp, Needed: needed, Glibc: o.Glibc}
		if e.Machine != elf.EM_X86_64 {
			want.Machine = o.Machine
		}
		if len(soname) > 0 {
			want.Soname = soname[0]
		}
		if len(runpath) > 0 {
			want.Runpath = splitPath(runpath[0])
		}
		needs, _ := e.DynamicVersionNeeds()
		for _, n := range needs {
			for _, v := range n.Needs {
				if v.Flags&elf.VER_FLG_WEAK == 0 {
					want.versions = append(want.versions, version{n.Name, v.Dep})
				}
			}
		}
		defs, _ := e.DynamicVersions()
		for _, d := range defs {
			want.defined = append(want.defined, d.Name)
		}
		e.Close()
		if diff := cmp.Diff(want, o, cmp.AllowUnexported(Object{}, version{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Object{}, "Rpath", "GPUTargets")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	t.Logf("%d files", seen)
}

func FuzzRead(f *testing.F) {
	gpu := testelf.File{Machine: elf.EM_AMDGPU, Flags: 0x4a}.Bytes()
	f.Add(gpu)
	f.Add([]byte("#!/usr/bin/env -S sh\n"))
	f.Add(testelf.File{Interp: testelf.Interp, Soname: "x", Needed: []string{"liba.so"}, Runpath: []string{"$ORIGIN"}, Asks: map[string][]string{"libc.so.6": {"GLIBC_2.4"}}, Defines: []string{"X"}}.Bytes())
	f.Add(testelf.File{Narrow: true, Big: true, Machine: elf.EM_PPC64}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil && (o != nil || !errors.Is(err, ErrMalformed)) {
			t.Errorf("%+v, %v", o, err)
		}
	})
}

// The loader maps what is not there, and the program dies when it touches it.
func TestReadOfCutOffFile(t *testing.T) {
	for _, f := range []testelf.File{{}, {Narrow: true, Machine: elf.EM_386}} {
		f.Sections = []testelf.Section{{Name: ".data", Data: make([]byte, 100_000)}}
		b := f.Bytes()
		n := len(b) - 50_000
		want := fmt.Sprintf("is cut off: it has %d bytes, and what is loaded of it ends at byte %d", n, len(b))
		if o, err := Read(bytes.NewReader(b[:n]), int64(n)); !errors.Is(err, ErrMalformed) || err.Error() != want {
			t.Errorf("%+v, %v, want %s", o, err, want)
		}
	}
}

package linkage

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/internal/testelf"
	"github.com/1bit-systems/pkg/packager"
)

// tree writes a package's files; a value that begins with "->" is a link.
func tree(t testing.TB, files map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch f := files[name].(type) {
		case testelf.File:
			write(t, dir, name, f)
		case string:
			at := filepath.Join(dir, name)
			err := os.MkdirAll(filepath.Dir(at), 0o755)
			if target, ok := strings.CutPrefix(f, "->"); ok && err == nil {
				err = os.Symlink(target, at)
			} else if err == nil {
				err = os.WriteFile(at, []byte(f), 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

func program(runpath []string, needed ...string) testelf.File {
	return testelf.File{Interp: testelf.Interp, Runpath: runpath, Needed: needed}
}

func library(runpath []string, needed ...string) testelf.File {
	return testelf.File{Runpath: runpath, Needed: needed}
}

func texts(problems []Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, p.Path+": "+p.What)
	}
	return out
}

func TestResolve(t *testing.T) {
	origin := []string{"$ORIGIN"}
	rocm := packager.Requirement{Kind: packager.RequirePath, Name: "/opt/rocm-therock"}
	loader := testelf.File{Soname: "ld-linux-x86-64.so.2"}
	const elsewhere = "where the loader does not look for it: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN"
	const begin = ": begin it with #!/bin/sh or with another program that its hosts have"
	const byPath = ", by a path that is neither in the package nor required of its host: link it by a name, with -l, or give that library a soname"
	for _, tt := range []struct {
		name     string
		files    map[string]any
		requires []packager.Requirement
		want     Linkage
		problems []string
	}{
		{
			name: "whole package",
			files: map[string]any{
				"1bit": "#!/bin/sh\n", "bin/server": program([]string{"$ORIGIN/../lib"}, "libllama.so.0", "libc.so.6", "libgcc_s.so.1"),
				"lib/libllama.so.0": "->libllama.so.0.9", "lib/libllama.so.0.9": library(origin, "libggml.so", "libstdc++.so.6"),
				"lib/libggml.so": testelf.File{Asks: map[string][]string{"libc.so.6": {"GLIBC_2.38"}}},
			},
			want: Linkage{
				Machine: "x86_64", Machines: []string{"x86_64"}, Glibc: "2.38", Runtime: []string{"libc.so.6", "libgcc_s.so.1", "libstdc++.so.6"},
				Inside: map[string]map[string]string{
					"bin/server": {"libllama.so.0": "lib/libllama.so.0.9"}, "lib/libllama.so.0.9": {"libggml.so": "lib/libggml.so"},
				},
			},
		},
		{
			name: "backend that a program opens",
			files: map[string]any{
				"bin/server": program(origin, "libggml-base.so.0"), "bin/libggml-base.so.0": library(nil),
				// libggml-base is loaded by the server, libamdhip64 is in the host's folder.
				"bin/backends/libggml-hip.so":        library([]string{"/opt/rocm-therock/lib", "$ORIGIN"}, "libggml-base.so.0", "libhelp.so", "libamdhip64.so.7"),
				"bin/backends/libhelp.so":            library(nil, "libamdhip64.so.7"),
				"bin/backends/libggml-vulkan.so":     library(nil, "libvulkan.so.1"),
				"bin/backends/kernels/gfx1151.hsaco": testelf.File{Machine: elf.EM_AMDGPU, Flags: 0x4a},
			},
			requires: []packager.Requirement{rocm, {Kind: packager.RequireLibrary, Name: "libvulkan.so.1"}},
			want: Linkage{
				Machine: "x86_64", Machines: []string{"x86_64"}, GPUTargets: []string{"gfx1151"},
				Host: []packager.HostLibrary{
					{Name: "libamdhip64.so.7", NeededBy: "bin/backends/libggml-hip.so", Dirs: []string{"/opt/rocm-therock/lib"}},
					{Name: "libvulkan.so.1", NeededBy: "bin/backends/libggml-vulkan.so"},
				},
				Inside: map[string]map[string]string{
					"bin/server":                  {"libggml-base.so.0": "bin/libggml-base.so.0"},
					"bin/backends/libggml-hip.so": {"libggml-base.so.0": "bin/libggml-base.so.0", "libhelp.so": "bin/backends/libhelp.so"},
				},
			},
		},
		{
			name:  "missing library",
			files: map[string]any{"bin/a": program(origin, "libfoo.so.1"), "bin/b": program([]string{"/opt/rocm-therock/lib"}, "libfoo.so.1")},
			want:  Linkage{Machine: "x86_64", Machines: []string{"x86_64"}},
			problems: []string{
				"bin/a: needs libfoo.so.1, which neither the package nor its host requirements provide",
				`bin/b: its RUNPATH has the entry "/opt/rocm-therock/lib", which the package does not require of its host: remove it, or add "path: /opt/rocm-therock/lib" to requires in the recipe`,
				"bin/b: needs libfoo.so.1, which neither the package nor its host requirements provide",
			},
		},
		{
			name:  "library elsewhere",
			files: map[string]any{"bin/a": program(nil, "libfoo.so.1"), "lib/libfoo.so.1": library(nil)},
			want: Linkage{Machine: "x86_64", Machines: []string{"x86_64"},
				Elsewhere: map[string]map[string]string{"bin/a": {"libfoo.so.1": "lib/libfoo.so.1"}}},
			problems: []string{"bin/a: needs libfoo.so.1, which is in the package as lib/libfoo.so.1, " + elsewhere},
		},
		{
			name: "loader of its own",
			files: map[string]any{"bin/a": program(nil, "libfoo.so.1", "libc.so.6"), "lib/libfoo.so.1": library(nil), "lib/ld-linux-x86-64.so.2": loader,
				"lib/libc.so.6": testelf.File{Soname: "libc.so.6", Asks: map[string][]string{"ld-linux-x86-64.so.2": {"GLIBC_2.35"}}}},
			want: Linkage{Machine: "x86_64", Machines: []string{"x86_64"},
				Elsewhere: map[string]map[string]string{"bin/a": {"libfoo.so.1": "lib/libfoo.so.1", "libc.so.6": "lib/libc.so.6"}}},
		},
		{
			name:     "library of another machine",
			files:    map[string]any{"a": program(origin, "libfoo.so.1"), "libfoo.so.1": testelf.File{Machine: elf.EM_AARCH64}, "firmware.elf": testelf.File{Machine: elf.EM_XTENSA}},
			want:     Linkage{Machines: []string{"aarch64", "x86_64"}, Elsewhere: map[string]map[string]string{"a": {"libfoo.so.1": "libfoo.so.1"}}},
			problems: []string{"a: is for x86_64, and others are for aarch64: make a package for each machine", "a: needs libfoo.so.1, which is in the package as libfoo.so.1, " + elsewhere},
		},
		{
			name: "entries",
			files: map[string]any{"bin/a": program([]string{"$ORIGIN/../lib", "", "lib", "$ORIGIN/../../other", "/build/tree/lib", "/home/me/lib", "/opt/rocm-therock/../../tmp", "/opt/rocm-therock", "/opt/rocm", "$ORIGIN/../$LIB"}),
				"bin/b": testelf.File{Interp: "/nix/store/x/ld.so", Rpath: []string{"/root/x"}}},
			requires: []packager.Requirement{rocm},
			want:     Linkage{Machine: "x86_64", Machines: []string{"x86_64"}},
			problems: []string{
				"bin/a: its RUNPATH has an empty entry, which is the current folder: remove it",
				`bin/a: its RUNPATH has the entry "$ORIGIN/../../other", which leaves the package`,
				`bin/a: its RUNPATH has the entry "/build/tree/lib", a folder of the machine that built it: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN`,
				`bin/a: its RUNPATH has the entry "/home/me/lib", and no package may look into /home: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN`,
				`bin/a: its RUNPATH has the entry "/opt/rocm", which the package does not require of its host: remove it, or add "path: /opt/rocm" to requires in the recipe`,
				`bin/a: its RUNPATH has the entry "/opt/rocm-therock/../../tmp", and no package may look into /tmp: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN`,
				`bin/a: its RUNPATH has the entry "lib", which is neither absolute nor from $ORIGIN: write it as $ORIGIN/…`,
				`bin/b: is started by the loader "/nix/store/x/ld.so", which is not where hosts have it: link it against the system's C library`,
				`bin/b: its RPATH has the entry "/root/x", and no package may look into /root: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN`,
			},
		},
		{
			name: "version that the package's library does not have",
			files: map[string]any{"a": testelf.File{Interp: testelf.Interp, Runpath: origin, Needed: []string{"libx.so.1"}, Asks: map[string][]string{"libx.so.1": {"X_2"}}},
				"libx.so.1": testelf.File{Defines: []string{"libx.so.1", "X_1"}}},
			want:     Linkage{Machine: "x86_64", Machines: []string{"x86_64"}, Inside: map[string]map[string]string{"a": {"libx.so.1": "libx.so.1"}}},
			problems: []string{"a: needs version X_2 of libx.so.1, which the package's libx.so.1 does not have"},
		},
		{
			name:  "a ring, and one that needs it",
			files: map[string]any{"a.so": library(nil, "b.so"), "b.so": library(origin, "a.so"), "c.so": library(origin, "a.so")},
			want: Linkage{Machine: "x86_64", Machines: []string{"x86_64"}, Inside: map[string]map[string]string{"b.so": {"a.so": "a.so"}, "c.so": {"a.so": "a.so"}},
				Elsewhere: map[string]map[string]string{"a.so": {"b.so": "b.so"}}},
			problems: []string{"a.so: needs b.so, which is in the package as b.so, " + elsewhere},
		},
		{
			name:     "damage",
			files:    map[string]any{"a": "\x7fELF and nothing more than that, which is too little"},
			problems: []string{"a: is a damaged ELF file: its byte order is 97"},
		},
		{
			name: "scripts of the build",
			files: map[string]any{"a": "#!/build/tree/sh\n", "b": "#!/usr/bin/env -S /build/tree/../tree/python x\n", "c": "#!python3\n", "d": "#! /home/me/bin/python\n",
				"e": "#!/usr/bin/env python3\n", "f": "#!/opt/x/python\n", "g": "#!/build/tree2/sh\n", "lib": "->a"},
			problems: []string{
				`a: is started by "/build/tree/sh", which is in a folder of the machine that built it` + begin,
				`b: is started with "/build/tree/../tree/python", which is in a folder of the machine that built it` + begin,
				`c: is started by "python3", which is not an absolute path` + begin,
				`d: is started by "/home/me/bin/python", and no package may look into /home` + begin,
			},
		},
		{
			name: "needs by path",
			files: map[string]any{
				"a":            program(nil, "/build/tree/ld-musl-x.so", "/build/tree/ld-linux-x86-64.so.2", "/opt/rocm-therock/lib/libhip.so.7", "$ORIGIN/lib/libb.so", "lib/libb.so", "$ORIGIN/libgone.so"),
				"lib/libb.so":  testelf.File{Names: []testelf.Name{{Tag: dtFilter, Name: "/build/tree/libreal.so"}, {Tag: dtAuxiliary, Name: "libfast.so"}, {Tag: dtFilter, Name: "${ORIGIN}/libc1.so"}}},
				"lib/libc1.so": testelf.File{Soname: "ld-musl-x.so", Names: []testelf.Name{{Tag: dtAudit, Name: "watch.so"}}},
			},
			requires: []packager.Requirement{rocm},
			want: Linkage{Machine: "x86_64", Machines: []string{"x86_64"},
				Host:   []packager.HostLibrary{{Name: "libhip.so.7", NeededBy: "a", Dirs: []string{"/opt/rocm-therock/lib"}}},
				Inside: map[string]map[string]string{"a": {"$ORIGIN/lib/libb.so": "lib/libb.so"}, "lib/libb.so": {"${ORIGIN}/libc1.so": "lib/libc1.so"}}},
			problems: []string{
				`a: needs "$ORIGIN/libgone.so"` + byPath, `a: needs "/build/tree/ld-linux-x86-64.so.2"` + byPath, `a: needs "/build/tree/ld-musl-x.so"` + byPath, `a: needs "lib/libb.so"` + byPath,
				`lib/libb.so: needs "/build/tree/libreal.so"` + byPath,
				"lib/libb.so: needs libfast.so, which neither the package nor its host requirements provide",
				`lib/libc1.so: has the loader audited by "watch.so": link it without --audit and --depaudit`,
			},
		},
		{name: "scripts", files: map[string]any{"a": "#!/bin/sh\n", "b": "text"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, objects := inspect(t, tree(t, tt.files))
			m.Requires = tt.requires
			got := Resolve(m, objects, "/build/tree")
			if diff := cmp.Diff(tt.problems, texts(got.Problems)); diff != "" {
				t.Error(diff)
			}
			want := tt.want
			for _, p := range []*map[string]map[string]string{&want.Inside, &want.Elsewhere} {
				if *p == nil {
					*p = map[string]map[string]string{}
				}
			}
			got.Problems, got.open, got.loader = nil, nil, false
			if diff := cmp.Diff(want, *got, cmp.AllowUnexported(Linkage{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The real engine's programs are started by launchers through its own loader.
func TestResolveOfImported(t *testing.T) {
	m, objects := inspect(t, tree(t, map[string]any{"bin/a": program([]string{"/home/me/build"}, "libfoo.so.1", "libbar.so.2"), "x/libfoo.so.1": "->/home/me/libfoo.so.1"}))
	m.Imported = true
	got := texts(Resolve(m, objects).Problems)
	want := []string{
		`bin/a: its RUNPATH has the entry "/home/me/build", and no package may look into /home: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN`,
		"bin/a: needs libbar.so.2, which neither the package nor its host requirements provide",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRuntime(t *testing.T) {
	for name, want := range map[string]bool{
		"libc.so.6": true, "libm.so.6": true, "libpthread.so.0": true, "libdl.so.2": true, "librt.so.1": true, "libmvec.so.1": true, "libresolv.so.2": true,
		"libutil.so.1": true, "libanl.so.1": true, "libnsl.so.1": true, "ld-linux-x86-64.so.2": true, "ld-linux-aarch64.so.1": true, "ld-linux.so.2": true,
		"libgcc_s.so.1": true, "libstdc++.so.6": true, "ld64.so.2": true,
		"libnsl.so.2": false, "libgomp.so.1": false, "libstdc++.so.5": false, "libcrypt.so.1": false, "libc.so": false, "libc.so.7": false, "libdl.so.6": false,
		"libm.so.6x": false, "": false, "ld.so": false, "ld-musl-x86_64.so.1": true, "ld-musl-x.so": false, "/lib64/ld-linux-x86-64.so.2": false, "ld-linux-/x.so.2": false, "libcuda.so.1": false, "libc-ares.so.2": false, "ldap.so.2": false,
	} {
		if got := Runtime(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Objects that want more than can be followed end in an answer all the same.
func TestResolveIsBounded(t *testing.T) {
	m := &packager.Manifest{Flavour: "x", ID: "y"}
	var objects []*Object
	for i := range 450 {
		name := fmt.Sprintf("lib%04d.so", i)
		o := &Object{Path: name, Machine: "x86_64", Program: true, Rpath: []string{"$ORIGIN/a", "/opt/x/$LIB", "$ORIGIN"}}
		for j := range 450 {
			o.Needed = append(o.Needed, fmt.Sprintf("lib%04d.so", (i+j)%600))
		}
		objects = append(objects, o)
		m.Files = append(m.Files, packager.File{Path: name, Type: packager.TypeFile})
	}
	l := Resolve(m, objects)
	want := "asks for more libraries in more folders than can be followed"
	if !slices.ContainsFunc(l.Problems, func(p Problem) bool { return p.What == want }) {
		t.Errorf("%d problems, none of them: %s", len(l.Problems), want)
	}
}

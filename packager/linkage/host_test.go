package linkage

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/1bit-systems/pkg/internal/testelf"
	"github.com/1bit-systems/pkg/packager"
)

// cacheOf is an ld.so.cache; an entry is a name, a path and "hwcap" if it is
// for some processors only.
func cacheOf(entries ...[]string) []byte {
	le := binary.LittleEndian
	b := append([]byte(cacheMagic), make([]byte, cacheHead-len(cacheMagic))...)
	le.PutUint32(b[20:], uint32(len(entries)))
	b[28] = 2 // the lowest byte first
	text := []byte{}
	base := cacheHead + cacheEntry*len(entries)
	put := func(s string) uint32 {
		at := base + len(text)
		text = append(append(text, s...), 0)
		return uint32(at)
	}
	for _, e := range entries {
		b = le.AppendUint32(b, 0x0303)
		b = le.AppendUint32(b, put(e[0]))
		b = le.AppendUint32(b, put(e[1]))
		b = le.AppendUint32(b, 0)
		hwcap := uint64(0)
		if len(e) > 2 {
			hwcap = 1<<62 | 1
		}
		b = le.AppendUint64(b, hwcap)
	}
	return append(b, text...)
}

// hostTree is a host with glibc 2.36 and ROCm in /opt/rocm-therock.
func hostTree(t *testing.T) map[string]any {
	t.Helper()
	return map[string]any{
		"usr/lib/x86_64-linux-gnu/libc.so.6": testelf.File{Soname: "libc.so.6", Interp: testelf.Interp, Needed: []string{"ld-linux-x86-64.so.2"},
			Defines: []string{"libc.so.6", "GLIBC_2.2.5", "GLIBC_2.36", "GLIBC_2.4", "GLIBC_PRIVATE", "GLIBC_ABI_GNU2_TLS"}},
		"usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": testelf.File{Soname: "ld-linux-x86-64.so.2"},
		"usr/lib/x86_64-linux-gnu/libgcc_s.so.1":        testelf.File{Needed: []string{"libc.so.6"}},
		"usr/lib/x86_64-linux-gnu/libstdc++.so.6":       testelf.File{Needed: []string{"libc.so.6"}, Defines: []string{"GLIBCXX_3.4.30"}},
		"lib":                                "->usr/lib",
		"lib64/ld-linux-x86-64.so.2":         "->/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
		"usr/lib/i386-linux-gnu/libfoo.so.1": testelf.File{Narrow: true, Machine: elf.EM_386},
		"usr/local/lib/libvulkan.so.1":       testelf.File{Needed: []string{"libc.so.6"}},
		"etc/ld.so.cache": string(cacheOf(
			[]string{"libfoo.so.1", "/usr/lib/i386-linux-gnu/libfoo.so.1"},
			[]string{"libgone.so.1", "/usr/lib/libgone.so.1"},
			[]string{"libvulkan.so.1", "/usr/local/lib/glibc-hwcaps/x86-64-v3/libvulkan.so.1", "hwcap"},
			[]string{"libvulkan.so.1", "/usr/local/lib/libvulkan.so.1"},
		)),
		"opt/rocm-therock":                                     "->/opt/rocm-7.2",
		"opt/rocm-7.2/lib/libamdhip64.so.7":                    testelf.File{Runpath: []string{"$ORIGIN", "$ORIGIN/rocm_sysdeps/lib"}, Needed: []string{"libhsa-runtime64.so.1", "libc.so.6"}},
		"opt/rocm-7.2/lib/libhsa-runtime64.so.1":               testelf.File{Rpath: []string{"$ORIGIN/rocm_sysdeps/lib"}, Needed: []string{"libdrm_amdgpu.so.1", "libstdc++.so.6", "libamdhip64.so.7"}},
		"opt/rocm-7.2/lib/rocm_sysdeps/lib/libdrm_amdgpu.so.1": testelf.File{Needed: []string{"libelf.so.1"}}, // by the RPATH of who loads it
		"opt/rocm-7.2/lib/rocm_sysdeps/lib/libelf.so.1":        testelf.File{},
	}
}

func without(files map[string]any, names ...string) map[string]any {
	for _, name := range names {
		delete(files, name)
	}
	return files
}

func replaced(files map[string]any, name string, f any) map[string]any {
	files[name] = f
	return files
}

func TestMissing(t *testing.T) {
	whole := testelf.File{Sections: []testelf.Section{{Name: ".data", Data: make([]byte, 9000)}}}.Bytes()
	cut, cutIs := string(whole[:5000]), fmt.Sprintf("it has 5000 bytes, and what is loaded of it ends at byte %d", len(whole))
	hip := packager.Manifest{
		Flavour: "hrx", ID: "x", Machine: "x86_64", Glibc: "2.35",
		HostLibraries: []packager.HostLibrary{{Name: "libamdhip64.so.7", NeededBy: "bin/libggml-hip.so", Dirs: []string{"/opt/rocm-therock/lib"}}},
	}
	with := func(change func(m *packager.Manifest)) packager.Manifest {
		m := hip
		m.HostLibraries = slices.Clone(m.HostLibraries)
		change(&m)
		return m
	}
	const neither = ", which neither the package nor this host has"
	for _, tt := range []struct {
		name string
		host map[string]any
		m    packager.Manifest
		want []string
	}{
		{"all there", hostTree(t), hip, nil},
		{"no package needs anything", map[string]any{}, packager.Manifest{}, nil},
		{"library", without(hostTree(t), "opt/rocm-therock"), hip, []string{"bin/libggml-hip.so: needs libamdhip64.so.7" + neither}},
		{"what the library needs", without(hostTree(t), "opt/rocm-7.2/lib/libhsa-runtime64.so.1"), hip,
			[]string{"bin/libggml-hip.so: needs libamdhip64.so.7, and that needs libhsa-runtime64.so.1" + neither}},
		{"and what that needs", without(hostTree(t), "opt/rocm-7.2/lib/rocm_sysdeps/lib/libelf.so.1"), hip,
			[]string{"bin/libggml-hip.so: needs libamdhip64.so.7, and that needs libhsa-runtime64.so.1, and that needs libdrm_amdgpu.so.1, and that needs libelf.so.1" + neither}},
		{"a library that is cut off", replaced(hostTree(t), "opt/rocm-7.2/lib/libamdhip64.so.7", cut), hip,
			[]string{"bin/libggml-hip.so: needs libamdhip64.so.7, which this host has as /opt/rocm-therock/lib/libamdhip64.so.7, and that is cut off: " + cutIs}},
		{"and one that it needs", replaced(hostTree(t), "opt/rocm-7.2/lib/rocm_sysdeps/lib/libelf.so.1", cut), hip,
			[]string{"bin/libggml-hip.so: needs libamdhip64.so.7, and that needs libhsa-runtime64.so.1, and that needs libdrm_amdgpu.so.1, and that needs libelf.so.1, " +
				"which this host has as /opt/rocm-therock/lib/rocm_sysdeps/lib/libelf.so.1, and that is cut off: " + cutIs}},
		{"which the package brings", without(hostTree(t), "opt/rocm-7.2/lib/rocm_sysdeps/lib/libelf.so.1"), with(func(m *packager.Manifest) {
			m.Files = []packager.File{{Path: "bin/libelf.so.1", Type: packager.TypeFile}}
		}), nil},
		{"glibc too old", hostTree(t), with(func(m *packager.Manifest) { m.Glibc = "2.38" }), []string{".: needs glibc 2.38, and this host has 2.36"}},
		{"no glibc", without(hostTree(t), "usr/lib/x86_64-linux-gnu/libc.so.6"), with(func(m *packager.Manifest) { m.HostLibraries = nil }),
			[]string{".: needs glibc 2.35, and this host has no glibc"}},
		{"other machine", hostTree(t), with(func(m *packager.Manifest) { m.Machine = "aarch64" }), []string{".: is for aarch64, and this host is x86_64"}},
		{"library of another machine", hostTree(t), with(func(m *packager.Manifest) { m.HostLibraries[0].Name = "libfoo.so.1" }),
			[]string{"bin/libggml-hip.so: needs libfoo.so.1" + neither}},
		{"by the cache", hostTree(t), with(func(m *packager.Manifest) {
			m.HostLibraries = []packager.HostLibrary{{Name: "libgone.so.1", NeededBy: "a"}, {Name: "libvulkan.so.1", NeededBy: "b"}}
		}), []string{"a: needs libgone.so.1" + neither}},
		{"required by name", hostTree(t), with(func(m *packager.Manifest) {
			m.Requires = []packager.Requirement{{Kind: "library", Name: "libvulkan.so.1"}, {Kind: "library", Name: "libamdhip64.so.7"}, {Kind: "library", Name: "libmoon.so.1"}}
		}), []string{".: needs libmoon.so.1" + neither}},
		{"by name, in a required folder", hostTree(t), packager.Manifest{
			Requires: []packager.Requirement{{Kind: "path", Name: "/opt/rocm-therock"}, {Kind: "library", Name: "libamdhip64.so.7"}},
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := texts(Host{Root: tree(t, tt.host), Machine: "x86_64"}.Missing(&tt.m))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	const neither = ", which neither the package nor this host has"
	files := map[string]any{
		"bin/server": testelf.File{Interp: testelf.Interp, Runpath: []string{"$ORIGIN"}, Needed: []string{"libllama.so", "libstdc++.so.6", "libc.so.6"},
			Asks: map[string][]string{"libc.so.6": {"GLIBC_2.34", "GLIBC_ABI_GNU2_TLS"}, "libstdc++.so.6": {"GLIBCXX_3.4.30"}}},
		"bin/libllama.so": testelf.File{Needed: []string{"libm.so.6"}},
		// Nothing declares the folder: when it is verified that is no matter.
		"bin/libggml-hip.so": testelf.File{Runpath: []string{"/opt/rocm-therock/lib"}, Needed: []string{"libamdhip64.so.7"}},
	}
	full := func() map[string]any {
		host := hostTree(t)
		host["usr/lib64/libm.so.6"] = testelf.File{}
		return host
	}
	changed := func(name string, f any) map[string]any {
		host := full()
		host[name] = f
		return host
	}
	for _, tt := range []struct {
		name string
		host map[string]any
		dirs []string
		want []string
	}{
		{name: "all there", host: full()},
		{name: "C runtime", host: without(full(), "usr/lib64/libm.so.6"), want: []string{"bin/libllama.so: needs libm.so.6" + neither}},
		{name: "ROCm", host: without(full(), "opt/rocm-therock"), want: []string{"bin/libggml-hip.so: needs libamdhip64.so.7" + neither}},
		{name: "ROCm by a launcher", host: without(full(), "opt/rocm-therock"), dirs: []string{"/opt/rocm-7.2/lib"}},
		{name: "loader", host: without(full(), "lib64/ld-linux-x86-64.so.2"), want: []string{"bin/server: is started by the loader /lib64/ld-linux-x86-64.so.2, which this host lacks"}},
		{name: "C++ library too old", host: changed("usr/lib/x86_64-linux-gnu/libstdc++.so.6", testelf.File{Defines: []string{"GLIBCXX_3.4.29"}}),
			want: []string{"bin/server: needs version GLIBCXX_3.4.30 of libstdc++.so.6, which this host's /lib/x86_64-linux-gnu/libstdc++.so.6 does not have"}},
		{name: "glibc without an ability", host: changed("usr/lib/x86_64-linux-gnu/libc.so.6", testelf.File{Defines: []string{"GLIBC_2.36"}}),
			want: []string{"bin/server: needs version GLIBC_ABI_GNU2_TLS of libc.so.6, which this host's /lib/x86_64-linux-gnu/libc.so.6 does not have"}},
		{name: "glibc too old", host: changed("usr/lib/x86_64-linux-gnu/libc.so.6", testelf.File{Defines: []string{"GLIBC_2.31", "GLIBC_ABI_GNU2_TLS"}}),
			want: []string{"bin/server: needs glibc 2.34, and this host has 2.31"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, objects := inspect(t, tree(t, files))
			got := texts(Host{Root: tree(t, tt.host), Machine: "x86_64", Dirs: tt.dirs}.Check(m, objects))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	// Scripts, which alone make no package for a machine.
	m, objects := inspect(t, tree(t, map[string]any{"a": "#!/usr/bin/env -S x\n", "b": "#!/usr/bin/python3 -u\n", "c": "#!x"}))
	got := texts(Host{Root: tree(t, map[string]any{"bin": "->usr/bin", "usr/bin/env": ""}), Machine: "x86_64"}.Check(m, objects))
	if diff := cmp.Diff([]string{"b: is a script for /usr/bin/python3, which this host lacks"}, got); diff != "" {
		t.Error(diff)
	}
	m, objects = inspect(t, tree(t, files))
	if got := texts(Host{Root: t.TempDir(), Machine: "aarch64"}.Check(m, objects)); len(got) != 1 || !strings.HasSuffix(got[0], "is for x86_64, and this host is aarch64") {
		t.Errorf("on another machine: %q", got)
	}
	// A library that the manifest lists and that is gone is damage, not the host's lack.
	m, objects = inspect(t, tree(t, files))
	objects = slices.DeleteFunc(objects, func(o *Object) bool { return o.Path == "bin/libllama.so" })
	if got := texts(Host{Root: tree(t, full()), Machine: "x86_64"}.Check(m, objects)); got != nil {
		t.Errorf("a file that is gone: %q", got)
	}
}

// This machine's own cache, as ldconfig prints it.
func TestCacheAgreesWithLdconfig(t *testing.T) {
	b, err := os.ReadFile(cacheName)
	if err != nil {
		skip(t, "no cache: %v", err)
	}
	ldconfig := "/sbin/ldconfig"
	out, err := exec.CommandContext(t.Context(), ldconfig, "-p").Output()
	if err != nil {
		skip(t, "%s: %v", ldconfig, err)
	}
	want := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		left, file, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if name, _, kind := strings.Cut(left, " ("); ok && kind && !strings.Contains(left, "hwcap") {
			want[name] = append(want[name], file)
		}
	}
	if diff := cmp.Diff(want, parseCache(b)); diff != "" || len(want) < 5 {
		t.Errorf("%d libraries: %s", len(want), diff)
	}
	// Behind the form of old.
	old := append([]byte(oldCacheMagic+"\x00"), 1, 0, 0, 0)
	old = append(old, make([]byte, oldCacheEntry+4)...)
	if diff := cmp.Diff(want, parseCache(append(old, b...))); diff != "" {
		t.Error(diff)
	}
}

func TestHostFollowsLinksBelowItsRoot(t *testing.T) {
	dir := tree(t, map[string]any{"etc/real": "x", "a": "->/etc/real", "b": "->../../../../etc/real", "c": "->c", "d/e": "->/a"})
	h := Host{Root: dir}
	for name, want := range map[string]string{"/a": "/etc/real", "/b": "/etc/real", "/d/e": "/etc/real", "/d/../a": "/etc/real"} {
		if got, err := h.real(name); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if got, err := h.real("/c"); err == nil {
		t.Errorf("a ring leads to %s", got)
	}
}

func FuzzCache(f *testing.F) {
	f.Add(cacheOf([]string{"liba.so.1", "/usr/lib/liba.so.1"}, []string{"liba.so.1", "/usr/lib/x/liba.so.1", "hwcap"}))
	f.Add([]byte(oldCacheMagic + "\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for name, paths := range parseCache(b) {
			if name == "" || len(name) > maxInterp || len(paths) == 0 || !strings.HasPrefix(paths[0], "/") {
				t.Errorf("%q: %q", name, paths)
			}
		}
	})
}

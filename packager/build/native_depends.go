package build

import (
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// distributed are the packages in which distributions bring the well-known
// libraries. Debian and Arch have no dependency on a library's name, so what
// is not here is no dependency there.
var distributed = []struct{ library, deb, arch string }{
	{"libatomic.so.1", "libatomic1", "gcc-libs"},
	{"libblas.so.3", "libblas3", "blas"},
	{"libcurl.so.4", "libcurl4", "curl"},
	{"libdrm.so.2", "libdrm2", "libdrm"},
	{"libdrm_amdgpu.so.1", "libdrm-amdgpu1", "libdrm"},
	{"libelf.so.1", "libelf1", "libelf"},
	{"libgcc_s.so.1", "libgcc-s1", "gcc-libs"},
	{"libgfortran.so.5", "libgfortran5", "gcc-libs"},
	{"libgomp.so.1", "libgomp1", "gcc-libs"},
	{"libhwloc.so.15", "libhwloc15", "hwloc"},
	{"liblapack.so.3", "liblapack3", "lapack"},
	{"libnuma.so.1", "libnuma1", "numactl"},
	{"libopenblas.so.0", "libopenblas0", "openblas"},
	{"libOpenCL.so.1", "ocl-icd-libopencl1 | libopencl1", "ocl-icd"},
	{"libssl.so.3", "libssl3", "openssl"},
	{"libcrypto.so.3", "libssl3", "openssl"},
	{"libstdc++.so.6", "libstdc++6", "gcc-libs"},
	{"libtinfo.so.6", "libtinfo6", "ncurses"},
	{"libvulkan.so.1", "libvulkan1", "vulkan-icd-loader"},
	{"libz.so.1", "zlib1g", "zlib"},
	{"libzstd.so.1", "libzstd1", "zstd"},
}

// depends are what the package manager must install before the package: the C
// library of at least the manifest's version, and the libraries that the host
// must have where a dependency can say them. What a folder of its own brings,
// such as /opt/rocm-therock, is of no package.
func (n *native) depends(format string) []string {
	var out []string
	add := func(s string) {
		if s != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	if v := n.manifest.Glibc; v != "" {
		switch format {
		case FormatDeb:
			add("libc6 (>= " + v + ")")
		case FormatRPM:
			add("libc.so.6(GLIBC_" + v + ")" + bits(n.manifest))
		case FormatArch:
			add("glibc>=" + v)
		}
	}
	for _, name := range n.libraries() {
		if format == FormatRPM {
			add(name + "()" + bits(n.manifest))
			continue
		}
		for _, d := range distributed {
			if d.library == name && format == FormatDeb {
				add(d.deb)
			} else if d.library == name {
				add(d.arch)
			}
		}
	}
	if format == FormatRPM {
		// Of the payload, and of the scripts.
		out = append(out, "rpmlib(PayloadIsZstd) <= 5.4.18-1", "/bin/sh", "coreutils", "grep", "sed")
	}
	return out
}

// undeclared are what the host must have and no dependency says. A library of
// a required folder comes with the folder.
func (n *native) undeclared(format string) []string {
	var out []string
	libraries := n.libraries()
	for _, q := range n.manifest.Requires {
		switch {
		case q.Kind == packager.RequireLibrary:
			libraries = append(libraries, q.Name)
		case q.Value != "":
			out = append(out, q.Kind+" "+q.Name+"="+q.Value)
		default:
			out = append(out, q.Kind+" "+q.Name)
		}
	}
	slices.Sort(libraries)
	for _, name := range slices.Compact(libraries) {
		known := slices.ContainsFunc(distributed, func(d struct{ library, deb, arch string }) bool { return d.library == name })
		ofFolder := slices.ContainsFunc(n.manifest.HostLibraries, func(l packager.HostLibrary) bool { return l.Name == name && len(l.Dirs) > 0 })
		if !known && !ofFolder && (format != FormatRPM || !slices.Contains(n.libraries(), name)) {
			out = append(out, packager.RequireLibrary+" "+name)
		}
	}
	return out
}

// libraries are the host's libraries that its package manager can know,
// sorted. glibc's own come with the C library.
func (n *native) libraries() []string {
	var out []string
	for _, name := range n.runtime {
		if name == "libgcc_s.so.1" || name == "libstdc++.so.6" {
			out = append(out, name)
		}
	}
	for _, l := range n.manifest.HostLibraries {
		if len(l.Dirs) == 0 {
			out = append(out, l.Name)
		}
	}
	for _, q := range n.manifest.Requires {
		named := func(l packager.HostLibrary) bool { return l.Name == q.Name }
		if q.Kind == packager.RequireLibrary && !slices.ContainsFunc(n.manifest.HostLibraries, named) {
			out = append(out, q.Name)
		}
	}
	// A name that a dependency cannot hold is none.
	out = slices.DeleteFunc(out, func(s string) bool { return strings.ContainsAny(s, " \t,<>=()|") })
	slices.Sort(out)
	return slices.Compact(out)
}

// bits is what rpm adds to the names of 64-bit libraries.
func bits(m *packager.Manifest) string {
	if m.Machine == "" || strings.Contains(m.Machine, "64") || m.Machine == "s390x" {
		return "(64bit)"
	}
	return ""
}

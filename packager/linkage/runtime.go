package linkage

import (
	"slices"
	"strconv"
	"strings"
)

// glibcNames are the C library's own libraries, without what follows ".so".
var glibcNames = []string{
	"libc", "libm", "libmvec", "libdl", "libpthread", "librt", "libresolv", "libutil", "libanl", "libnsl", "libBrokenLocale", "libthread_db",
}

// Runtime tells whether a library is of the C runtime, which every host of a
// glibc distribution has: glibc's own libraries, its loader, libgcc_s.so.1 and
// libstdc++.so.6.
func Runtime(name string) bool {
	return name == "libgcc_s.so.1" || name == "libstdc++.so.6" || ofGlibc(name)
}

// ofGlibc tells whether a library is glibc's own. libnsl.so.2 and later are not.
func ofGlibc(name string) bool {
	if isLoader(name) {
		return true
	}
	stem, version, ok := strings.Cut(name, ".so.")
	if !ok || !slices.Contains(glibcNames, stem) {
		return false
	}
	n, err := strconv.Atoi(version)
	// libc.so.6 and libm.so.6 are 6.1 on no machine that is left.
	return err == nil && (n <= 2 && stem != "libnsl" || n == 1 || (stem == "libc" || stem == "libm") && n == 6)
}

// isLoader tells whether a file's name is that of a dynamic loader, such as
// ld-linux-x86-64.so.2, ld-linux-aarch64.so.1, ld-musl-x86_64.so.1 or
// ld64.so.2. A path is no name.
func isLoader(name string) bool {
	stem, version, ok := strings.Cut(name, ".so.")
	if _, err := strconv.Atoi(version); !ok || err != nil || strings.Contains(stem, "/") {
		return false
	}
	return stem == "ld" || stem == "ld64" || stem == "ld-linux" || strings.HasPrefix(stem, "ld-linux-") || strings.HasPrefix(stem, "ld-musl-")
}

// glibcVersion is the version of glibc in the name of a symbol version, "" if
// it is none.
func glibcVersion(library, name string) string {
	if !ofGlibc(library) {
		return ""
	}
	if name == "GLIBC_ABI_DT_RELR" {
		return "2.36" // relocations in a form that older loaders refuse
	}
	v, ok := strings.CutPrefix(name, "GLIBC_")
	if !ok {
		return ""
	}
	for part := range strings.SplitSeq(v, ".") {
		if _, err := strconv.ParseUint(part, 10, 16); err != nil {
			return "" // GLIBC_PRIVATE
		}
	}
	if !strings.Contains(v, ".") {
		return ""
	}
	return v
}

// newer returns the higher of two versions of glibc; "" is the lowest.
func newer(a, b string) string {
	if compareGlibc(a, b) < 0 {
		return b
	}
	return a
}

func compareGlibc(a, b string) int {
	return slices.Compare(numbers(a), numbers(b))
}

// numbers takes a version apart; "" has no numbers.
func numbers(v string) []uint64 {
	var out []uint64
	for part := range strings.SplitSeq(v, ".") {
		if n, err := strconv.ParseUint(part, 10, 16); err == nil {
			out = append(out, n)
		}
	}
	return out
}

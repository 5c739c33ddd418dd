package linkage

import (
	"cmp"
	"slices"

	"github.com/1bit-systems/pkg/packager"
)

// Linkage is what a package's ELF files want of each other and of a host.
type Linkage struct {
	// Machine is the one that the package is for, "" if it has no ELF files or
	// those of several machines; Machines are all of them, sorted.
	Machine  string
	Machines []string
	// GPUTargets are the processors of all GPU code, sorted.
	GPUTargets []string
	// Glibc is the least version of the host's C library, "" if none is needed.
	Glibc string
	// Host are the libraries that the host must have, sorted by name, without
	// those of the C runtime, which are in Runtime.
	Host    []packager.HostLibrary
	Runtime []string
	// Inside maps an object's path to the libraries it needs, and those to the
	// path of the file that the loader takes.
	Inside map[string]map[string]string
	// Elsewhere maps in the same way those that the package holds where the
	// loader does not look for them. In a package with a loader of its own,
	// which a launcher starts with folders that no file tells, and in an
	// imported one that is no problem.
	Elsewhere map[string]map[string]string
	// Problems are sorted by path.
	Problems []Problem

	open   []need // what the package does not hold, by object and name
	loader bool   // the package has one of its own
}

// Problem is something that keeps a package from working on every host that it
// is for, or from working on this one.
type Problem struct {
	Path string // of the object
	What string // such as "needs libfoo.so.1, which …"
	// Library is the one that is missing, where that is the problem.
	Library string
	// Entry is the one of RUNPATH or RPATH, where that is the problem.
	Entry string
}

func sortProblems(p []Problem) []Problem {
	slices.SortFunc(p, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.What, b.What))
	})
	return slices.Compact(p)
}

// need is a library that an object asks for and the package does not hold.
type need struct {
	object *Object
	name   string
	dirs   []string // absolute folders that it is looked for in first
}

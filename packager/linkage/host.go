package linkage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// Host is a machine that a package is to run on. Its answers come from its
// files alone.
type Host struct {
	// Root is its root folder; "" is /.
	Root string
	// Machine is its processor; "" is the one that this program was built for.
	Machine string
	// Dirs are more folders that its programs look in, absolute: what a launcher
	// puts into LD_LIBRARY_PATH.
	Dirs []string
}

// Missing returns what a package wants of the host's libraries and the host
// lacks, by the manifest alone: the machine, the version of glibc, the host
// libraries and what those need themselves. It reads the headers of a few
// files, so it is cheap enough for every switch. Problem.Path is "." where no
// one file asks.
func (h Host) Missing(m *packager.Manifest) []Problem {
	if p := h.machine(m.Machine, "."); p != nil {
		return p
	}
	f := h.finder(m, m.Machine)
	out := f.glibc(m.Glibc, ".")
	for _, l := range m.HostLibraries[:min(len(m.HostLibraries), maxHostLibraries)] {
		out = append(out, f.library(l.Name, l.NeededBy, l.Dirs)...)
	}
	return sortProblems(append(out, f.required(m)...))
}

// Check returns what a package wants of the host and the host lacks, by the
// package's files: also the C runtime, the versions of symbols, the loader, and what scripts are
// started by.
// How its files look for libraries is no matter here, only whether they are
// found.
func (h Host) Check(m *packager.Manifest, objects []*Object) []Problem {
	l := Resolve(m, objects)
	if l.Machine == "" { // nothing that a loader would take, or a package for several machines
		return sortProblems(append(h.interpreters(m, objects), h.finder(m, m.Machine).required(m)...))
	}
	first := slices.IndexFunc(objects, func(o *Object) bool { return o.Machine == l.Machine })
	if p := h.machine(l.Machine, objects[first].Path); p != nil {
		return p
	}
	f := h.finder(m, l.Machine)
	out := h.interpreters(m, objects)
	if l.Glibc != "" {
		asks := slices.IndexFunc(objects, func(o *Object) bool { return o.Glibc == l.Glibc })
		out = append(out, f.glibc(l.Glibc, objects[asks].Path)...)
	}
	for _, n := range l.open[:min(len(l.open), maxHostLibraries)] {
		if f.own[n.name] {
			continue // it should be there: that the file is not is damage
		}
		out = append(out, f.library(n.name, n.object.Path, n.dirs)...)
		out = append(out, f.versions(n)...)
	}
	for _, o := range objects {
		if o.Interp != "" && !l.loader && !f.exists(o.Interp) {
			out = append(out, Problem{Path: o.Path, Library: o.Interp, What: fmt.Sprintf("is started by the loader %s, which this host lacks", o.Interp)})
		}
	}
	return sortProblems(append(out, f.required(m)...))
}

// machine says that a package is for another machine.
func (h Host) machine(of, file string) []Problem {
	mine := h.Machine
	if mine == "" {
		mine = thisMachine()
	}
	also := map[string][]string{"x86_64": {"i386", "x32"}, "aarch64": {"arm"}}
	if of == "" || of == mine || slices.Contains(also[mine], of) {
		return nil
	}
	return []Problem{{Path: file, What: fmt.Sprintf("is for %s, and this host is %s", of, mine)}}
}

// thisMachine is what this program was built for, as uname names it.
func thisMachine() string {
	names := map[string]string{"amd64": "x86_64", "386": "i386", "arm64": "aarch64", "loong64": "loongarch64"}
	if name := names[runtime.GOARCH]; name != "" {
		return name
	}
	return runtime.GOARCH
}

// open opens a file of the host.
func (h Host) open(name string) (*os.File, error) {
	real, err := h.real(name)
	if err != nil {
		return nil, err
	}
	return os.Open(real)
}

// real is where a file of the host is on this machine. Below a root of its own
// links are followed as that host would.
func (h Host) real(name string) (string, error) {
	if h.Root == "" || h.Root == "/" {
		return name, nil
	}
	at, todo := "/", strings.Split(name, "/")
	for hops := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		next := path.Join(at, part)
		target, err := os.Readlink(filepath.Join(h.Root, next))
		if err != nil { // no link, or not there: opening it tells
			at = next
			continue
		}
		if hops++; hops > 40 {
			return "", fmt.Errorf("open %s: %w", name, errors.New("too many links"))
		}
		if path.IsAbs(target) {
			at = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return filepath.Join(h.Root, at), nil
}

// read looks at a library of the host; nil if it is none.
func (h Host) read(name string) *Object {
	f, err := h.open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	o, err := ReadFile(f, name)
	if err != nil {
		return nil
	}
	return o
}

func (h Host) exists(name string) bool {
	real, err := h.real(name)
	if err != nil {
		return false
	}
	_, err = os.Stat(real)
	return !errors.Is(err, fs.ErrNotExist)
}

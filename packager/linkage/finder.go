package linkage

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// maxHostLibraries bounds how many of a host's libraries are looked at for one
// package. The largest engine brings in some two hundred.
const maxHostLibraries = 4 << 10

// finder looks for the libraries of one package on a host.
type finder struct {
	Host
	machine string
	cached  map[string][]string // the cache's paths by library; nil: not read yet
	own     map[string]bool     // names that the package brings
	dirs    []string            // the last folders to look in
	found   map[string]*hostLibrary
	objects map[string]*Object // what was read, by path
}

// hostLibrary is a library of the host, or the want of one.
type hostLibrary struct {
	object *Object      // nil: the host has none
	rpath  []string     // the folders of the RPATHs that led to it and of its own
	lacks  []string     // the first thing on the way that is missing or damaged: names, from its need on
	broken *hostLibrary // that thing, if it is damaged
}

// damaged tells that the file is there and no loader could use it.
func (l *hostLibrary) damaged() bool { return l.object != nil && l.object.Damage != "" }

func (l *hostLibrary) damage() string {
	return fmt.Sprintf("which this host has as %s, and that %s", l.object.Path, l.object.Wrong())
}

func (h Host) finder(m *packager.Manifest, machine string) *finder {
	if machine == "" {
		machine = thisMachine()
	}
	f := &finder{Host: h, machine: machine, own: map[string]bool{}, found: map[string]*hostLibrary{}, objects: map[string]*Object{}}
	for i := range m.Files {
		if m.Files[i].Type != packager.TypeDir {
			f.own[path.Base(m.Files[i].Path)] = true
		}
	}
	f.dirs = defaultDirs(machine)
	// What the package requires of the host as a folder may hold a library that
	// it requires by name: its launcher, or the unit, tells the loader so.
	for _, q := range m.Requires {
		if q.Kind == packager.RequirePath {
			f.dirs = append(f.dirs, q.Name, path.Join(q.Name, "lib"), path.Join(q.Name, "lib64"))
		}
	}
	return f
}

// defaultDirs are the folders that a loader looks in last.
func defaultDirs(machine string) []string {
	triples := map[string]string{"arm": "arm-linux-gnueabihf", "ppc64le": "powerpc64le-linux-gnu", "x32": "x86_64-linux-gnux32"}
	triple := triples[machine]
	if triple == "" {
		triple = machine + "-linux-gnu"
	}
	return []string{"/lib/" + triple, "/usr/lib/" + triple, "/lib64", "/usr/lib64", "/lib", "/usr/lib"}
}

// glibc says that the host's C library is too old for what file asks.
func (f *finder) glibc(want, file string) []Problem {
	if want == "" {
		return nil
	}
	have := f.hostGlibc()
	switch {
	case have == "":
		return []Problem{{Path: file, Library: "libc.so.6", What: fmt.Sprintf("needs glibc %s, and this host has no glibc", want)}}
	case compareGlibc(have, want) < 0:
		return []Problem{{Path: file, Library: "libc.so.6", What: fmt.Sprintf("needs glibc %s, and this host has %s", want, have)}}
	}
	return nil
}

// hostGlibc is the version of the host's C library: the highest that it
// defines symbols of.
func (f *finder) hostGlibc() string {
	libc := f.look("libc.so.6", nil, nil)
	if libc.object == nil {
		return ""
	}
	version := ""
	for _, name := range libc.object.defined {
		version = newer(version, glibcVersion("libc.so.6", name))
	}
	return version
}

// library says that the host lacks a library that file needs, or something that
// this library needs in turn: then it would not load either.
func (f *finder) library(name, file string, dirs []string) []Problem {
	l := f.look(name, dirs, nil)
	way, what := []string{name}, "which neither the package nor this host has"
	switch {
	case l.damaged():
		what = l.damage()
	case l.object != nil && len(l.lacks) == 0:
		return nil
	case l.object != nil:
		way = append(way, l.lacks...)
		if l.broken != nil {
			what = l.broken.damage()
		}
	}
	return []Problem{{Path: file, Library: way[len(way)-1], What: fmt.Sprintf("needs %s, %s", strings.Join(way, ", and that needs "), what)}}
}

// required says which libraries the host lacks that the manifest requires by
// name alone: those that programs open while they run.
func (f *finder) required(m *packager.Manifest) []Problem {
	var out []Problem
	for _, q := range m.Requires {
		named := slices.ContainsFunc(m.HostLibraries, func(l packager.HostLibrary) bool { return l.Name == q.Name })
		if q.Kind == packager.RequireLibrary && !named {
			out = append(out, f.library(q.Name, ".", nil)...)
		}
	}
	return out
}

// look finds a library and all that it needs, once for every name: as in a
// process, the first that was loaded serves all. dirs are searched first; who
// asks next, with others, may find what was not found before.
func (f *finder) look(name string, dirs, rpath []string) *hostLibrary {
	if l := f.found[name]; l != nil {
		return l
	}
	l := &hostLibrary{object: f.find(name, dirs)}
	if l.object == nil || len(f.found) > maxHostLibraries {
		return l
	}
	f.found[name] = l
	if s := l.object.Soname; s != "" && f.found[s] == nil {
		f.found[s] = l
	}
	origin := path.Dir(l.object.Path)
	if l.object.Runpath == nil {
		for _, entry := range l.object.Rpath {
			l.rpath = append(l.rpath, expand(entry, origin, f.machine)...)
		}
	}
	l.rpath = append(l.rpath, rpath...)
	search := l.rpath
	if l.object.Runpath != nil {
		search = nil
		for _, entry := range l.object.Runpath {
			search = append(search, expand(entry, origin, f.machine)...)
		}
	}
	for _, need := range l.object.Needed {
		if f.own[need] {
			continue
		}
		if strings.Contains(need, "/") { // a path, which may be from $ORIGIN
			for _, dir := range expand(path.Dir(need), origin, f.machine) {
				if at := path.Join(dir, path.Base(need)); f.take(at) != nil {
					need = at
					break
				}
			}
		}
		next := f.look(need, search, l.rpath)
		switch {
		case len(l.lacks) > 0:
		case next.object == nil:
			l.lacks = []string{need}
		case next.damaged():
			l.lacks, l.broken = []string{need}, next
		case len(next.lacks) > 0:
			l.lacks, l.broken = append([]string{need}, next.lacks...), next.broken
		}
	}
	return l
}

// find is the library of that name that the loader would take, nil if there is
// none.
func (f *finder) find(name string, dirs []string) *Object {
	if strings.Contains(name, "/") {
		return f.take(name)
	}
	for _, dir := range slices.Concat(dirs, f.Dirs) {
		if o := f.take(path.Join(dir, name)); o != nil {
			return o
		}
	}
	for _, at := range f.cache()[name] {
		if o := f.take(at); o != nil {
			return o
		}
	}
	for _, dir := range f.dirs {
		if o := f.take(path.Join(dir, name)); o != nil {
			return o
		}
	}
	return nil
}

// take is the file if it is a library for the package's machine, or a damaged
// one: the loader looks no further then.
func (f *finder) take(name string) *Object {
	o, known := f.objects[name]
	if !known {
		if path.IsAbs(name) {
			o = f.read(name)
		}
		f.objects[name] = o
	}
	if o == nil || o.Machine != f.machine && o.Damage == "" {
		return nil
	}
	return o
}

// versions says that a library of the host is too old: it does not define the
// symbols' versions that an object asks of it. glibc has its own words.
func (f *finder) versions(n need) []Problem {
	l := f.found[n.name]
	if l == nil || l.object == nil {
		return nil
	}
	return lacking(n.object, n.name, l.object, "this host's")
}

// lacking says which versions an object asks of a library that does not define
// them. One that defines none at all is taken by the loader with a warning. Of
// glibc, whose numbers are compared as one, it looks only at those without a
// number: distributions add them to older ones.
func lacking(o *Object, name string, library *Object, whose string) []Problem {
	if len(library.defined) == 0 {
		return nil
	}
	var out []Problem
	for _, v := range o.versions {
		if ofGlibc(name) && !strings.HasPrefix(v.name, "GLIBC_ABI_") {
			continue
		}
		if v.library == name && !slices.Contains(library.defined, v.name) {
			out = append(out, Problem{Path: o.Path, Library: name, What: fmt.Sprintf("needs version %s of %s, which %s %s does not have", v.name, name, whose, library.Path)})
		}
	}
	return out
}

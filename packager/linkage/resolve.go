package linkage

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// Resolve does what the dynamic loader would do with every program of a
// package, without a host and wherever the package's folder is: it finds the
// library for every need, breadth first, among what is loaded already and then
// in the folders of RPATH and RUNPATH. A library that no program loads by
// itself (a backend that is opened while the program runs) is loaded after:
// what it needs may be in its own folders or among what a program has loaded.
//
// What the package does not hold must be of the C runtime, or be asked of the
// host by the manifest's requirements: by name, or by the path of a folder
// that RUNPATH or RPATH lead to. All else is a problem.
//
// forbidden are folders that no RUNPATH may lead to, such as the build tree;
// homes and folders for temporary files always are.
func Resolve(m *packager.Manifest, objects []*Object, forbidden ...string) *Linkage {
	r := newResolver(m)
	r.take(objects)
	r.run()
	r.sum(objects)
	if r.steps > maxSteps {
		r.l.Problems = append(r.l.Problems, Problem{Path: ".", What: "asks for more libraries in more folders than can be followed"})
	}
	for _, o := range objects {
		r.l.Problems = append(r.l.Problems, r.entries(o, forbidden)...)
		r.l.Problems = append(r.l.Problems, r.interp(o)...)
		r.l.Problems = append(r.l.Problems, audited(o)...)
		r.l.Problems = append(r.l.Problems, r.script(o, forbidden)...)
	}
	r.l.Problems = sortProblems(r.l.Problems)
	return r.l
}

type needKey struct{ object, name string }

type resolver struct {
	m       *packager.Manifest
	l       *Linkage
	objects map[string]*Object // by path, those that a loader takes
	places  map[string]string  // by a library's name, the first entry of that name
	lenient bool               // imported, or with a loader of its own
	libc    bool               // with a C library of its own
	steps   int

	met     map[needKey]string
	unmet   map[needKey]need
	reached map[string]bool   // by what was committed
	loaded  map[string]string // by name, what a program has loaded before a library is opened
}

func newResolver(m *packager.Manifest) *resolver {
	return &resolver{
		m: m, objects: map[string]*Object{}, places: map[string]string{}, loaded: map[string]string{},
		met: map[needKey]string{}, unmet: map[needKey]need{}, reached: map[string]bool{},
		l: &Linkage{Inside: map[string]map[string]string{}, Elsewhere: map[string]map[string]string{}},
	}
}

// take sorts the objects in.
func (r *resolver) take(objects []*Object) {
	machines := map[string]bool{}
	for _, o := range objects {
		r.l.GPUTargets = append(r.l.GPUTargets, o.GPUTargets...)
		if o.Damage != "" {
			r.l.Problems = append(r.l.Problems, Problem{Path: o.Path, What: o.Wrong()})
			continue
		}
		if o.Machine == GPU || o.Machine == "" {
			continue
		}
		r.objects[o.Path] = o
		if runsLinux(o.Machine) && !machines[o.Machine] {
			machines[o.Machine] = true
			r.l.Machines = append(r.l.Machines, o.Machine)
		}
		for _, name := range []string{path.Base(o.Path), o.Soname} {
			r.l.loader = r.l.loader || isLoader(name)
			r.libc = r.libc || name == "libc.so.6"
			if name != "" && r.places[name] == "" {
				r.places[name] = o.Path
			}
		}
	}
	for i := range r.m.Files {
		if f := &r.m.Files[i]; f.Type == packager.TypeLink && r.places[path.Base(f.Path)] == "" {
			r.places[path.Base(f.Path)] = f.Path
		}
	}
	r.lenient = r.m.Imported || r.l.loader
	slices.Sort(r.l.GPUTargets)
	r.l.GPUTargets = slices.Compact(r.l.GPUTargets)
	slices.Sort(r.l.Machines)
	if len(r.l.Machines) == 1 {
		r.l.Machine = r.l.Machines[0]
	}
	for _, machine := range r.l.Machines[min(1, len(r.l.Machines)):] {
		i := slices.IndexFunc(objects, func(o *Object) bool { return o.Machine == machine })
		r.l.Problems = append(r.l.Problems, Problem{
			Path: objects[i].Path,
			What: fmt.Sprintf("is for %s, and others are for %s: make a package for each machine", machine, r.l.Machines[0]),
		})
	}
}

// runsLinux tells a machine that runs Linux programs from one whose ELF
// files are data to the host, such as firmware.
func runsLinux(name string) bool { return !strings.HasPrefix(name, "elf") && name != GPU }

// run loads every program, and then what no program has loaded.
func (r *resolver) run() {
	byProgram := map[string]string{}
	var later []*Object
	for _, o := range r.sorted() {
		if !o.Program {
			later = append(later, o)
			continue
		}
		p := r.load(o)
		r.commit(p)
		for name, n := range p.names {
			if _, ok := byProgram[name]; !ok {
				byProgram[name] = n.object.Path
			}
		}
	}
	r.loaded = byProgram
	later = slices.DeleteFunc(later, func(o *Object) bool { return r.reached[o.Path] })
	// One that another of them loads is looked at as that does it.
	below := map[string]bool{}
	loads := map[string]*process{}
	for _, o := range later {
		p := r.load(o)
		loads[o.Path] = p
		for _, n := range p.list[1:] {
			below[n.object.Path] = true
		}
	}
	for _, o := range later {
		if !below[o.Path] {
			r.commit(loads[o.Path])
		}
	}
	for _, o := range later { // those that load each other in a ring
		if !r.reached[o.Path] {
			r.commit(loads[o.Path])
		}
	}
}

func (r *resolver) sorted() []*Object {
	var out []*Object
	for _, o := range r.objects {
		out = append(out, o)
	}
	SortObjects(out)
	return out
}

// commit takes over what loading found. A need that is met for one program and
// not for another is not met.
func (r *resolver) commit(p *process) {
	for _, n := range p.list {
		r.reached[n.object.Path] = true
	}
	for key, at := range p.met {
		if _, ok := r.met[key]; !ok {
			r.met[key] = at
		}
	}
	for key, n := range p.unmet {
		if _, ok := r.unmet[key]; !ok {
			r.unmet[key] = n
		}
	}
}

// sum says what all that means.
func (r *resolver) sum(objects []*Object) {
	put := func(to map[string]map[string]string, key needKey, at string) {
		if to[key.object] == nil {
			to[key.object] = map[string]string{}
		}
		to[key.object][key.name] = at
	}
	for key, at := range r.met {
		if _, open := r.unmet[key]; open {
			continue
		}
		put(r.l.Inside, key, at)
		r.l.Problems = append(r.l.Problems, lacking(r.objects[key.object], key.name, r.objects[at], "the package's")...)
	}
	host := map[string]*packager.HostLibrary{}
	for _, n := range r.needs() {
		key := needKey{n.object.Path, n.name}
		declared := r.declared(n)
		if strings.Contains(n.name, "/") && declared == nil {
			r.l.open = append(r.l.open, n)
			r.l.Problems = append(r.l.Problems, Problem{Path: n.object.Path, What: fmt.Sprintf("needs %q, by a path that is neither in the package nor required of its host: link it by a name, with -l, or give that library a soname", n.name)})
			continue
		}
		if place := r.places[n.name]; place != "" && !strings.Contains(n.name, "/") {
			put(r.l.Elsewhere, key, place)
			if !r.lenient && !Runtime(n.name) {
				r.l.Problems = append(r.l.Problems, Problem{Path: n.object.Path, Library: n.name,
					What: fmt.Sprintf("needs %s, which is in the package as %s, where the loader does not look for it: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN", n.name, place)})
			}
			continue
		}
		r.l.open = append(r.l.open, n)
		name := path.Base(n.name) // a path's folder is among the declared ones
		switch {
		case Runtime(n.name):
			r.l.Runtime = append(r.l.Runtime, n.name)
		case declared == nil:
			r.l.Problems = append(r.l.Problems, Problem{Path: n.object.Path, Library: n.name,
				What: fmt.Sprintf("needs %s, which neither the package nor its host requirements provide", n.name)})
		case host[name] == nil:
			host[name] = &packager.HostLibrary{Name: name, NeededBy: n.object.Path, Dirs: declared}
		default:
			for _, dir := range declared {
				if h := host[name]; !slices.Contains(h.Dirs, dir) {
					h.Dirs = append(h.Dirs, dir)
				}
			}
		}
	}
	for _, h := range host {
		if len(h.Dirs) == 0 {
			h.Dirs = nil
		}
		r.l.Host = append(r.l.Host, *h)
	}
	slices.SortFunc(r.l.Host, func(a, b packager.HostLibrary) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(r.l.Runtime)
	r.l.Runtime = slices.Compact(r.l.Runtime)
	if !r.libc {
		for _, o := range objects {
			r.l.Glibc = newer(r.l.Glibc, o.Glibc)
		}
	}
}

// needs returns what was not met, by object and name.
func (r *resolver) needs() []need {
	var out []need
	for _, n := range r.unmet {
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b need) int {
		return cmp.Or(strings.Compare(a.object.Path, b.object.Path), strings.Compare(a.name, b.name))
	})
	return out
}

// declared returns the folders of the host that a library may be in, as far as
// the manifest requires them; nil if it asks the host for no such library.
func (r *resolver) declared(n need) []string {
	dirs := []string{}
	for _, dir := range n.dirs {
		if declaredPath(r.m, dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) > 0 || slices.Contains(r.m.Requires, packager.Requirement{Kind: packager.RequireLibrary, Name: n.name}) {
		return dirs
	}
	return nil
}

// declaredPath tells whether a folder of the host is, or is below, a path that
// the manifest requires.
func declaredPath(m *packager.Manifest, dir string) bool {
	return slices.ContainsFunc(m.Requires, func(q packager.Requirement) bool {
		return q.Kind == packager.RequirePath && within(dir, q.Name)
	})
}

func within(dir, parent string) bool {
	return dir == parent || parent == "/" || strings.HasPrefix(dir, parent+"/")
}

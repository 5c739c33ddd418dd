package linkage

import (
	"path"
	"slices"
	"strings"
)

// maxSteps bounds the work of all programs together, in folders looked at. The
// largest engines take some ten thousand; a package may be made to take more
// than anyone can wait for.
const (
	maxSteps     = 2 << 20
	stepsPerNeed = 8
)

// process is one program, or one library that was opened, and all that the
// loader brings in for it.
type process struct {
	r     *resolver
	list  []*node          // in the order of loading
	files map[string]*node // by the path of the file: a file is loaded once
	names map[string]*node // by every name that it was asked for or gives itself
	met   map[needKey]string
	unmet map[needKey]need
	asked map[string][]string // by a name that is not in the package: where it was looked for on the host
}

// node is an object that was loaded.
type node struct {
	object *Object
	origin string // the folder $ORIGIN stands for: where it was opened, links unfollowed
	loader *node  // who asked for it first
	// The folders of its own RUNPATH or RPATH.
	dirs []string
}

// load does what ld.so does: breadth first through all needs (glibc,
// elf/dl-deps.c and elf/dl-load.c).
func (r *resolver) load(o *Object) *process {
	p := &process{r: r, files: map[string]*node{}, names: map[string]*node{}, met: map[needKey]string{}, unmet: map[needKey]need{}, asked: map[string][]string{}}
	p.add(&node{object: o, origin: path.Dir(o.Path)}, path.Base(o.Path))
	for i := 0; i < len(p.list); i++ {
		n := p.list[i]
		for _, name := range n.object.Needed {
			p.need(n, name)
		}
	}
	return p
}

func (p *process) add(n *node, name string) {
	if known := p.files[n.object.Path]; known != nil {
		p.names[name] = known
		return
	}
	for _, entry := range slices.Concat(n.object.Runpath, n.object.Rpath) { // one of them is empty
		n.dirs = append(n.dirs, expand(entry, n.origin, n.object.Machine)...)
	}
	p.list = append(p.list, n)
	p.files[n.object.Path] = n
	for _, name := range []string{name, n.object.Soname} {
		if name != "" && p.names[name] == nil {
			p.names[name] = n
		}
	}
}

func (p *process) need(n *node, name string) {
	if p.r.steps += stepsPerNeed; p.r.steps > maxSteps {
		return
	}
	key := needKey{n.object.Path, name}
	if known := p.names[name]; known != nil {
		p.met[key] = known.object.Path
		return
	}
	var outside []string
	for _, dir := range p.r.searched(n, name) {
		if p.r.steps += 1 + len(dir)/16; p.r.steps > maxSteps {
			return
		}
		if path.IsAbs(dir) {
			if dir = path.Clean(dir); !slices.Contains(outside, dir) {
				outside = append(outside, dir)
			}
			continue
		}
		if found := p.r.open(dir, path.Base(name), n.object.Machine); found != nil {
			found.loader = n
			p.add(found, name)
			p.met[key] = found.object.Path
			return
		}
	}
	if at, ok := p.r.loaded[name]; ok {
		p.met[key] = at
		return
	}
	// Where an earlier one finds it, it is loaded by now, and serves this one too.
	for _, dir := range outside {
		if asked := p.asked[name]; len(asked) < maxPathEntries && !slices.Contains(asked, dir) {
			p.asked[name] = append(asked, dir)
		}
	}
	p.unmet[key] = need{object: n.object, name: name, dirs: slices.Clone(p.asked[name])}
}

// searched lists the folders that a need is looked for in, those of the host
// absolute, those of the package relative to its root and as they are written:
// ".." means the parent of what a link leads to.
func (r *resolver) searched(n *node, name string) []string {
	if strings.Contains(name, "/") { // a path, not to be looked for
		return expand(path.Dir(name), n.origin, n.object.Machine)
	}
	if n.object.Runpath != nil {
		return n.dirs
	}
	var dirs []string
	for at := n; at != nil && len(dirs) < maxPathEntries; at = at.loader {
		if at.object.Runpath == nil {
			dirs = append(dirs, at.dirs...)
		}
	}
	return dirs
}

// open is the library of that name in a folder of the package, nil if there is
// none that the loader would take.
func (r *resolver) open(dir, name, machine string) *node {
	f, err := r.m.Resolve(dir + "/" + name)
	if err != nil {
		return nil
	}
	o := r.objects[f.Path]
	if o == nil || o.Machine != machine {
		return nil
	}
	return &node{object: o, origin: dir}
}

// expand puts the folders for an entry of RUNPATH or RPATH: more than one where
// it depends on the host, none where it depends on the current folder.
func expand(entry, origin, machine string) []string {
	out := []string{entry}
	replace := func(token string, values ...string) {
		var next []string
		for _, s := range out {
			if !strings.Contains(s, "$"+token) && !strings.Contains(s, "${"+token+"}") {
				next = append(next, s)
				continue
			}
			for _, v := range values {
				next = append(next, strings.NewReplacer("${"+token+"}", v, "$"+token, v).Replace(s))
			}
		}
		out = next
	}
	rest, ok := cutOrigin(entry)
	if ok {
		out = []string{origin + rest}
	}
	// What Debian, what Fedora and what others call the folder of libraries.
	replace("LIB", "lib/"+machine+"-linux-gnu", "lib64", "lib")
	replace("PLATFORM", machine)
	var dirs []string
	for _, s := range out {
		if (ok || path.IsAbs(s)) && !strings.Contains(s, "$") {
			dirs = append(dirs, s)
		}
	}
	return dirs
}

// cutOrigin takes $ORIGIN off the front. Anywhere else it makes no path.
func cutOrigin(entry string) (rest string, ok bool) {
	for _, token := range []string{"$ORIGIN", "${ORIGIN}"} {
		if rest, ok := strings.CutPrefix(entry, token); ok && (rest == "" || rest[0] == '/') {
			return rest, true
		}
	}
	return "", false
}

package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// place finds packages by path: those of the store, and what isPackage takes for one, also when it is gone or has no
// manifest. It remembers what it found, so it lives no longer than one command.
type place struct {
	stores []*store.Store
	roots  []string // folders whose 1bit-… entries are packages

	inherited map[string]string // what the manager hands to every process; nil where that was not asked

	mu    sync.Mutex
	known map[string]*store.Package // by folder; nil for one that the store does not know
}

func (h *Host) place() *place {
	p := &place{stores: append([]*store.Store{h.Store}, h.Elsewhere...), known: map[string]*store.Package{}}
	for _, one := range slices.Concat([]*store.Store{h.Store}, h.Store.Also, h.Elsewhere) {
		dir := filepath.Clean(one.Dir)
		p.roots = append(p.roots, dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			p.roots = append(p.roots, real)
		}
	}
	return p
}

// split divides a path into the package folder and what lies below it. A path that reaches a package over links
// only is resolved first.
func (p *place) split(path string) (folder, rest string, ok bool) {
	if !filepath.IsAbs(path) {
		return "", "", false
	}
	path = filepath.Clean(path)
	if folder, rest, ok = p.below(path); ok && !isLink(folder) {
		return folder, rest, true
	}
	if real := resolved(path); real != path {
		if into, below, is := p.below(real); is {
			return into, below, true
		}
	}
	return folder, rest, ok
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// resolved is a path without links, as far as it exists.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil || path == "/" {
		return or(real, path)
	}
	return filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path))
}

func (p *place) below(path string) (folder, rest string, ok bool) {
	for _, root := range p.roots {
		tail, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(tail, "/")
		if folder := filepath.Join(root, name); strings.HasPrefix(name, packager.DirPrefix) && p.isPackage(folder, rest) {
			return folder, rest, true
		}
	}
	return "", "", false
}

// at names the package whose folder contains path. One that the store does not know has no digest.
func (p *place) at(path string) (PackageRef, bool) {
	folder, _, ok := p.split(path)
	if !ok {
		return PackageRef{}, false
	}
	if pkg := p.pkg(folder); pkg != nil {
		return refOf(pkg), true
	}
	return PackageRef{Name: strings.TrimPrefix(filepath.Base(folder), packager.DirPrefix), Path: folder}, true
}

// pkg is the installed package at a folder, nil where the store knows none.
func (p *place) pkg(folder string) *store.Package {
	p.mu.Lock()
	defer p.mu.Unlock()
	pkg, seen := p.known[folder]
	if !seen {
		for _, one := range p.stores {
			if pkg, seen = one.AtPath(folder); seen {
				break
			}
		}
		p.known[folder] = pkg
	}
	return pkg
}

func refOf(p *store.Package) PackageRef { return PackageRef{p.Name, p.Digest, p.Path} }

// inValue finds the first package in a value that may be a list of paths.
func (p *place) inValue(value string) (PackageRef, bool) {
	for part := range strings.SplitSeq(value, ":") {
		if ref, ok := p.at(part); ok {
			return ref, true
		}
	}
	return PackageRef{}, false
}

// live tells what the processes of a unit run from. keys are the variables of its binding.
func (h *Host) live(u *systemd.Unit, pl *place, keys []string) (*Live, []procInfo, error) {
	pids, err := systemd.Processes(h.proc(), h.cgroup(), u)
	if err != nil {
		return nil, nil, err
	}
	var procs []procInfo
	boot := bootTime(h.proc())
	for _, pid := range pids {
		if p, ok := readProcessOf(h.proc(), pid, boot); ok {
			procs = append(procs, p)
		}
	}
	return liveOf(procs, u.MainPID, pl, keys), procs, nil
}

// liveOf decides from the processes alone. The main process is judged by what it was started with, since that is
// what it starts a server from. Every other process is judged by what it is: its program, the files it has
// mapped, its arguments; by its environment only when none of them lies in a package.
func liveOf(procs []procInfo, mainPID int, pl *place, keys []string) *Live {
	if len(procs) == 0 {
		return nil
	}
	l := &Live{}
	var others []procInfo
	for _, p := range procs {
		l.Unreadable = l.Unreadable || p.unreadable
		if p.pid != mainPID {
			others = append(others, p)
			continue
		}
		ref, ok := pl.inEnv(p.env, keys)
		if !ok || pl.engine(p) != "" { // an engine's program starts no server: it is one
			ref, _ = pl.inProcess(p)
		}
		l.Main = pl.newProcess(p, ref)
	}
	l.Child = childOf(procs, mainPID, pl, keys)
	for _, p := range others {
		ref, ok := pl.inProcess(p)
		if ok && l.Child != nil && p.pid != l.Child.PID && ref.Name != l.Child.Package {
			l.others = append(l.others, pl.newProcess(p, ref))
		}
	}
	return l
}

// childOf picks the server among the processes that are not the main one: one that is seen to run from a package
// before one that only has a package in its environment (a shell on its way to start something), a child of the
// main process before its descendants, the older before the younger. One that is still what its parent is, a shell
// about to start something for instance, is none: it would soon be gone, or be another.
func childOf(procs []procInfo, mainPID int, pl *place, keys []string) *Process {
	var best *Process
	bestRank := 0
	for _, p := range procs {
		if p.pid == mainPID || slices.ContainsFunc(procs, p.isCopyOf) {
			continue
		}
		rank := 4
		ref, ok := pl.inProcess(p)
		if !ok && pl.outsider(p) == "" {
			rank = 0
			if ref, ok = pl.inEnv(p.env, keys); !ok {
				continue
			}
		}
		if p.parent == mainPID {
			rank += 2
		}
		if best == nil || rank > bestRank || rank == bestRank && p.since.Before(best.Since) {
			best, bestRank = pl.newProcess(p, ref), rank
			best.proved = rank >= 4
		}
	}
	return best
}

// isCopyOf tells whether a process was forked by another one and has not executed a program of its own since.
func (p procInfo) isCopyOf(parent procInfo) bool {
	return p.parent == parent.pid && p.exe != "" && p.exe == parent.exe && slices.Equal(p.argv, parent.argv)
}

func (pl *place) newProcess(p procInfo, ref PackageRef) *Process {
	q := &Process{Package: ref.Name, Path: ref.Path, PID: p.pid, Since: p.since, digest: ref.Digest}
	if program := pl.outsider(p); ref.isZero() && program != "" {
		q.Path, q.outside = program, true
	}
	if !ref.isZero() {
		_, err := os.Lstat(ref.Path)
		exe, gone := undeleted(p.exe)
		_, within := pl.at(exe)
		q.deleted, q.replaced = err != nil, err == nil && gone && within
	}
	return q
}

// outsider is the engine's program that a process is, where that lies in no package, whatever its libraries and its
// variables say; else "".
func (p *place) outsider(q procInfo) string {
	path := p.engine(q)
	if _, in := p.at(path); in {
		return ""
	}
	return path
}

// engine is the engine's program that a process is, also by way of a loader or a script's interpreter; else "".
func (p *place) engine(q procInfo) string {
	if path, _ := undeleted(q.exe); engineProgram(path) {
		return path
	}
	for i, path := range q.argv[:min(5, len(q.argv))] {
		if path, _ = undeleted(path); filepath.IsAbs(path) && engineProgram(path) && started(q.argv[:i]) {
			return path
		}
	}
	return ""
}

// inEnv finds a package in the variables of the binding, or, where none of them names one, in any variable. It finds
// none where the server's variable names what lies in no package: that is started, whatever the others say.
func (p *place) inEnv(env []string, keys []string) (PackageRef, bool) {
	if value, ok := lookup(env, serverVariable); ok {
		if _, in := p.inValue(value); !in {
			return PackageRef{}, false
		}
	}
	for _, key := range keys {
		if value, ok := lookup(env, key); ok {
			if ref, ok := p.inValue(value); ok {
				return ref, true
			}
		}
	}
	for _, assignment := range env {
		key, value, _ := strings.Cut(assignment, "=")
		if given, ok := p.inherited[key]; slices.Contains(ambient, key) || ok && given == value {
			continue
		}
		if ref, ok := p.inValue(value); ok {
			return ref, true
		}
	}
	return PackageRef{}, false
}

// ambient are variables that say where a process is or what called it, not what it runs.
var ambient = []string{"PWD", "OLDPWD", "_", "HOME", "PATH"}

// inProcess finds the package that a process runs from: its program, its mapped files, its arguments.
func (p *place) inProcess(q procInfo) (PackageRef, bool) {
	if p.outsider(q) != "" {
		return PackageRef{}, false
	}
	for _, paths := range []func() []string{func() []string { return []string{q.exe} }, q.mapped} {
		for _, path := range paths() {
			path, _ := undeleted(path)
			if ref, ok := p.at(path); ok {
				return ref, true
			}
		}
	}
	// A script's interpreter has the script among its first arguments.
	for _, arg := range q.argv[:min(2, len(q.argv))] {
		if ref, ok := p.at(arg); ok {
			return ref, true
		}
	}
	return PackageRef{}, false
}

// runs is the package that answers: the child's where there is one, else the main process's.
func (l *Live) runs() (PackageRef, bool) {
	if l == nil {
		return PackageRef{}, false
	}
	p := l.Main
	if l.Child != nil && (l.Child.Package != "" || l.Child.outside) {
		p = l.Child
	}
	if p == nil || p.Package == "" {
		return PackageRef{}, false
	}
	return PackageRef{p.Package, p.digest, p.Path}, true
}

// behind tells whether what runs outside of packages is what the link in the place of a package's folder leads to.
func (l *Live) behind(ref PackageRef) bool {
	if l == nil || ref.isZero() || !isLink(ref.Path) {
		return false
	}
	folder := resolved(ref.Path) + "/"
	for _, p := range []*Process{l.Main, l.Child} {
		if p != nil && p.outside && !strings.HasPrefix(resolved(p.Path), folder) {
			return false
		}
	}
	return true
}

// only tells whether every process that runs from a package runs from this one.
func (l *Live) only(ref PackageRef) bool {
	if l == nil {
		return false
	}
	for _, p := range append([]*Process{l.Main, l.Child}, l.others...) {
		if p != nil && p.outside || p != nil && p.Package != "" && !ref.same(PackageRef{p.Package, p.digest, p.Path}) {
			return false
		}
	}
	return true
}

package store

import (
	"bytes"
	"os"
	"path"
	"slices"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/linkage"
)

// What a launcher may be, and how much of it is read.
const maxLauncher = 64 << 10

var absoluteFolder = lazyregexp.New(`/[A-Za-z0-9._+/-]+`)

// Damaged returns the problems of the package itself, without those of the
// host.
func (v *Verification) Damaged() []Problem {
	return slices.DeleteFunc(slices.Clone(v.Problems), func(p Problem) bool { return p.Host })
}

// inspect takes note of what the loader will want of a file whose content is
// right.
func (v *verifier) inspect(r *os.File, f *packager.File) {
	o, err := linkage.ReadFile(r, f.Path)
	if err != nil {
		v.problem(f.Path, err.Error())
		return
	}
	// Among the files of a foreign tree there may be texts that begin as ELF
	// files do; one that is cut off once was more than that.
	if o != nil && o.Damage != "" && (o.CutOff || !v.p.Imported) {
		v.problem(f.Path, o.Wrong())
	}
	var dirs []string
	if (o == nil || o.Script != nil) && v.p.Imported && f.Size <= maxLauncher {
		dirs = launcherDirs(r, f.Size)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if o != nil {
		v.objects = append(v.objects, o)
	}
	v.dirs = append(v.dirs, dirs...)
}

// launcherDirs returns the absolute folders that a script names. The packages
// of the old script start their programs with an LD_LIBRARY_PATH of such
// folders, which no ELF file tells of.
func launcherDirs(r *os.File, size int64) []string {
	text := make([]byte, size)
	n, _ := r.ReadAt(text, 0) // a script that shrinks meanwhile is a problem of its own
	text = text[:n]
	if !bytes.HasPrefix(text, []byte("#!")) {
		return nil
	}
	var dirs []string
	for _, dir := range absoluteFolder().FindAllString(string(text), 256) {
		dirs = append(dirs, path.Clean(dir))
	}
	return dirs
}

// host compares what the package's files want with what this host has.
func (v *verifier) host(s *Store) {
	linkage.SortObjects(v.objects)
	slices.Sort(v.dirs)
	host := linkage.Host{Root: s.Root, Dirs: slices.Compact(v.dirs)}
	for _, p := range host.Check(v.p.Manifest, v.objects) {
		v.result.Problems = append(v.result.Problems, Problem{Path: p.Path, What: p.What, Host: true})
	}
}

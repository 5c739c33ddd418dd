package acceptance

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/packager/store"
)

// mapped tells which program a process really runs and which libraries it has
// from outside of its package. A program that is started by a loader of the
// package's own has the loader as its exe, so what it has mapped tells: the
// first executable file of the package that is no library. proc is /proc.
func mapped(proc string, pid int, pkg *store.Package) (program identity, foreign []string) {
	f, err := os.Open(filepath.Join(proc, strconv.Itoa(pid), "maps"))
	if err != nil {
		return identity{}, nil
	}
	defer f.Close()
	root := pkg.Path
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	exe, _ := os.Readlink(filepath.Join(proc, strconv.Itoa(pid), "exe"))
	var inside []string
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// 55e4c8a00000-55e4c8a21000 r-xp 00002000 08:01 1835 /path with spaces
		fields := strings.SplitN(lines.Text(), "/", 2)
		if len(fields) < 2 || !strings.Contains(fields[0], "xp ") {
			continue
		}
		path := "/" + fields[1]
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			inside = append(inside, filepath.ToSlash(rel))
		} else if !slices.Contains(foreign, path) {
			foreign = append(foreign, path)
		}
	}
	slices.Sort(foreign)
	return choose(inside, foreign, exe, root, pkg), foreign
}

// choose takes the program among what is mapped.
func choose(inside, foreign []string, exe, root string, pkg *store.Package) identity {
	for _, rel := range inside {
		if !isLibrary(rel) {
			return identity{Name: rel, Digest: digestIn(pkg, rel)}
		}
	}
	if rel, err := filepath.Rel(root, exe); err == nil && filepath.IsLocal(rel) {
		return identity{Name: filepath.ToSlash(rel), Digest: digestIn(pkg, filepath.ToSlash(rel))}
	}
	return identity{Name: exe}
}

// isLibrary tells libraries and loaders by their names.
func isLibrary(path string) bool {
	name := filepath.Base(path)
	return strings.Contains(name, ".so.") || strings.HasSuffix(name, ".so") || strings.HasPrefix(name, "ld-")
}

// digestIn is the digest that the package's manifest has of a file, "" if none.
func digestIn(pkg *store.Package, rel string) string {
	for _, f := range pkg.Manifest.Files {
		if f.Path == rel {
			return f.SHA256
		}
	}
	return ""
}

package linkage

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// homes are folders that the machine of a user has not, or has something else
// in: homes, and folders for temporary files.
var homes = []string{"/home", "/root", "/Users", "/tmp", "/var/tmp"}

// entries says what is wrong with an object's RUNPATH or RPATH.
func (r *resolver) entries(o *Object, forbidden []string) []Problem {
	kind, list := "RUNPATH", o.Runpath
	if o.Runpath == nil {
		kind, list = "RPATH", o.Rpath
	}
	var out []Problem
	for _, entry := range list {
		if what := r.entry(o, entry, forbidden); what != "" {
			out = append(out, Problem{Path: o.Path, Entry: entry, What: fmt.Sprintf("its %s %s", kind, what)})
		}
	}
	return out
}

// entry says what is wrong with one entry, "" if nothing is.
func (r *resolver) entry(o *Object, entry string, forbidden []string) string {
	if entry == "" {
		return "has an empty entry, which is the current folder: remove it"
	}
	dirs := expand(entry, path.Dir(o.Path), o.Machine)
	if len(dirs) == 0 {
		return fmt.Sprintf("has the entry %q, which is neither absolute nor from $ORIGIN: write it as $ORIGIN/…", entry)
	}
	for _, dir := range dirs {
		if !path.IsAbs(dir) {
			if dir = path.Clean(dir); dir == ".." || strings.HasPrefix(dir, "../") {
				return fmt.Sprintf("has the entry %q, which leaves the package", entry)
			}
			continue
		}
		dir = path.Clean(dir)
		if below(dir, forbidden) != "" {
			return fmt.Sprintf("has the entry %q, a folder of the machine that built it: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN", entry)
		}
		if home := below(dir, homes); home != "" {
			return fmt.Sprintf("has the entry %q, and no package may look into %s: set fix_runpath: true in the recipe, or link with a RUNPATH from $ORIGIN", entry, home)
		}
		if !declaredPath(r.m, dir) {
			return fmt.Sprintf("has the entry %q, which the package does not require of its host: remove it, or add \"path: %s\" to requires in the recipe", entry, dir)
		}
	}
	return ""
}

// below returns the folder that a path is in, "" if it is in none.
func below(at string, folders []string) string {
	for _, f := range folders {
		if f != "" && within(at, path.Clean(f)) {
			return f
		}
	}
	return ""
}

// audited says that an object wants other libraries to watch the loader. What
// they do to it cannot be foreseen.
func audited(o *Object) []Problem {
	var out []Problem
	for _, name := range o.Audit {
		out = append(out, Problem{Path: o.Path, What: fmt.Sprintf("has the loader audited by %q: link it without --audit and --depaudit", name)})
	}
	return out
}

// interp says what is wrong with the loader that a program asks for: the kernel
// takes it by its path, whatever the package holds.
func (r *resolver) interp(o *Object) []Problem {
	if o.Interp == "" {
		return nil
	}
	dir := path.Dir(path.Clean(o.Interp))
	if slices.Contains(defaultDirs(o.Machine), dir) || path.IsAbs(dir) && declaredPath(r.m, dir) {
		return nil
	}
	return []Problem{{Path: o.Path, What: fmt.Sprintf("is started by the loader %q, which is not where hosts have it: link it against the system's C library", o.Interp)}}
}

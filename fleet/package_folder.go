package fleet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/packager"
)

// isPackage tells whether a folder of a package's name is one, and not a user's own 1bit-cache or 1bit-models, which no
// switch may move: one that the store knows; one named 1bit-<flavour>-<id> with an engine in it; one of that name
// without, when the rest of the path is that of a program or of libraries: the package is gone then.
func (p *place) isPackage(folder, rest string) bool {
	flavour, ok := flavourOf(folder)
	if !ok {
		return false
	}
	return programPath(rest) || p.pkg(folder) != nil || hasEngine(folder, flavour)
}

// flavourOf is the flavour in the name of a package's folder; ok is false where the name is not that of one.
func flavourOf(folder string) (flavour string, ok bool) {
	name, ok := strings.CutPrefix(filepath.Base(folder), packager.DirPrefix)
	i := strings.LastIndexByte(name, '-')
	if !ok || i < 0 {
		return "", false
	}
	return name[:i], packager.CheckWord(name[:i]) == nil && packager.CheckWord(name[i+1:]) == nil
}

// programPath tells whether a path within a folder can be that of an engine's program or libraries.
func programPath(rest string) bool {
	parts := strings.Split(rest, "/")
	base := parts[len(parts)-1]
	return rest == packager.FrontDoorEntry || engineProgram(base) || strings.Contains(base, ".so") ||
		slices.ContainsFunc(parts, func(part string) bool { return part == "bin" || part == "lib" || part == "libexec" })
}

// hasEngine tells whether a folder holds what an engine has, or what is left of one.
func hasEngine(folder, flavour string) bool {
	return slices.ContainsFunc([]string{packager.ManifestName, packager.FrontDoorEntry, flavour, "bin", "llama"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(folder, name))
		return err == nil
	})
}

// mentions tells whether a text that is not a path into a package holds one somewhere, or what may become one.
func (p *place) mentions(text string) bool {
	for _, root := range p.roots {
		start := strings.TrimSuffix(root, "/") + "/" + packager.DirPrefix
		for _, after := range strings.Split(text, start)[1:] {
			name, varied := after, false
			if i := strings.IndexAny(after, endsPath+varies); i >= 0 {
				name, varied = after[:i], strings.IndexByte(varies, after[i]) >= 0
			}
			name, rest, below := strings.Cut(name, "/")
			if varied && !below || p.isPackage(filepath.Join(root, packager.DirPrefix+name), rest) {
				return true
			}
		}
	}
	return false
}

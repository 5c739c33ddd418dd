package store

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/1bit-systems/pkg/packager"
)

// wanted returns the mode of an entry as it should be on disk.
func wanted(p *Package, f *packager.File) fs.FileMode {
	if p.Imported {
		return fs.FileMode(f.Mode)
	}
	return fs.FileMode(packager.InstalledMode(f.Mode))
}

const topMode = 0o555

// look tells a package's state without reading a file's content.
func look(p *Package) (state, detail string) {
	state = StateOK
	note := func(name, what string) {
		if state == StateOK {
			state, detail = StateTouched, fmt.Sprintf("%q %s", name, what)
		}
	}
	for i := range p.Manifest.Files {
		f := &p.Manifest.Files[i]
		info, what := entry(p, f)
		if what != "" {
			return StateBroken, fmt.Sprintf("%q %s", f.Path, what)
		}
		if what := modeProblem(p, f, info); what != "" {
			note(f.Path, what)
		}
		if f.Type == packager.TypeFile && info.ModTime().UnixNano() != wantedTime(p, f) {
			note(f.Path, "was written to: its time stamp moved")
		}
	}
	if what := topProblem(p); what != "" {
		note(".", what)
	}
	extras, err := extraFiles(p)
	if err != nil {
		return StateBroken, err.Error()
	}
	for _, name := range extras {
		note(name, "is not in the manifest")
	}
	return state, detail
}

func wantedTime(p *Package, f *packager.File) int64 {
	if p.Imported {
		return f.MTime
	}
	return p.Manifest.SourceDateEpoch * 1e9
}

// entry looks at one entry; what is "" if it is of the right type and size.
func entry(p *Package, f *packager.File) (info fs.FileInfo, what string) {
	name := filepath.Join(p.Path, filepath.FromSlash(f.Path))
	info, err := os.Lstat(name)
	if err != nil {
		if os.IsNotExist(err) {
			return nil, "is missing"
		}
		return nil, err.Error()
	}
	switch f.Type {
	case packager.TypeDir:
		if !info.IsDir() {
			return info, "is not a folder"
		}
	case packager.TypeLink:
		if info.Mode()&fs.ModeSymlink == 0 {
			return info, "is not a link"
		}
		if target, err := os.Readlink(name); err != nil || target != f.Target {
			return info, fmt.Sprintf("points to %q, not to %q", target, f.Target)
		}
	default:
		if !info.Mode().IsRegular() {
			return info, "is not a regular file"
		}
		if info.Size() != f.Size {
			return info, fmt.Sprintf("has %d bytes, not %d", info.Size(), f.Size)
		}
	}
	return info, ""
}

func modeProblem(p *Package, f *packager.File, info fs.FileInfo) string {
	if f.Type == packager.TypeLink {
		return ""
	}
	return modeDiffers(info, wanted(p, f))
}

const permBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func modeDiffers(info fs.FileInfo, want fs.FileMode) string {
	got := info.Mode() & permBits
	if got == want || info.IsDir() && got&^fs.ModeSetgid == want {
		return ""
	}
	return fmt.Sprintf("has mode %v, not %v", got, want)
}

// topProblem looks at the mode of the package's own folder; an imported one
// has no wanted mode.
func topProblem(p *Package) string {
	if p.Imported {
		return ""
	}
	info, err := os.Lstat(p.Path)
	if err != nil {
		return err.Error()
	}
	return modeDiffers(info, topMode)
}

// extraFiles returns what is in the package's folders but not in its manifest.
func extraFiles(p *Package) ([]string, error) {
	listed := map[string]bool{}
	dirs := []string{"."}
	for i := range p.Manifest.Files {
		f := &p.Manifest.Files[i]
		listed[f.Path] = true
		if f.Type == packager.TypeDir {
			dirs = append(dirs, f.Path)
		}
	}
	if !p.Imported {
		listed[packager.ManifestName] = true
	}
	var extras []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(filepath.Join(p.Path, filepath.FromSlash(dir)))
		if os.IsNotExist(err) {
			continue // the missing folder is a problem of its own
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
		for _, e := range entries {
			if name := path.Join(dir, e.Name()); !listed[name] {
				extras = append(extras, name)
			}
		}
	}
	return extras, nil
}

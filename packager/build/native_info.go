package build

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/arch"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"

	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/version"
)

const (
	// nativeHome is where package managers put packages: the data home of the
	// system scope.
	nativeHome = "/opt/1bit"
	// nativeMarks is the folder in it with a file for every package that a
	// package manager put there: our own store then leaves it alone.
	nativeMarks = ".1bit-native"

	maintainer = "1bit-systems <1bit-systems@users.noreply.github.com>"
)

func packer(format string) (nfpm.Packager, error) {
	switch format {
	case FormatDeb:
		return deb.Default, nil
	case FormatRPM:
		return rpm.DefaultRPM, nil
	case FormatArch:
		return arch.Default, nil
	}
	return nil, fmt.Errorf("format %q: %w", format, ErrFormat)
}

func nativeVersion(m *packager.Manifest, format string) (string, error) {
	switch format {
	case FormatDeb:
		return version.Deb(m.Tag)
	case FormatRPM:
		return version.RPM(m.Tag)
	}
	return version.Arch(m.Tag)
}

// goMachines are nfpm's names of machines; the rest have the same.
var goMachines = map[string]string{"": "amd64", "x86_64": "amd64", "aarch64": "arm64"}

// info describes the package to nfpm, which changes it: every format needs a
// new one. Nothing in it comes from this machine, its clock or its user.
func (n *native) info(format string) (*nfpm.Info, error) {
	m := n.manifest
	v, err := nativeVersion(m, format)
	if err != nil {
		return nil, err
	}
	machine, ok := goMachines[m.Machine]
	if !ok {
		machine = m.Machine
	}
	info := &nfpm.Info{
		Name: m.DirName(), Arch: machine, Platform: "linux",
		Version: v, VersionSchema: "none",
		Section: "misc", Priority: "optional", Maintainer: maintainer,
		Description:     n.description(),
		Homepage:        homepage(m),
		DisableGlobbing: true,
		MTime:           time.Unix(m.SourceDateEpoch, 0).UTC(),
	}
	info.Depends = n.depends(format)
	if info.Contents, err = n.contents(info.MTime); err != nil {
		return nil, err
	}
	switch format {
	case FormatDeb:
		err = n.deb(info)
	case FormatRPM:
		err = n.rpm(info)
	case FormatArch:
		err = n.arch(info)
	}
	if err != nil {
		return nil, err
	}
	return info, n.add(info, path.Join(nativeHome, nativeMarks, m.DirName()), format+"\n", 0o444)
}

func (n *native) description() string {
	m := n.manifest
	lines := []string{
		fmt.Sprintf("inference engine, package %s of %s", m.Name(), m.Tag),
		fmt.Sprintf("Installed in %s, beside other packages.", n.dir()),
		"A service is switched to it with 1bit pkg switch.",
		"Digest: " + n.digest,
	}
	return strings.Join(lines, "\n")
}

func homepage(m *packager.Manifest) string {
	for _, c := range m.Components {
		if c.Name == EngineComponent && (strings.HasPrefix(c.URL, "https://") || strings.HasPrefix(c.URL, "http://")) {
			return c.URL
		}
	}
	return ""
}

// dir is the package's folder on the host.
func (n *native) dir() string { return path.Join(nativeHome, n.manifest.DirName()) }

// contents lists the package's entries as our own installer leaves them, and
// the folders above them, which several packages own together.
func (n *native) contents(at time.Time) (files.Contents, error) {
	var list files.Contents
	folder := func(name string, mode fs.FileMode) {
		list = append(list, &files.Content{Destination: name, Type: files.TypeDir, FileInfo: fileInfo(mode, at)})
	}
	folder(nativeHome, 0o755)
	folder(path.Join(nativeHome, nativeMarks), 0o755)
	folder(n.dir(), 0o555)
	list = append(list, &files.Content{
		Source: filepath.Join(n.tree, packager.ManifestName), Destination: path.Join(n.dir(), packager.ManifestName),
		Type: files.TypeFile, FileInfo: fileInfo(0o444, at),
	})
	for i := range n.manifest.Files {
		f := &n.manifest.Files[i]
		source, to := filepath.Join(n.tree, filepath.FromSlash(f.Path)), path.Join(n.dir(), f.Path)
		switch f.Type {
		case packager.TypeDir:
			folder(to, fs.FileMode(packager.InstalledMode(f.Mode)))
		case packager.TypeLink:
			c, err := link(source, to, f.Target, at)
			if err != nil {
				return nil, err
			}
			list = append(list, c)
		default:
			list = append(list, &files.Content{
				Source: source, Destination: to, Type: files.TypeFile,
				FileInfo: fileInfo(fs.FileMode(packager.InstalledMode(f.Mode)), at),
			})
		}
	}
	return list, nil
}

// fileInfo leaves nothing for nfpm to find out by itself.
func fileInfo(mode fs.FileMode, at time.Time) *files.ContentFileInfo {
	return &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: at}
}

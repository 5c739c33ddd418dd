package build

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/files"

	"github.com/1bit-systems/pkg/packager"
)

//go:embed native_guard.sh
var guardFunctions string

// Scripts call what they need of the guard's functions. No package manager
// may take a package away that a process or a unit needs, and none may put
// another one in place of a package of its name.
const (
	debPreInstall = `case "$1" in
install | upgrade) refuse_other ;;
esac
`
	// A package that comes in place of it has passed refuse_other: it holds the
	// same files.
	debPreRemove = `case "$1" in
remove | deconfigure) refuse_in_use ;;
esac
`
	rpmPreInstall = "refuse_other\n"
	// rpm says how many of the package remain: 0 is a removal, 1 an upgrade.
	rpmPreRemove = `if [ "${1:-0}" = 0 ]; then refuse_in_use; fi
`
	archPreTransaction = "refuse_in_use\n"
)

// script is a complete script of the guard's functions and a call.
func (n *native) script(call string) string {
	return "#!/bin/sh\n" + strings.NewReplacer(
		"@NAME@", n.manifest.DirName(), "@DIR@", n.dir(), "@DIGEST@", n.digest,
		"@MENTIONED@", mentionPattern(n.manifest.DirName()),
	).Replace(guardFunctions) + "\n" + call + "exit 0\n"
}

// mentionPattern matches the name as a whole word, also with systemd's
// spelling of hyphens, "\x2d", and at the end of a sentence.
func mentionPattern(name string) string {
	name = strings.NewReplacer(".", "[.]", "-", `(-|\\x2d)`).Replace(name)
	return "(^|[^0-9A-Za-z._-])" + name + "[._-]*([^0-9A-Za-z._-]|$)"
}

// add puts a small file into the package.
func (n *native) add(info *nfpm.Info, to, text string, mode fs.FileMode) error {
	source, err := n.file(text)
	if err != nil {
		return err
	}
	info.Contents = append(info.Contents, &files.Content{
		Source: source, Destination: to, Type: files.TypeFile, FileInfo: fileInfo(mode, info.MTime),
	})
	return nil
}

// file writes a file for nfpm to read and returns its path, which no package
// shows.
func (n *native) file(text string) (string, error) {
	entries, err := os.ReadDir(n.work)
	if err != nil {
		return "", err
	}
	name := filepath.Join(n.work, strconv.Itoa(len(entries)))
	return name, os.WriteFile(name, []byte(text), 0o600)
}

func (n *native) scripts(info *nfpm.Info, preInstall, preRemove string) (err error) {
	if info.Scripts.PreInstall, err = n.file(n.script(preInstall)); err != nil {
		return err
	}
	info.Scripts.PreRemove, err = n.file(n.script(preRemove))
	return err
}

// deb is what only Debian packages have. The data are compressed with what
// every dpkg in use reads: gzip, or at the best level xz, which takes many
// times as long for three quarters of the bytes. zstd is left out, since Debian 11
// cannot read it. `apt-get autoremove` leaves a
// package alone that is named in APT::NeverAutoRemove; the file is no
// conffile, so that it goes with the package.
func (n *native) deb(info *nfpm.Info) error {
	info.Deb.Compression = "gzip:6" // 9 takes thrice the time for a hundredth
	if n.level == packager.LevelBest {
		info.Deb.Compression = "xz"
	}
	name := n.manifest.DirName()
	keep := fmt.Sprintf("// apt-get autoremove leaves %s alone; apt-get remove takes it when nothing uses it.\nAPT::NeverAutoRemove { \"^%s$\"; };\n",
		name, strings.ReplaceAll(name, ".", `\.`))
	if err := n.add(info, "/etc/apt/apt.conf.d/"+name+".conf", keep, 0o644); err != nil {
		return err
	}
	return n.scripts(info, debPreInstall, debPreRemove)
}

// rpm is what only RPM packages have. The build host is a constant, or nfpm
// would ask this machine. zstd is read from RHEL 8.2 on; an older rpm says so
// because of the dependency on rpmlib. dnf autoremove is stopped by the script.
func (n *native) rpm(info *nfpm.Info) error {
	info.Release = "1"
	info.RPM.BuildHost = "localhost"
	info.RPM.Compression = "zstd"
	info.RPM.Summary, _, _ = strings.Cut(info.Description, "\n")
	info.RPM.Group = "Unspecified"
	return n.scripts(info, rpmPreInstall, rpmPreRemove)
}

// arch is what only Arch packages have. A script of a package cannot stop
// pacman, a hook can: it runs before a transaction that would remove or
// replace the package.
func (n *native) arch(info *nfpm.Info) error {
	info.Release = "1"
	info.ArchLinux.Packager = maintainer
	info.Description, _, _ = strings.Cut(info.Description, "\n") // it has one line there
	name := n.manifest.DirName()
	guard := "/usr/share/libalpm/scripts/" + name
	hook := fmt.Sprintf(`[Trigger]
Type = Package
Operation = Upgrade
Operation = Remove
Target = %[1]s

[Action]
Description = Checking that nothing uses %[1]s...
When = PreTransaction
Exec = %[2]s
AbortOnFail
`, name, guard)
	if err := n.add(info, "/usr/share/libalpm/hooks/"+name+".hook", hook, 0o644); err != nil {
		return err
	}
	return n.add(info, guard, n.script(archPreTransaction), 0o755)
}

package fleet

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/1bit-systems/pkg/systemd"
)

// Folders of systemd's, below the root of the machine. Which of them a manager reads depends on its version and its
// environment; a folder too many is harmless here.
var (
	systemUnitFolders = [...]string{
		"etc/systemd/system.control", "run/systemd/system.control", "run/systemd/transient", "run/systemd/generator.early",
		"etc/systemd/system", "etc/systemd/system.attached", "run/systemd/system", "run/systemd/system.attached",
		"run/systemd/generator", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system",
		"run/systemd/generator.late",
	}
	userUnitFolders = [...]string{
		"etc/xdg/systemd/user", "etc/systemd/user", "run/systemd/user", "usr/local/share/systemd/user",
		"usr/share/systemd/user", "usr/local/lib/systemd/user", "usr/lib/systemd/user",
	}
	homeUnitFolders    = [...]string{".config/systemd/user.control", ".config/systemd/user", ".local/share/systemd/user"}
	runtimeUnitFolders = [...]string{"user", "user.control", "transient", "generator", "generator.early", "generator.late"}
)

// unitFolders lists every folder that may hold units of this machine that need a package, ours first, whichever
// manager reads it.
func (h *Host) unitFolders(homes []string) []string {
	dirs := append([]string{h.UnitDir, h.UnitDir + ".control", filepath.Join(h.Store.Dir, "systemd/user")}, h.UnitDirs...)
	for _, home := range homes {
		for _, dir := range homeUnitFolders {
			dirs = append(dirs, filepath.Join(home, dir))
		}
	}
	for _, dir := range slices.Concat(systemUnitFolders[:], userUnitFolders[:]) {
		dirs = append(dirs, h.below(dir))
	}
	for _, dir := range runtimeUnitFolders {
		running, _ := filepath.Glob(h.below(filepath.Join("run/user/*/systemd", dir)))
		dirs = append(dirs, running...)
	}
	return dirs
}

// below is a path of the machine's own files.
func (h *Host) below(path string) string { return filepath.Join(or(h.Root, "/"), path) }

// homes lists the home folders whose user units may need a package: for the system's packages everybody's, for a
// user's own packages the user's.
func (h *Host) homes() []string {
	var homes []string
	if h.Scope != systemd.ScopeSystem {
		for dir, inHome := range map[string]string{h.UnitDir: "/.config/systemd/user", h.Store.Dir: "/.local/share"} {
			if home, ok := strings.CutSuffix(filepath.Clean(dir), inHome); ok {
				homes = append(homes, home)
			}
		}
		slices.Sort(homes)
		return slices.Compact(homes)
	}
	homes = append(homes, h.below("root"))
	passwd, _ := os.ReadFile(h.below("etc/passwd"))
	for line := range strings.Lines(string(passwd)) {
		if fields := strings.Split(line, ":"); len(fields) == 7 && filepath.IsAbs(fields[5]) && filepath.Clean(fields[5]) != "/" {
			homes = append(homes, h.below(fields[5]))
		}
	}
	others, _ := filepath.Glob(h.below("home/*"))
	homes = append(homes, others...)
	slices.Sort(homes)
	return slices.Compact(homes)
}

// absent tells whether an error means that systemd finds nothing there either.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) }

// namedUnits lists the services that unit folders name in another way than by a file: by a drop-in folder, or by
// being wanted. A stopped instance of a template is to be found nowhere else. Folders that cannot be read name none.
func namedUnits(dirs []string) []string {
	var names []string
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			name := e.Name()
			if unit, ok := strings.CutSuffix(name, ".d"); ok {
				names = append(names, unit)
			}
			switch filepath.Ext(name) {
			case ".wants", ".requires", ".upholds":
				wanted, _ := os.ReadDir(filepath.Join(dir, name))
				for _, w := range wanted {
					names = append(names, w.Name())
				}
			case ".service":
				names = append(names, name)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		full, err := unitName(name)
		return err != nil || full != name || strings.Contains(name, "@.")
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// template is the name of the template of an instance, "" of what is none.
func template(unit string) string {
	prefix, rest, ok := strings.Cut(strings.TrimSuffix(unit, ".service"), "@")
	if !ok || rest == "" {
		return ""
	}
	return prefix + "@.service"
}

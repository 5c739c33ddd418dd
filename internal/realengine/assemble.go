package realengine

import (
	"debug/elf"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/1bit-systems/pkg/packager/linkage"
)

var (
	//go:embed launchers/program.sh
	programLauncher string
	//go:embed launchers/front_end.sh
	frontEnd string
)

const (
	llamaDir       = "hrx/llama"
	loaderMark     = "@LOADER@"
	argumentsMark  = "#@ARGUMENTS@\n"
	backendPattern = "libggml-cpu-"
	runtimeDir     = "lib/runtime"
)

// assemble makes the tree at dir out of unpacked packages: the programs, the CPU backends, and every library
// that one of them needs.
func assemble(dir, unpacked string) error {
	stock, err := takeStock(unpacked)
	if err != nil {
		return err
	}
	for _, sub := range []string{"bin", "libexec", "lib/backends", runtimeDir} {
		if err := makeDirs(filepath.Join(dir, llamaDir, sub)); err != nil {
			return err
		}
	}
	llama := filepath.Join(dir, llamaDir)
	var pending []string // ELF files whose needs are still to be met
	loader := ""
	for _, name := range Programs() {
		from := stock.program(name)
		if from == "" {
			return fmt.Errorf("assemble tree: no package holds %s", name)
		}
		if err := copyFile(from, filepath.Join(llama, "libexec", name), 0o755); err != nil {
			return err
		}
		if loader, err = interpreter(from); err != nil {
			return err
		}
		pending = append(pending, from)
	}
	for name, from := range stock.libraries {
		if strings.HasPrefix(name, backendPattern) {
			if err := copyFile(from, filepath.Join(llama, "lib/backends", name), 0o644); err != nil {
				return err
			}
			pending = append(pending, from)
		}
	}
	if err := copyNeeds(llama, stock, append(pending, stock.libraries[loader]), loader); err != nil {
		return err
	}
	launcher := launcherScript(loader, "")
	for _, name := range Programs() {
		if err := writeFile(filepath.Join(llama, "bin", name), launcher, 0o755); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(dir, "1bit"), frontEnd, 0o755)
}

// launcherScript is the launcher of a program, with a piece of shell that may change its arguments.
func launcherScript(loader, arguments string) string {
	return strings.NewReplacer(loaderMark, loader, argumentsMark, arguments).Replace(programLauncher)
}

// stock is what unpacked packages offer: paths of programs and, by name, of libraries.
type stock struct {
	programs  map[string][]string
	libraries map[string]string
}

func takeStock(root string) (*stock, error) {
	s := &stock{map[string][]string{}, map[string]string{}}
	wanted := map[string]bool{}
	for _, name := range Programs() {
		wanted[name] = true
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := entry.Name()
		isLibrary := strings.Contains(name, ".so") && strings.Contains(path, "/lib/")
		if !isLibrary && !wanted[name] {
			return nil
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !strings.HasPrefix(real, root+"/") {
			return nil // a link to what no package brought
		}
		if wanted[name] {
			s.programs[name] = append(s.programs[name], real)
		} else if _, known := s.libraries[name]; !known {
			s.libraries[name] = real
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look through unpacked packages: %w", err)
	}
	return s, nil
}

// program returns the ELF file of that name, "" if there is none.
func (s *stock) program(name string) string {
	for _, path := range s.programs[name] {
		if file, err := elf.Open(path); err == nil {
			file.Close()
			return path
		}
	}
	return ""
}

// interpreter returns the name of the loader that an ELF program asks for.
func interpreter(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			name, err := io.ReadAll(segment.Open())
			if err != nil {
				return "", fmt.Errorf("read %s: %w", path, err)
			}
			return filepath.Base(strings.TrimRight(string(name), "\x00")), nil
		}
	}
	return "", fmt.Errorf("read %s: it names no loader", path)
}

// copyNeeds copies the loader and all libraries that the pending ELF files need, and what those need, into lib; those
// of the C runtime apart from the others, so that a host with a newer one can use its own.
func copyNeeds(llama string, s *stock, pending []string, loader string) error {
	have := map[string]bool{}
	bring := func(name, needer string, perm fs.FileMode) error {
		from, known := s.libraries[name]
		if !known {
			return fmt.Errorf("assemble tree: no package holds %s, needed by %s", name, filepath.Base(needer))
		}
		have[name] = true
		pending = append(pending, from)
		lib := "lib"
		if linkage.Runtime(name) {
			lib = runtimeDir
		}
		return copyFile(from, filepath.Join(llama, lib, name), perm)
	}
	if err := bring(loader, "the programs", 0o755); err != nil {
		return err
	}
	for len(pending) > 0 {
		path := pending[0]
		pending = pending[1:]
		if path == "" {
			continue
		}
		file, err := elf.Open(path)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		needs, err := file.ImportedLibraries()
		file.Close()
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		for _, name := range needs {
			if !have[name] {
				if err := bring(name, path, 0o644); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

package realengine

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// BuildTree makes at dir the engine as a build of it leaves it, without launchers: the programs themselves and the
// CPU backends in hrx/llama/bin, the libraries that they need in out/lib, and in all of them a RUNPATH to out/lib of
// the folder called at, which is where the tree will be. It takes the program patchelf. The programs start where the
// C library is as new as the engine's distribution's.
func (t *Tree) BuildTree(dir, at string) error {
	from := filepath.Join(t.Dir, llamaDir)
	for to, patterns := range map[string][]string{
		llamaDir + "/bin": {"libexec/*", "lib/backends/*.so"},
		"out/lib":         {"lib/*.so*"},
	} {
		if err := makeDirs(filepath.Join(dir, to)); err != nil {
			return fmt.Errorf("make build tree: %w", err)
		}
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(from, pattern))
			if err != nil || len(files) == 0 {
				return fmt.Errorf("make build tree: the engine has no %s", pattern)
			}
			for _, file := range files {
				if err := bare(file, filepath.Join(dir, to, filepath.Base(file)), filepath.Join(at, "out/lib")); err != nil {
					return fmt.Errorf("make build tree: %w", err)
				}
			}
		}
	}
	return nil
}

func bare(from, to, runpath string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := copyFile(from, to, info.Mode().Perm()); err != nil {
		return err
	}
	var said bytes.Buffer
	cmd := exec.Command("patchelf", "--set-rpath", runpath, to)
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// Root makes at dir the root folder of a machine that has the C runtime of the engine's distribution and nothing
// else but the given programs, in /usr/bin.
func (t *Tree) Root(dir string, programs ...string) error {
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	loaders := map[string]string{"amd64": "lib64", "arm64": "lib"}[runtime.GOARCH]
	if triplet == "" {
		return fmt.Errorf("make root folder: not for %s", runtime.GOARCH)
	}
	files, err := filepath.Glob(filepath.Join(t.Dir, llamaDir, runtimeDir, "*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("make root folder: the engine has no C runtime")
	}
	for _, sub := range []string{"lib/" + triplet, loaders, "usr/bin", "proc", "dev", "tmp"} {
		if err := makeDirs(filepath.Join(dir, sub)); err != nil {
			return fmt.Errorf("make root folder: %w", err)
		}
	}
	for _, file := range files {
		name := filepath.Base(file)
		to := []string{filepath.Join(dir, "lib", triplet, name)}
		if strings.HasPrefix(name, "ld-") {
			to = append(to, filepath.Join(dir, loaders, name))
		}
		for _, to := range to {
			if err := copyFile(file, to, 0o755); err != nil {
				return fmt.Errorf("make root folder: %w", err)
			}
		}
	}
	for _, program := range programs {
		path, err := exec.LookPath(program)
		if err == nil {
			err = copyFile(path, filepath.Join(dir, "usr/bin", filepath.Base(program)), 0o755)
		}
		if err != nil {
			return fmt.Errorf("make root folder: %w", err)
		}
	}
	// Bound to the machine's own by RunIn.
	if err := writeFile(filepath.Join(dir, "dev/null"), "", 0o666); err != nil {
		return fmt.Errorf("make root folder: %w", err)
	}
	return nil
}

// RunIn is a command in a root folder made by [Tree.Root], in mounts of its own but with the network of this
// machine. As another user than root it takes a kernel that lets users have namespaces.
func RunIn(root string, env []string, name string, args ...string) *exec.Cmd {
	const script = `set -e
mount --bind /dev/null "$1/dev/null"
mount --rbind /proc "$1/proc"
exec chroot "$@"`
	unshare := []string{"--mount"}
	if os.Getuid() != 0 {
		unshare = append(unshare, "--map-root-user")
	}
	cmd := exec.Command("unshare", append(append(unshare, "/bin/sh", "-c", script, "sh", root, name), args...)...)
	cmd.Env = append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, env...)
	return cmd
}

package realengine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Programs lists the programs in hrx/llama/bin of a tree.
func Programs() []string {
	return []string{"llama-server", "llama-bench", "llama-perplexity", "test-backend-ops"}
}

// Tree is a fetched engine.
type Tree struct {
	Dir     string `json:"-"`       // in the engine's layout: 1bit, hrx/llama/bin/…
	Version string `json:"version"` // of the llama.cpp package, as its distribution writes it
	Suite   string `json:"suite"`   // that it came from: sid, testing, …

	models string
}

// Program returns the path of one of Programs.
func (t *Tree) Program(name string) string { return filepath.Join(t.Dir, llamaDir, "bin", name) }

// FrontEnd returns the path of the `1bit` front end.
func (t *Tree) FrontEnd() string { return filepath.Join(t.Dir, "1bit") }

// Model returns the path of the cached model of that kind, made from seed 1.
func (t *Tree) Model(kind string) string { return filepath.Join(t.models, kind+".gguf") }

// Copy copies the tree to dst, which must not be there.
func (t *Tree) Copy(dst string) error {
	if err := copyTree(t.Dir, dst); err != nil {
		return fmt.Errorf("copy engine tree to %s: %w", dst, err)
	}
	return nil
}

func copyTree(src, dst string) error {
	if _, err := os.Lstat(dst); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = &fs.PathError{Op: "create", Path: dst, Err: fs.ErrExist}
		}
		return err
	}
	return filepath.WalkDir(src, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dst, strings.TrimPrefix(path, src))
		if entry.IsDir() {
			return makeDirs(to)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return copyFile(path, to, info.Mode().Perm())
	})
}

// makeDirs makes a folder and its parents, readable by all whatever the umask.
func makeDirs(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := makeDirs(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, 0o755)
}

func writeFile(path, text string, perm fs.FileMode) error {
	return copyTo(path, strings.NewReader(text), perm)
}

func copyFile(from, to string, perm fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return copyTo(to, in, perm)
}

// copyTo makes a new file. A program that another thread forks at this moment would hold it open for writing and
// so keep it from being executed ("text file busy"): hold the fork lock while it is open.
func copyTo(path string, from io.Reader, perm fs.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	if err := errors.Join(err, out.Chmod(perm), out.Close()); err != nil {
		return err
	}
	return nil
}

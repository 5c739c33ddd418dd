package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// processes returns a reason for every process, but this one, that refers to
// the package's directory: by its program, working directory or root, by what
// it has open or mapped, by its environment or its command line. Of another
// account's processes only root sees more than the command line.
func (s *Store) processes(ctx context.Context, p *Package) ([]string, error) {
	entries, err := os.ReadDir(s.Proc)
	if err != nil {
		return nil, fmt.Errorf("look through the processes: %w", err)
	}
	paths := [][]byte{[]byte(p.Path)}
	if real, err := filepath.EvalSymlinks(p.Path); err == nil && real != p.Path {
		paths = append(paths, []byte(real))
	}
	var reasons []string
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if how := references(filepath.Join(s.Proc, e.Name()), paths); len(how) > 0 {
			comm, _ := os.ReadFile(filepath.Join(s.Proc, e.Name(), "comm"))
			reasons = append(reasons, fmt.Sprintf("process %d (%s) refers to it by its %s",
				pid, strings.Trim(strconv.Quote(strings.TrimSpace(string(comm))), `"`), strings.Join(how, ", ")))
		}
	}
	return reasons, nil
}

// references tells how the process of a folder of proc refers to one of the
// paths. A process that ended, or that may not be looked at, does not.
func references(proc string, paths [][]byte) []string {
	var how []string
	note := func(what string, b []byte, err error) {
		if err == nil && mentions(b, paths) && !slices.Contains(how, what) {
			how = append(how, what)
		}
	}
	link := func(what, name string) {
		target, err := os.Readlink(filepath.Join(proc, name))
		note(what, []byte(target), err)
	}
	file := func(what, name string) {
		b, err := os.ReadFile(filepath.Join(proc, name))
		note(what, b, err)
	}
	link("program", "exe")
	link("working directory", "cwd")
	link("root", "root")
	if fds, err := os.ReadDir(filepath.Join(proc, "fd")); err == nil {
		for _, fd := range fds {
			link("open files", filepath.Join("fd", fd.Name()))
		}
	}
	file("memory maps", "maps")
	file("environment", "environ")
	file("command line", "cmdline")
	return how
}

// mentions finds one of the paths in b, not as the beginning of a longer name.
func mentions(b []byte, paths [][]byte) bool {
	for _, path := range paths {
		for rest := b; ; {
			i := bytes.Index(rest, path)
			if i < 0 {
				break
			}
			rest = rest[i+len(path):]
			if len(rest) == 0 || !inName(rest[0]) {
				return true
			}
		}
	}
	return false
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_'
}

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// processes tell of packages that processes refer to: by their program,
// working directory or root, by what they have open or mapped, by their
// environment or their command line. In a user's store what is to be seen of
// them counts. The kernel hides a process from its own account only if it
// changed its rights, as (sd-pam) and ssh-agent do, or asked for it; no program
// of a package does. In a shared store one that cannot be read may need any
// package.
type processes struct {
	proc   string
	shared bool
	uses   []processUse
	unread []string // reasons that hold for every package
}

// processUse is what one process refers to.
type processUse struct {
	who   string
	facts []processFact
	files []fileID // its program, working directory and root
}

type processFact struct {
	what string
	text []byte
}

// fileID tells files apart whatever path leads to them: a container sees a
// package under a path of its own.
type fileID struct{ dev, inode uint64 }

// readProcesses looks at every process but this one. Those that end meanwhile
// need nothing.
func (s *Store) readProcesses(ctx context.Context) (*processes, error) {
	entries, err := os.ReadDir(s.Proc)
	if err != nil {
		return nil, fmt.Errorf("look through the processes: %w", err)
	}
	ps := &processes{proc: s.Proc, shared: s.Shared}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			ps.read(pid)
		}
	}
	return ps, nil
}

func (ps *processes) read(pid int) {
	dir := filepath.Join(ps.proc, strconv.Itoa(pid))
	comm, _ := os.ReadFile(filepath.Join(dir, "comm"))
	u := processUse{who: fmt.Sprintf("process %d (%s)", pid, strings.Trim(strconv.Quote(strings.TrimSpace(string(comm))), `"`))}
	denied := false
	note := func(what string, text []byte, err error) {
		switch {
		case err == nil:
			u.facts = append(u.facts, processFact{what, text})
		case errors.Is(err, fs.ErrPermission):
			denied = true
		}
	}
	link := func(what, name string) {
		target, err := os.Readlink(filepath.Join(dir, name))
		note(what, []byte(target), err)
	}
	for _, l := range []struct{ what, name string }{{"program", "exe"}, {"working directory", "cwd"}, {"root", "root"}} {
		link(l.what, l.name)
		if id, ok := idOf(os.Stat(filepath.Join(dir, l.name))); ok {
			u.files = append(u.files, id)
		}
	}
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if errors.Is(err, fs.ErrPermission) {
		denied = true
	}
	for _, fd := range fds {
		link("open files", filepath.Join("fd", fd.Name()))
	}
	for _, f := range []struct{ what, name string }{{"memory maps", "maps"}, {"environment", "environ"}, {"command line", "cmdline"}} {
		b, err := os.ReadFile(filepath.Join(dir, f.name))
		note(f.what, b, err)
	}
	ps.uses = append(ps.uses, u)
	if denied && ps.shared {
		ps.unread = append(ps.unread, "perhaps used by "+u.who+", which cannot be read")
	}
}

func idOf(info fs.FileInfo, err error) (fileID, bool) {
	if err != nil {
		return fileID{}, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), st.Ino}, true
}

// of lists the reasons for one package.
func (ps *processes) of(p *Package) []string {
	paths := [][]byte{[]byte(p.Path)}
	if real, err := filepath.EvalSymlinks(p.Path); err == nil && real != p.Path {
		paths = append(paths, []byte(real))
	}
	inside := map[fileID]bool{}
	for _, name := range append(entryPaths(p), ".") {
		if id, ok := idOf(os.Lstat(filepath.Join(p.Path, filepath.FromSlash(name)))); ok {
			inside[id] = true
		}
	}
	var reasons []string
	for _, u := range ps.uses {
		var how []string
		for _, fact := range u.facts {
			if !slices.Contains(how, fact.what) && mentions(fact.text, paths) {
				how = append(how, fact.what)
			}
		}
		if len(how) == 0 && slices.ContainsFunc(u.files, func(id fileID) bool { return inside[id] }) {
			how = append(how, "program, working directory or root under another path")
		}
		if len(how) > 0 {
			reasons = append(reasons, u.who+" refers to it by its "+strings.Join(how, ", "))
		}
	}
	return append(reasons, ps.unread...)
}

func entryPaths(p *Package) []string {
	var out []string
	for i := range p.Manifest.Files {
		out = append(out, p.Manifest.Files[i].Path)
	}
	return out
}

// gone is what the kernel puts behind the path of a file that was deleted. A
// folder can also be really named so, and is then another one.
const gone = " (deleted)"

// mentions finds one of the paths in b, not as the beginning of a longer name.
func mentions(b []byte, paths [][]byte) bool {
	for _, path := range paths {
		for rest := b; ; {
			i := bytes.Index(rest, path)
			if i < 0 {
				break
			}
			rest = rest[i+len(path):]
			if len(rest) > 0 && inName(rest[0]) {
				continue
			}
			if after, ok := bytes.CutPrefix(rest, []byte(gone)); ok {
				if len(after) > 0 && after[0] == '/' {
					continue
				}
				if _, err := os.Lstat(string(path) + gone); err == nil {
					continue
				}
			}
			return true
		}
	}
	return false
}

func inName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_'
}

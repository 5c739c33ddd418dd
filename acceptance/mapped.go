package acceptance

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/1bit-systems/pkg/packager/store"
)

// served is what a process really runs.
type served struct {
	program identity // with the digest of the bytes that it has mapped; Name is below the package's folder, or absolute
	foreign []string // libraries from outside of the package
	added   []string // from the package's folder, but not of the package
}

// mapping is a piece of a file that is executable in the memory of a process.
type mapping struct {
	span string // as in map_files
	ino  uint64
	path string
}

// mapped tells which program a process really runs and which libraries it has
// from outside of its package. A program that is started by a loader of the
// package's own has the loader as its exe, so what it has mapped tells: the
// first executable file of the package that is no library. proc is /proc.
func mapped(ctx context.Context, proc string, pid int, pkg *store.Package) served {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	f, err := os.Open(filepath.Join(dir, "maps"))
	if err != nil {
		return served{}
	}
	defer f.Close()
	root := pkg.Path
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	exe, _ := os.Readlink(filepath.Join(dir, "exe"))
	exe = strings.TrimSuffix(exe, deleted)
	var s served
	var program, started mapping
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		m, ok := readMapping(lines.Text())
		if !ok {
			continue
		}
		if m.path == exe {
			started = m
		}
		rel, err := filepath.Rel(root, m.path)
		if err != nil || !filepath.IsLocal(rel) {
			s.foreign = append(s.foreign, m.path)
			continue
		}
		if len(pkg.Manifest.Files) > 0 && digestIn(pkg, rel) == "" {
			s.added = append(s.added, filepath.ToSlash(rel))
		}
		if program.path == "" && !isLibrary(rel) {
			program = m
		}
	}
	slices.Sort(s.foreign)
	s.foreign = slices.Compact(s.foreign)
	if program.path == "" {
		program = started
	}
	s.program.Name = cmp.Or(program.path, exe)
	if rel, err := filepath.Rel(root, s.program.Name); err == nil && filepath.IsLocal(rel) {
		s.program.Name = filepath.ToSlash(rel)
	}
	s.program.Digest, s.program.Size = program.sum(ctx, dir)
	return s
}

// deleted is what the kernel puts after the path of a file that is no longer
// there.
const deleted = " (deleted)"

// readMapping reads a line of maps.
func readMapping(line string) (mapping, bool) {
	// 55e4c8a00000-55e4c8a21000 r-xp 00002000 08:01 1835 /path with spaces
	head, path, ok := strings.Cut(line, "/")
	fields := strings.Fields(head)
	if !ok || len(fields) != 5 || !strings.Contains(fields[1], "x") {
		return mapping{}, false
	}
	ino, err := strconv.ParseUint(fields[4], 10, 64)
	return mapping{fields[0], ino, "/" + strings.TrimSuffix(path, deleted)}, err == nil
}

// sum gives digest and size of the file whose bytes are mapped, "" if they
// cannot be read. By its path another one may be there by now. Devices are not
// compared: maps and stat tell different ones on btrfs and overlayfs.
func (m mapping) sum(ctx context.Context, dir string) (string, int64) {
	for _, path := range []string{filepath.Join(dir, "map_files", m.span), filepath.Join(dir, "exe"), m.path} {
		f, err := openInput(path)
		if err != nil {
			continue // map_files is for the superuser
		}
		digest, size, ok := m.sumOf(ctx, f)
		f.Close()
		if ok {
			return "sha256:" + digest, size
		}
	}
	return "", 0
}

func (m mapping) sumOf(ctx context.Context, f *os.File) (digest string, size int64, ok bool) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Ino != m.ino || ctx.Err() != nil {
		return "", 0, false
	}
	h := sha256.New()
	size, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err == nil
}

// isLibrary tells libraries and loaders by their names.
func isLibrary(path string) bool {
	name := filepath.Base(path)
	return strings.Contains(name, ".so.") || strings.HasSuffix(name, ".so") || strings.HasPrefix(name, "ld-")
}

// digestIn is the digest that the package's manifest has of a file, "" if none.
func digestIn(pkg *store.Package, rel string) string {
	for _, f := range pkg.Manifest.Files {
		if f.Path == filepath.ToSlash(rel) && f.SHA256 != "" {
			return "sha256:" + f.SHA256
		}
	}
	return ""
}

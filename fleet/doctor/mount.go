package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/internal/procfs"
)

// mount is a file system in its place, as /proc/self/mountinfo tells.
type mount struct {
	point   string
	kind    string // ext4, nfs4, tmpfs, …
	options []string
}

func (m mount) has(option string) bool { return slices.Contains(m.options, option) }

// remote are the kinds of file system that another machine keeps: their locks may hold for this machine only.
var remote = []string{"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "afs", "glusterfs", "fuse.sshfs", "fuse.glusterfs"}

// mountOf is the file system that a path lies on, or the nearest folder above it that is there.
func (l *look) mountOf(path string) (mount, error) {
	real, err := filepath.EvalSymlinks(nearest(path))
	if err != nil {
		return mount{}, fmt.Errorf("find the file system of %s: %w", path, err)
	}
	table, err := procfs.Read(l.path("proc/self/mountinfo"))
	if err != nil {
		return mount{}, fmt.Errorf("find the file system of %s: %w", path, err)
	}
	var best mount
	for line := range strings.Lines(string(table)) {
		m, ok := parseMount(line)
		if ok && within(real, m.point) && len(m.point) >= len(best.point) { // of two in one place the later one counts
			best = m
		}
	}
	if best.point == "" {
		return mount{}, fmt.Errorf("find the file system of %s: no line of mountinfo names it", path)
	}
	return best, nil
}

// parseMount reads a line of mountinfo (proc(5)): the options of the place and those of the file system are in two
// fields, and spaces are written as \040.
func parseMount(line string) (mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	place, system := strings.Fields(before), strings.Fields(after)
	if !ok || len(place) < 6 || len(system) < 1 {
		return mount{}, false
	}
	m := mount{point: unescape(place[4]), kind: system[0], options: strings.Split(place[5], ",")}
	if len(system) > 2 {
		m.options = append(m.options, strings.Split(system[2], ",")...)
	}
	return m, strings.HasPrefix(m.point, "/")
}

// unescape replaces \ooo by the byte that it stands for.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// within tells whether a clean absolute path is a folder or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// nearest is the path itself, or the nearest folder above it that is there.
func nearest(path string) string {
	for path = filepath.Clean(path); ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); err == nil || path == filepath.Dir(path) {
			return path
		}
	}
}

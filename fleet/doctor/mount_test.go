package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const mountinfo = `1 1 0:1 / / rw - rootfs rootfs rw
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
31 22 0:25 / /home rw,nosuid - nfs4 server:/home rw,vers=4.2
40 31 8:2 / /home/a\040b rw,noexec - ext4 /dev/sdb1 ro
41 40 0:40 / /home/a\040b rw - tmpfs tmpfs rw
damaged
`

func TestMountOf(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc/self"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc/self/mountinfo"), []byte(mountinfo), 0o644); err != nil {
		t.Fatal(err)
	}
	l := &look{Options: Options{Root: root}}
	dir := t.TempDir() // is on / by this table, wherever it is
	if m, err := l.mountOf(filepath.Join(dir, "not/there")); err != nil || m.point != "/" || m.kind != "ext4" || m.has("ro") {
		t.Errorf("a folder that is not there yet is on %+v, %v", m, err)
	}
	table := map[string]mount{}
	for line := range strings.Lines(mountinfo) {
		if m, ok := parseMount(line); ok {
			table[m.point] = m
		}
	}
	if m := table["/home"]; m.kind != "nfs4" || !slices.Contains(remote, m.kind) {
		t.Errorf("/home is %+v", m)
	}
	if m := table["/home/a b"]; m.kind != "tmpfs" {
		t.Errorf("of two in one place %+v counts", m)
	}
	if m, ok := parseMount(strings.Split(mountinfo, "\n")[3]); !ok || !m.has("noexec") || !m.has("ro") {
		t.Errorf("the options of the place and of the file system are %+v", m)
	}
	if _, ok := parseMount("damaged\n"); ok {
		t.Error("a damaged line is a mount")
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, dir string
		want      bool
	}{{"/a/b", "/", true}, {"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/", "/a", false}} {
		if got := within(tt.path, tt.dir); got != tt.want {
			t.Errorf("%s within %s: %v", tt.path, tt.dir, got)
		}
	}
}

func FuzzParseMount(f *testing.F) {
	for line := range strings.Lines(mountinfo) {
		f.Add(line)
	}
	f.Add(`1 1 0:1 / /\777\1 rw - x`)
	f.Fuzz(func(t *testing.T, line string) {
		m, ok := parseMount(line)
		if ok && (!strings.HasPrefix(m.point, "/") || m.kind == "") {
			t.Errorf("%q is %+v", line, m)
		}
	})
}

package testhost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOtherMountsList(t *testing.T) {
	dir := t.TempDir()
	if strings.HasPrefix(dir, "/tmp/") {
		dir = "/usr" // some folder that a host would show
	}
	lines := strings.Join([]string{
		"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw",
		"23 22 0:21 / /proc rw - proc proc rw",
		"24 22 0:22 / " + dir + " rw,relatime shared:2 master:1 - ext4 /dev/vdb rw",
		"25 22 0:23 / /dev/shm rw - tmpfs tmpfs rw",
		"26 22 0:24 / /run/x rw - ext4 /dev/vdc rw",
		"27 22 0:25 / /nowhere/at\\040all rw - xfs /dev/vdd rw",
		"28 22 0:26 /hosts /etc/passwd rw - ext4 /dev/vda rw",
		"torn",
	}, "\n")
	got, err := otherMounts(lines)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{dir}, got); diff != "" {
		t.Errorf("other mounts (-want +got):\n%s", diff)
	}
}

func FuzzOtherMounts(f *testing.F) {
	f.Add("24 22 0:22 / /usr rw,relatime shared:2 - ext4 /dev/vdb rw")
	f.Add("1 2 3 4 5 - ext4")
	f.Add("\\040 - overlay\n - \n")
	f.Fuzz(func(t *testing.T, text string) {
		others, err := otherMounts(text)
		if err != nil {
			return
		}
		for _, at := range others {
			if filepath.Clean(at) == "/" || strings.ContainsAny(at, ",:") {
				t.Errorf("mount %q", at)
			}
		}
	})
}

func TestReplaceEntry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "passwd")
	for _, step := range []struct{ name, line, want string }{
		{"ai", "ai:1", "ai:1\n"}, {"air", "air:2", "ai:1\nair:2\n"}, {"ai", "ai:3", "air:2\nai:3\n"},
	} {
		if err := replaceEntry(path, step.name, step.line); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != step.want {
			t.Errorf("after %q: %q, want %q", step.line, got, step.want)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

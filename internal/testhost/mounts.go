package testhost

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// otherMounts returns the folders of the machine, beside /, that hold files of a disk or of another machine.
func otherMounts(mountinfo string) ([]string, error) {
	var others []string
	lines := bufio.NewScanner(strings.NewReader(mountinfo))
	for lines.Scan() {
		mount, super, found := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(mount), strings.Fields(super)
		if !found || len(fields) < 5 || len(kind) < 1 || !holdsFiles(kind[0]) {
			continue
		}
		at := unescape(fields[4])
		if at == "/" || strings.ContainsAny(at, `,:\`) { // what overlay's options cannot say
			continue
		}
		hidden := false
		for _, top := range []string{"/proc", "/sys", "/dev", "/run", "/tmp"} {
			hidden = hidden || at == top || strings.HasPrefix(at, top+"/")
		}
		if info, err := os.Stat(at); !hidden && err == nil && info.IsDir() {
			others = append(others, at)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	return others, nil
}

func holdsFiles(kind string) bool {
	switch kind {
	case "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "overlay", "9p", "virtiofs", "nfs", "nfs4":
		return true
	}
	return strings.HasPrefix(kind, "fuse.")
}

// unescape undoes the kernel's \ooo in paths of mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

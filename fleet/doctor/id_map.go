package doctor

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/1bit-systems/pkg/internal/procfs"
)

// allIDs is how many ids there are: the first user namespace maps them all.
const allIDs = 1<<32 - 1

// owner is who owns a file, an error where that cannot be told: a user namespace, such as that of a container without
// root, shows every id that it does not map as one and the same.
func (l *look) owner(info os.FileInfo) (uid, gid int, err error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("whose %s is: the system does not tell", info.Name())
	}
	for _, id := range []struct {
		kind string
		is   uint32
	}{{"uid", stat.Uid}, {"gid", stat.Gid}} {
		if !l.stands(id.kind, id.is) {
			return 0, 0, fmt.Errorf("the %s %d stands for every account that this user namespace does not map", id.kind, id.is)
		}
	}
	return int(stat.Uid), int(stat.Gid), nil
}

// stands tells whether an id is that of one account: the id that stands for the others is one too where all are mapped.
func (l *look) stands(kind string, id uint32) bool {
	if fmt.Sprint(id) != cmp.Or(procfs.FirstLine(l.path("proc/sys/kernel/overflow"+kind)), "65534") {
		return true
	}
	mapped := uint64(0)
	for line := range strings.Lines(procfs.Text(l.path("proc/self", kind+"_map"))) {
		if f := strings.Fields(line); len(f) == 3 {
			n, _ := strconv.ParseUint(f[2], 10, 32)
			mapped += n
		}
	}
	return mapped >= allIDs
}

package claim

import (
	"cmp"
	"fmt"
	"path/filepath"

	"github.com/1bit-systems/pkg/internal/procfs"
)

// DefaultFloorGiB is the floor of MemAvailable of a host that names no other. The memory of a GPU that shares the
// host's is in no control group: nothing but a look at what is left holds a job back.
const DefaultFloorGiB = 2

const gib = 1 << 30

// MemAvailable is what the host can still give without swapping, in GiB. root is where proc is; "" is "/".
func MemAvailable(root string) (float64, error) {
	path := filepath.Join(cmp.Or(root, "/"), "proc/meminfo")
	kib, ok := procfs.Counter(path, "MemAvailable:")
	if !ok {
		return 0, fmt.Errorf("read the memory that is left: %s does not tell MemAvailable", path)
	}
	return float64(kib) * 1024 / gib, nil
}

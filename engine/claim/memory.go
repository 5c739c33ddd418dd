package claim

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// DefaultFloorGiB is the floor of MemAvailable of a host that names no other. The memory of a GPU that shares the
// host's is in no control group: nothing but a look at what is left holds a job back.
const DefaultFloorGiB = 2

const gib = 1 << 30

// MemAvailable is what the host can still give without swapping, in GiB. root is where proc is; "" is "/".
func MemAvailable(root string) (float64, error) {
	path := filepath.Join(cmp.Or(root, "/"), "proc/meminfo")
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the memory that is left: %w", err)
	}
	kib, ok := parseMemAvailable(string(text))
	if !ok {
		return 0, fmt.Errorf("read the memory that is left: %s has no MemAvailable", path)
	}
	return kib * 1024 / gib, nil
}

func parseMemAvailable(text string) (kib float64, ok bool) {
	for row := range strings.Lines(text) {
		// MemAvailable:   88816640 kB
		if fields := strings.Fields(row); len(fields) == 3 && fields[0] == "MemAvailable:" && fields[2] == "kB" {
			n, err := strconv.ParseUint(fields[1], 10, 64)
			return float64(n), err == nil
		}
	}
	return 0, false
}

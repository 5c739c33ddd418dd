// Package procfs reads the small text files of /proc and /sys.
package procfs

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// most is how much of a file is read, in bytes: more than any of them has.
const most = 1 << 20

// Text reads a file; "" if it cannot.
func Text(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(b)
}

// FirstLine is the first line of a file without the blanks around it; "" if it cannot be read.
func FirstLine(path string) string {
	line, _, _ := strings.Cut(Text(path), "\n")
	return strings.TrimSpace(line)
}

// Counter finds the number after a name at the beginning of a line, such as "MemAvailable:" in /proc/meminfo.
func Counter(path, name string) (int64, bool) { return counter(Text(path), name) }

func counter(text, name string) (int64, bool) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) >= 2 && fields[0] == name {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				return n, true
			}
			return 0, false
		}
	}
	return 0, false
}

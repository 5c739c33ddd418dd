package gpu

import (
	"strconv"
	"strings"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// How NVIDIA's driver reports a fault: device, number, process, text. A part of a device (MIG) is named behind its
// address; older drivers name no process.
var reXid = lazyregexp.New(`^NVRM: Xid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.\d)?(?: [^)]*)?\): (\d+)(?:, pid='?(\d+|<unknown>)'?)?(?:, name=([^,]*))?(?:,|$)`)

// xidEvent reads a line of NVIDIA's driver.
func xidEvent(msg string) (Event, bool) {
	m := reXid().FindStringSubmatch(msg)
	if m == nil {
		return Event{}, false
	}
	e := Event{Kind: "xid-" + m[2], Fault: xidFault(m[2]), Device: busID(m[1])}
	e.PID = atoi(m[3]) // 0 for <unknown>
	if name := strings.Trim(m[4], "'"); name != "<unknown>" {
		e.Process = cutName(name)
	}
	return e, true
}

// xidFault tells the numbers that report no fault of their own: a channel that is taken down with its program, also by
// our own kill (45), remapped rows (63), a high rate of corrected errors (92), a changed advice (154).
func xidFault(number string) bool {
	switch number {
	case "45", "63", "92", "154":
		return false
	}
	return true
}

// busID writes a PCI address as the kernel does: 0000:01:00.0 for 00000000:01:00.0 and for 0000:01:00.
func busID(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	domain, rest, found := strings.Cut(s, ":")
	if !found {
		return s
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	if !strings.Contains(rest, ".") {
		rest += ".0"
	}
	return domain + ":" + rest
}

// atoi reads a number that is not negative, 0 if it is none.
func atoi(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

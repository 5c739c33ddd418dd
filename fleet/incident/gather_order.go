package incident

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// inOrder are the entries as they were written. Within a boot that is by the clock that nobody can set, for the host's
// may be set back; those of one moment are by the journal's own number. Boots are in the order in which they ended.
func inOrder(kept map[string]systemd.Entry) []systemd.Entry {
	told := true // each has its boot's clock
	last := map[string]systemd.Entry{}
	for _, e := range kept {
		told = told && e.Boot != "" && e.Monotonic > 0
		if l := last[e.Boot]; e.Monotonic > l.Monotonic || e.Monotonic == l.Monotonic && e.At.After(l.At) {
			last[e.Boot] = e
		}
	}
	return slices.SortedFunc(maps.Values(kept), func(a, b systemd.Entry) int {
		when := a.At.Compare(b.At)
		switch {
		case told && a.Boot != b.Boot:
			when = cmp.Or(last[a.Boot].At.Compare(last[b.Boot].At), cmp.Compare(a.Boot, b.Boot))
		case told:
			when = cmp.Compare(a.Monotonic, b.Monotonic)
		}
		return cmp.Or(when, byNumber(a.Cursor, b.Cursor), cmp.Compare(a.Cursor, b.Cursor))
	})
}

// byNumber compares the numbers of two entries that one journald wrote, and says 0 of others.
func byNumber(a, b string) int {
	s, i := cursorNumber(a)
	t, j := cursorNumber(b)
	if s != t {
		return 0
	}
	return cmp.Compare(i, j)
}

// cursorNumber reads s=…;i=…: who numbered an entry, and its number.
func cursorNumber(cursor string) (source string, number uint64) {
	for part := range strings.SplitSeq(cursor, ";") {
		switch key, value, _ := strings.Cut(part, "="); key {
		case "s":
			source = value
		case "i":
			number, _ = strconv.ParseUint(value, 16, 64)
		}
	}
	return source, number
}

// ran is how long it was from one entry to another of the same boot, which no setting of the clock changes; false where
// that is not told.
func ran(from, to time.Duration) (time.Duration, bool) {
	return to - from, from > 0 && to >= from
}

package incident

import (
	"fmt"
	"strings"
	"time"
)

// A clock shows times in the zone of the host, with the same in UTC behind it.
type clock struct{ zone *time.Location }

// clock is that of the host; where its zone is not told, or not known here, UTC alone.
func (r *Report) clock() clock {
	if name := r.Evidence.Zone; name != "" && !strings.EqualFold(name, "local") {
		if zone, err := time.LoadLocation(name); err == nil {
			return clock{zone}
		}
	}
	return clock{time.UTC}
}

// time writes 2026-10-23 07:45:12 ADT (10:45:12Z).
func (c clock) time(t time.Time) string {
	utc := t.UTC()
	local := t.In(c.zone)
	if _, offset := local.Zone(); offset == 0 {
		return utc.Format("2006-01-02 15:04:05Z")
	}
	if local.Day() != utc.Day() {
		return local.Format("2006-01-02 15:04:05 MST") + utc.Format(" (2006-01-02 15:04:05Z)")
	}
	return local.Format("2006-01-02 15:04:05 MST") + utc.Format(" (15:04:05Z)")
}

// short writes 07:45:12, for tables beside a full time.
func (c clock) short(t time.Time) string { return t.In(c.zone).Format("15:04:05") }

// name is how the zone is called at a moment: ADT.
func (c clock) name(t time.Time) string {
	if c.zone == time.UTC {
		return "UTC"
	}
	return t.In(c.zone).Format("MST")
}

// length writes seconds as 6 h 07 min, 3 min 05 s or 18.8 s.
func length(seconds float64) string {
	if seconds < 0 {
		return "-" + length(-seconds)
	}
	if seconds < 60 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	s := int64(min(seconds, 1e12))
	switch {
	case s < 3600:
		return fmt.Sprintf("%d min %02d s", s/60, s%60)
	case s < 48*3600:
		return fmt.Sprintf("%d h %02d min", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/86400, s/3600%24)
}

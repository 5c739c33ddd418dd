package systemd

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

type spanUnit struct {
	name string
	usec float64
}

// spanUnits are systemd's, in the order in which it tries them, in microseconds.
var spanUnits = []spanUnit{
	{"seconds", 1e6}, {"second", 1e6}, {"sec", 1e6}, {"s", 1e6}, {"minutes", 60e6}, {"minute", 60e6}, {"min", 60e6},
	{"months", 2629800e6}, {"month", 2629800e6}, {"M", 2629800e6}, {"msec", 1e3}, {"ms", 1e3}, {"m", 60e6},
	{"hours", 3600e6}, {"hour", 3600e6}, {"hr", 3600e6}, {"h", 3600e6}, {"days", 86400e6}, {"day", 86400e6}, {"d", 86400e6},
	{"weeks", 604800e6}, {"week", 604800e6}, {"w", 604800e6}, {"years", 31557600e6}, {"year", 31557600e6}, {"y", 31557600e6},
	{"usec", 1}, {"us", 1}, {"µs", 1}, {"μs", 1},
}

// badSpan says whether systemd takes a text for no span of time.
func badSpan(text string) bool {
	text = strings.Trim(text, whitespace)
	if rest, ok := strings.CutPrefix(text, "infinity"); ok {
		return rest != ""
	}
	digits := func() string {
		rest := strings.TrimLeft(text, "0123456789")
		found := text[:len(text)-len(rest)]
		text = rest
		return found
	}
	total := 0.0
	for first := true; ; first = false {
		text = strings.TrimLeft(text, whitespace)
		if text == "" {
			return first || total >= math.MaxUint64
		}
		if signed, ok := strings.CutPrefix(text, "+"); ok && signed != "" && in("0123456789", signed[0]) {
			text = signed
		}
		whole := digits()
		if fraction, ok := strings.CutPrefix(text, "."); ok {
			text = fraction
			if digits() == "" {
				return true
			}
		} else if whole == "" {
			return true
		}
		value, _ := strconv.ParseFloat("0"+whole, 64)
		if value > math.MaxInt64 {
			return true
		}
		after, usec := strings.TrimLeft(text, whitespace), 1e6
		unit := slices.IndexFunc(spanUnits, func(unit spanUnit) bool { return strings.HasPrefix(after, unit.name) })
		switch {
		case unit >= 0:
			text, usec = after[len(spanUnits[unit].name):], spanUnits[unit].usec
		case after == text && text != "": // 12.34.56
			return true
		}
		total += value * usec
	}
}

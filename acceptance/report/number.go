package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// rate writes a fault rate; one that excludes nothing says so.
func rate(p float64) string {
	if !(p < 1) {
		return "no bound"
	}
	return fmt.Sprintf("%.6f", p)
}

// perHour writes faults per hour; without evidence there is no bound.
func perHour(v float64) string {
	if !(v > 0) || math.IsInf(v, 1) {
		return "no bound"
	}
	return fmt.Sprintf("%.4g", v)
}

func oneIn(p float64) string {
	if !(p < 1) || !(p > 0) {
		return ""
	}
	return thousands(int(1/p + 0.5))
}

func milliseconds(ms float64) string {
	switch {
	case ms >= 10000:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f s", s)
}

func gib(v *float64) string {
	if v == nil {
		return "no sensor"
	}
	return fmt.Sprintf("%.1f GiB", *v)
}

func text(s *string) string {
	if s == nil {
		return "unknown"
	}
	return *s
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func perSlot(launches map[int]int) string {
	var parts []string
	for _, slot := range slices.Sorted(maps.Keys(launches)) {
		parts = append(parts, fmt.Sprintf("%d: %s", slot, thousands(launches[slot])))
	}
	return or(strings.Join(parts, ", "), "none")
}

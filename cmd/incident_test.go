package cmd

import (
	"testing"
	"time"
)

func TestSince(t *testing.T) {
	zone := time.FixedZone("ADT", -3*3600)
	now := time.Date(2026, 10, 23, 8, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"": "", "2h": "2026-10-23T09:00:00Z", "90m": "2026-10-23T09:30:00Z",
		"2026-10-23T10:40:00Z": "2026-10-23T10:40:00Z", "2026-10-23 07:40": "2026-10-23T10:40:00Z", "2026-10-23 07:40:05": "2026-10-23T10:40:05Z",
		"07:40": "2026-10-23T10:40:00Z", "07:40:05": "2026-10-23T10:40:05Z", "2026-10-22": "2026-10-22T03:00:00Z",
		"soon": "refused", "-2h": "refused", "2026-10-24": "refused", "09:00": "refused",
	} {
		at, err := parseSince(text, now)
		got := at.UTC().Format(time.RFC3339)
		switch {
		case err != nil:
			got = "refused"
		case at.IsZero():
			got = ""
		}
		if got != want {
			t.Errorf("%q is %s (%v), want %s", text, got, err, want)
		}
	}
}

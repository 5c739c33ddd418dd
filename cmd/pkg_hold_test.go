package cmd

import (
	"slices"
	"testing"
	"time"

	"github.com/1bit-systems/pkg/fleet"
)

func TestParseUntil(t *testing.T) {
	here := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, here)
	for text, want := range map[string]time.Time{
		"": {}, "2026-12-24": time.Date(2026, 12, 24, 0, 0, 0, 0, here), "72h": now.Add(72 * time.Hour),
		"2026-12-24T18:00:00Z": time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC), "2026-11-30T09:00:01+02:00": now.Add(time.Second),
	} {
		if got, err := parseUntil(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"tomorrow", "2026-11-30", "2026-11-29", "-1h", "0s", "24.12.2026", "2026-13-01", "2026-11-30T06:59:59Z"} {
		if got, err := parseUntil(text, now); exitCode(err) != exitUsage {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestOwnerNotes(t *testing.T) {
	end := time.Date(2026, 12, 24, 0, 0, 0, 0, time.Local)
	got := ownerNotes(fleet.Service{
		Unit:     "llm.service",
		Proposed: &fleet.Proposal{Package: "hrx-1", By: "an agent", At: end.AddDate(0, 0, -1), Reason: "carries engine#123"},
		Held:     &fleet.Hold{Reason: "the demo", By: "ai", Until: &end},
	})
	want := []string{
		"hrx-1 is proposed by an agent (as claimed) since 2026-12-23 00:00: carries engine#123; 1bit pkg switch llm.service takes it",
		"held until 2026-12-24 00:00 by ai: the demo",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := ownerNotes(fleet.Service{}); len(got) > 0 {
		t.Errorf("%q", got)
	}
}

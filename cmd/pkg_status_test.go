package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
)

func TestServiceRow(t *testing.T) {
	live := &fleet.Live{Main: &fleet.Process{Package: "hrx-a"}}
	for _, tt := range []struct {
		s           fleet.Service
		live, state string
	}{
		{fleet.Service{State: "active (running)", Live: live}, "hrx-a", "as armed"},
		{fleet.Service{State: "inactive (dead)"}, "stopped", "stopped"},
		{fleet.Service{State: "activating (auto-restart)"}, "-", "restarting"},
		{fleet.Service{State: "activating (auto-restart-queued)"}, "-", "restarting"},
		{fleet.Service{State: "failed (failed)"}, "stopped", "failed"},
		{fleet.Service{State: "active (running)", Live: &fleet.Live{Main: &fleet.Process{}}}, "-", "as armed"},
		{fleet.Service{State: "active (running)", Live: &fleet.Live{Unreadable: true}}, "unreadable", "not known"},
	} {
		row := serviceRow(tt.s)
		if row[2] != tt.live || row[5] != tt.state {
			t.Errorf("%s: %q, want %s and %s", tt.s.State, row, tt.live, tt.state)
		}
	}
}

// What is wrong stands first, and what our drop-in wins over is one line unless the service was named.
func TestServiceNotes(t *testing.T) {
	s := fleet.Service{
		Unit: "llm.service", Warnings: []string{"it does not stay up"}, Blocked: []fleet.Refused{{Package: "hrx-a", Reason: "failed"}},
		Shadowed: []fleet.Place{{File: "/etc/a.conf", Line: 2, Value: "/x"}, {File: "/etc/a.conf", Line: 3, Value: "/y"}},
	}
	short, full := serviceNotes(s, false), serviceNotes(s, true)
	if len(short) != 3 || short[0] != s.Warnings[0] || !strings.Contains(short[1], "2 lines") || !strings.Contains(short[1], "1bit pkg status llm.service") ||
		!strings.Contains(short[2], "1bit pkg unblock llm.service hrx-a") {
		t.Errorf("short: %q", short)
	}
	if len(full) != 4 || full[0] != s.Warnings[0] || !slices.Contains(full, "/etc/a.conf:3 is shadowed by our drop-in (/y)") {
		t.Errorf("full: %q", full)
	}
}

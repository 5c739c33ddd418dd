package cmd

import (
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/fleet"
)

func TestUnswitchSentence(t *testing.T) {
	live := &fleet.Live{Main: &fleet.Process{Package: "hrx-new"}}
	for name, tt := range map[string]struct {
		outcome fleet.Outcome
		want    string
	}{
		"nothing":          {fleet.Outcome{Service: fleet.Service{State: "active (running)"}, Loaded: true}, "nothing of ours"},
		"no bus":           {fleet.Outcome{Changed: true}, "is not loaded"},
		"as it was":        {fleet.Outcome{Service: fleet.Service{State: "active (running)"}, Changed: true, Loaded: true}, "x.service is as its owner wrote it"},
		"the unit is gone": {fleet.Outcome{Changed: true, Loaded: true}, "not there any more"},
		"something else runs": {
			fleet.Outcome{Service: fleet.Service{State: "active (running)", Live: live, RestartPending: true}, To: "hrx-old", Changed: true, Loaded: true},
			"still runs hrx-new, and its next start uses hrx-old: 1bit pkg restart x.service",
		},
	} {
		tt.outcome.Unit = "x.service"
		if got := unswitchSentence(&tt.outcome); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

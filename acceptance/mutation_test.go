package acceptance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/1bit-systems/pkg/acceptance/detect"
)

// A fault that one face alone tells fails a whole run, and passes one whose plan has that face off: then the face stands
// under "not tested". All faults against all faces are tried in package detect.
func TestFaceThatIsOffLetsItsFaultThrough(t *testing.T) {
	for face, tt := range map[string]struct{ fault, more, verdict string }{
		detect.NaN:        {"guard-v2@9", "", Fail},
		detect.NaNWire:    {"null@9", "", Fail},
		detect.Leak:       {"leak@9", "", Fail},
		detect.InBand:     {"in-band@9", "", Fail},
		detect.Empty:      {"no-deltas@9", "", Fail},
		detect.HSA:        {"hsa@9", "", Fail},
		detect.Corruption: {"corrupt-load@9", "sentinels: {every: 4}\n", Fail},
		detect.Device:     {"partial", "device: {name: HRX0, layers: all}\n", Fail},
		detect.Numeric:    {"numeric@9", "sentinels: {every: 4}\n", Pass}, // it only reports, unless the plan says otherwise
	} {
		settings := map[string]string{"": tt.verdict, "gate": Fail, "off": Pass}
		if tt.verdict == Fail {
			delete(settings, "gate")
		}
		for setting, verdict := range settings {
			t.Run(face+" "+setting, func(t *testing.T) {
				t.Parallel()
				p := fakePackage(t, "works")
				more := tt.more
				if setting != "" {
					more += fmt.Sprintf("faces: {%s: %s}\n", face, setting)
				}
				v := soak(t, RunOptions{Plan: fakePlan(t, p, tt.fault, more), Package: p, Evidence: filepath.Join(t.TempDir(), "e")})
				if v.Verdict != verdict || verdict == Fail && !strings.HasPrefix(v.Reason, "fault("+face+")") {
					t.Errorf("%s: %s, want %s", v.Verdict, v.Reason, verdict)
				}
				off := slices.ContainsFunc(v.NotTested, func(s string) bool {
					return strings.HasPrefix(s, face+" (") && strings.HasSuffix(s, ": the plan turns it off")
				})
				if off != (setting == "off") {
					t.Errorf("not tested: %q", v.NotTested)
				}
			})
		}
	}
}

// What only a process of its own can show, or only a whole run can judge.
func TestFaultsOfWholeRuns(t *testing.T) {
	for fault, want := range map[string]struct{ verdict, reason string }{
		"restart@9":        {Fail, "fault(restart): the server was replaced: process "},
		"exit-0@9":         {Fail, "fault(crash, exit 0): the server ended by itself"},
		"exit-139@9":       {Fail, "fault(crash, SIGSEGV): the server ended by itself"},
		"assert@9":         {Fail, "fault(crash, SIGABRT): "},
		"overcommit@9":     {Inconclusive, "invalid(plan): "},
		"exceed-context@9": {Inconclusive, "invalid(plan): "},
		"lcp":              {Inconclusive, "invalid(load-shape): "},
		"slot-3":           {Inconclusive, "invalid(load-shape): "},
		"token-zero@9":     {Pass, "0 faults in 48 requests"},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			p := fakePackage(t, "works")
			v := soak(t, RunOptions{Plan: fakePlan(t, p, fault, ""), Package: p, Evidence: filepath.Join(t.TempDir(), "e")})
			if v.Verdict != want.verdict || !strings.HasPrefix(v.Reason, want.reason) {
				t.Errorf("%s: %s, want %s: %s…", v.Verdict, v.Reason, want.verdict, want.reason)
			}
			if len(v.Faults) > 1 || (len(v.Faults) == 1) != (want.verdict == Fail) {
				t.Errorf("one event was counted as %d: %v", len(v.Faults), v.Faults)
			}
		})
	}
}

package cmd

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/internal/ui"
)

// printVerdict says the verdict, what it rests on, and what it does not say.
func printVerdict(w io.Writer, v *acceptance.Verdict, dir string) error {
	b, x := v.Bounds, v.Exposure
	fmt.Fprintf(w, "verdict: %s: %s\n", v.Verdict, ui.Clean(v.Reason))
	rows := [][]string{
		{"package", v.Package + " (" + v.PackageDigest + ")"},
		{"plan", v.Plan + " (sha256:" + v.PlanFileSHA256 + ")"},
		{"load", fmt.Sprintf("%d requests in %.0f s, %.1f a second, half of them within %.0f ms", v.Requests, x.LoadSeconds, x.RequestsPerSecond, x.LatencyMS.P50)},
		{"slots", fmt.Sprintf("all busy %.0f %% of the busy time, launches %s", 100*x.AllSlotsBusyShare, launches(x.LaunchesPerSlot))},
	}
	if n := x.Neighbour; n != nil {
		rows = append(rows, []string{"neighbour", fmt.Sprintf("%s, %d failed, %d tokens", plural(n.Runs, "run"), n.FailedRuns, n.Tokens)})
	}
	rows = append(rows, []string{"rate at most", fmt.Sprintf("%.6f a request, %.6f in the worst length, %.6f on a slot's first task, %.4f a server life (each at 95 %%)",
		b.RequestUpper95, b.WorstBinUpper95, b.NeverUsedSlotUpper95, b.ArmUpper95)})
	for _, face := range faultFaces(v.Faults) {
		rows = append(rows, []string{"fault", face})
	}
	for _, note := range v.Notes {
		rows = append(rows, []string{"note", note})
	}
	if len(v.NotTested) > 0 {
		rows = append(rows, []string{"not tested", strings.Join(v.NotTested, "; ")})
	}
	return ui.Table(w, append(rows, []string{"evidence", dir}))
}

// launches lists how many tasks each slot was given, in the order of the slots.
func launches(perSlot map[int]int) string {
	var out []string
	for _, slot := range slices.Sorted(maps.Keys(perSlot)) {
		out = append(out, fmt.Sprint(perSlot[slot]))
	}
	return or(strings.Join(out, "/"), "none")
}

// faultFaces says of every face how often it was seen and what the first one was.
func faultFaces(faults []acceptance.Fault) []string {
	count := map[string]int{}
	var first []acceptance.Fault
	for _, f := range faults {
		if count[f.Face]++; count[f.Face] == 1 {
			first = append(first, f)
		}
	}
	var out []string
	for _, f := range first {
		out = append(out, fmt.Sprintf("%s, %d seen, first: %s", f.Face, count[f.Face], f.Detail))
	}
	return out
}

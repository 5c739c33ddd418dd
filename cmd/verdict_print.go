package cmd

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/acceptance/report"
	"github.com/1bit-systems/pkg/internal/ui"
)

// printVerdict says the verdict, what it rests on, and what it does not say.
func printVerdict(w io.Writer, v *acceptance.Verdict, dir string) error {
	fmt.Fprintf(w, "verdict: %s: %s\n", v.Verdict, ui.Clean(v.Reason))
	if len(v.Rows) > 0 {
		if err := ui.Table(w, armRows(v.Rows)); err != nil {
			return err
		}
	}
	b, x := v.Bounds, v.Exposure
	rows := [][]string{
		{"package", v.Package + " (" + v.PackageDigest + ")"},
		{"plan", v.Plan + " (sha256:" + v.PlanFileSHA256 + ")"},
		{"arms", fmt.Sprintf("%d clean, %d with a fault, %d invalid, %d out of regime", v.Arms.Clean, v.Arms.Fault, v.Arms.Invalid, v.Arms.OutOfRegime)},
		{"load", fmt.Sprintf("%s in all; of the candidate %.1f a second for %s, half of them within %.0f ms", plural(v.Requests, "request"), x.RequestsPerSecond, seconds(x.LoadSeconds), x.LatencyMS.P50)},
		{"slots", fmt.Sprintf("all busy %.0f %% of the busy time, launches %s", 100*x.AllSlotsBusyShare, launches(x.LaunchesPerSlot))},
	}
	if n := x.Neighbour; n != nil {
		rows = append(rows, []string{"neighbour", fmt.Sprintf("%s: %d %s in %s, %d failed, alive %.0f %% of the load", n.Kind, n.Units, n.Unit, plural(n.Runs, "run"), n.FailedRuns, 100*n.AliveShare)})
	}
	rows = append(rows, []string{"rate at most", fmt.Sprintf("%.6f a server life, %.6f a request (%.6f if correlated by 0.1), %.6f in the worst length, %.6f on a slot's first task; each at 95 %%",
		b.ArmUpper95, b.RequestUpper95, b.RequestUpper95ICC01, b.WorstBinUpper95, b.NeverUsedSlotUpper95)})
	if len(v.Table) > 0 {
		rows = append(rows, []string{"faces", facesLine(v.Table)})
	}
	if f := v.Fisher; f != nil {
		rows = append(rows, []string{"control", fmt.Sprintf("%d of %s with a fault, candidate %d of %d: Fisher two-sided %.6f",
			f.ControlFaults, counted(f.ControlLives, "life", "lives"), f.CandidateFaults, f.CandidateLives, f.TwoSided)})
	}
	rows = append(rows, faultRows(v.Faults)...)
	for _, life := range leftOut(v.ArmStates) {
		rows = append(rows, []string{"left out", life})
	}
	for _, note := range v.Notes {
		rows = append(rows, []string{"note", note})
	}
	for _, what := range v.NotTested {
		rows = append(rows, []string{"not tested", what})
	}
	rows = append(rows, []string{"evidence", dir})
	if page := filepath.Join(dir, report.HTMLName); exists(page) {
		rows = append(rows, []string{"report", page})
	}
	return ui.Table(w, rows)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// armRows are the arms in the columns of reproduction reports.
func armRows(arms []acceptance.ArmRow) [][]string {
	rows := [][]string{{"ARM", "PARALLEL", "NEIGHBOUR", "LIVES", "REQUESTS", "OK", "NAN", "NAN LOG", "HTTP", "RESTARTS", "SLOTS", "FIRST TASKS", "LRU/LCP/ID", "MEDIAN", "GTT GIB", "BUILD"}}
	for _, a := range arms {
		name := a.Name
		if a.Role != acceptance.RoleCandidate {
			name += " (" + a.Role + ")"
		}
		rows = append(rows, []string{
			name, fmt.Sprint(a.Parallel), a.Neighbour, fmt.Sprint(a.Lives), fmt.Sprint(a.Requests), fmt.Sprint(a.OK),
			fmt.Sprint(a.NaN), fmt.Sprint(a.GuardLines), fmt.Sprint(a.HTTPErrors), fmt.Sprint(a.Restarts), fmt.Sprintf("%d of %d", a.SlotsUsed, a.Parallel),
			fmt.Sprint(a.NeverUsedSlots), fmt.Sprintf("%d/%d/%d", a.Selected.LRU, a.Selected.LCP, a.Selected.ByID),
			fmt.Sprintf("%.0f ms", a.MedianMS), gib(a.GTTBeforeGiB) + "-" + gib(a.GTTAfterGiB), a.Build,
		})
	}
	return rows
}

func gib(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("%.1f", *v)
}

// facesLine sums up the faces: how many decide, on how many requests the least seen of them could have shown, and
// which were seen.
func facesLine(table []acceptance.FaceRow) string {
	gates, least := 0, -1
	var name string
	var seen []string
	for _, f := range table {
		if f.Seen > 0 {
			seen = append(seen, fmt.Sprintf("%s %d (%s)", f.Face, f.Seen, f.Setting))
		}
		if f.Setting != "gate" {
			continue
		}
		if gates++; f.Unit == "request" && (least < 0 || f.N < least) {
			least, name = f.N, f.Face
		}
	}
	text := fmt.Sprintf("%d decide", gates)
	if least >= 0 {
		text += fmt.Sprintf(", the least seen on %s (%s)", plural(least, "request"), name)
	}
	return text + "; seen: " + or(strings.Join(seen, ", "), "none")
}

// leftOut says why lives are no evidence, of the first few.
func leftOut(lives []acceptance.ArmState) []string {
	const shown = 5
	var out []string
	for _, l := range lives {
		if l.State != "clean" && l.State != "fault" {
			out = append(out, fmt.Sprintf("life %d: %s: %s", l.Arm, l.Reason, l.Detail))
		}
	}
	if more := len(out) - shown; more > 0 {
		out = append(out[:shown], fmt.Sprintf("%d more lives, which -o json lists", more))
	}
	return out
}

// launches lists how many tasks each slot was given, in the order of the slots.
func launches(perSlot map[int]int) string {
	var out []string
	for _, slot := range slices.Sorted(maps.Keys(perSlot)) {
		out = append(out, fmt.Sprint(perSlot[slot]))
	}
	return or(strings.Join(out, "/"), "none")
}

// faultRows say of every face how often it was seen and what the first one was.
func faultRows(faults []acceptance.Fault) [][]string {
	count := map[string]int{}
	var first []acceptance.Fault
	for _, f := range faults {
		if count[f.Face]++; count[f.Face] == 1 {
			first = append(first, f)
		}
	}
	var rows [][]string
	for _, f := range first {
		title := "reported" // it decides nothing
		if f.Gates {
			title = "fault"
		}
		rows = append(rows, []string{title, fmt.Sprintf("%s, %d seen, first in life %d: %s", f.Face, count[f.Face], f.Arm, f.Detail)})
	}
	return rows
}

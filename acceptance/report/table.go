package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/internal/ui"
)

// A table is one table of the report, the same in both forms.
type table struct {
	Title  string
	Note   string // a sentence under the title
	Head   []string
	Rows   [][]string
	Number []bool // columns of numbers, set right
}

// Right tells whether a column is set right.
func (t table) Right(column int) bool { return column < len(t.Number) && t.Number[column] }

// Headed tells whether the columns have names worth a line.
func (t table) Headed() bool { return strings.Join(t.Head, "") != "" }

// tables lists all tables but those that the page shows as pictures, in their
// order.
func (r *Report) tables() []table {
	all := []table{r.arms(), r.bounds(), r.exposure(), r.faces(), r.faults(), r.slotTasks(), r.neighbours(), r.lives(), r.fisher(), r.identities(), r.host()}
	for _, t := range all {
		for _, row := range t.Rows {
			for i := range row {
				row[i] = ui.Clean(row[i])
			}
		}
	}
	return slices.DeleteFunc(all, func(t table) bool { return len(t.Rows) == 0 })
}

// arms has the columns of the reports that engineers write by hand of a
// reproduction.
func (r *Report) arms() table {
	t := table{
		Title: "Arms",
		Head: []string{"arm", "build", "parallel", "neighbour", "lives", "requests", "OK", "NaN", "NaN log lines", "HTTP errors", "restarts",
			"never-used slots hit", "slot selection", "all slots busy", "median", "GTT before → after"},
		Number: []bool{2: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 13: true, 14: true, 15: false},
	}
	for _, a := range r.verdict.Rows {
		lives := max(1, a.States.Clean+a.States.Fault+a.States.Invalid+a.States.OutOfRegime)
		t.Rows = append(t.Rows, []string{
			a.Name + " (" + a.Role + ")", a.Build, fmt.Sprint(a.Parallel), or(a.Neighbour, "none"), fmt.Sprint(a.Lives),
			thousands(a.Requests), thousands(a.OK), fmt.Sprint(a.NaN), fmt.Sprint(a.GuardLines), fmt.Sprint(a.HTTPErrors),
			fmt.Sprint(a.Restarts), fmt.Sprintf("%d of %d", a.NeverUsedSlots, a.Parallel*lives),
			fmt.Sprintf("%s by LRU, %d by LCP, %d by id", thousands(a.Selected.LRU), a.Selected.LCP, a.Selected.ByID),
			percent(a.BusyShare), milliseconds(a.MedianMS), gib(a.GTTBeforeGiB) + " → " + gib(a.GTTAfterGiB),
		})
	}
	return t
}

// A bound is one line of the picture of bounds.
type bound struct {
	Name  string
	Value float64 // a probability, or faults per hour
	What  string
	Hour  bool
}

func (r *Report) boundList() []bound {
	b, v := r.verdict.Bounds, r.verdict
	list := []bound{
		{"primary", b.PrimaryUpper, fmt.Sprintf("per %s, at %.6g %%: the one that decides", r.unit(), 100*b.Confidence), v.Primary == "hour"},
		{"server life", b.ArmUpper95, "per life", false},
		{"request", b.RequestUpper95, "per request, if the requests of one life are independent", false},
		{"request, correlated 0.1", b.RequestUpper95ICC01, "per request, if those of one life are correlated by 0.1", false},
		{"request, correlated 0.5", b.RequestUpper95ICC05, "per request, if those of one life are correlated by 0.5", false},
		{"worst prompt length", b.WorstBinUpper95, "per request of the length least seen", false},
		{"never-used slot", b.NeverUsedSlotUpper95, "per first task of a slot", false},
		{"hour", b.HourUpper95, "faults per hour of load", true},
		{"server life, jointly", b.ArmUpper95Joint, "this and the next hold together at 95 %", false},
		{"request, jointly", b.RequestUpper95Joint, "", false},
		{"request, at any time", b.AnytimeRequestUpper95, "may be watched while the run goes on; decides nothing", false},
	}
	if v.Exposure.LoadSeconds == 0 { // then no time bounds it
		list = slices.DeleteFunc(list, func(b bound) bool { return b.Hour })
	}
	for _, bin := range slices.Sorted(maps.Keys(b.BinUpper95)) {
		list = append(list, bound{fmt.Sprintf("prompts of %d tokens", bin), b.BinUpper95[bin], "per request", false})
	}
	for _, slot := range slices.Sorted(maps.Keys(b.SlotUpper95)) {
		list = append(list, bound{fmt.Sprintf("slot %d", slot), b.SlotUpper95[slot], "per request", false})
	}
	return list
}

func (r *Report) bounds() table {
	t := table{
		Title: "Bounds", Note: "The largest fault rate that the evidence still allows: exact, one-sided, each by itself at 95 % unless it says otherwise.",
		Head: []string{"bound", "rate at most", "one in", ""}, Number: []bool{1: true, 2: true, 3: false},
	}
	for _, b := range r.boundList() {
		value, in := rate(b.Value), oneIn(b.Value)
		if b.Hour {
			value, in = perHour(b.Value), ""
		}
		t.Rows = append(t.Rows, []string{b.Name, value, in, b.What})
	}
	return t
}

func (r *Report) exposure() table {
	x := r.verdict.Exposure
	t := table{Title: "Exposure", Note: "What the load really was: from the server's own log and the host's sensors.", Head: []string{"", ""}}
	add := func(what, value string) { t.Rows = append(t.Rows, []string{what, value}) }
	add("time under load", seconds(x.LoadSeconds))
	add("requests that ended by themselves", fmt.Sprintf("%s, %.1f a second", thousands(r.verdict.Requests), x.RequestsPerSecond))
	add("all slots busy", percent(x.AllSlotsBusyShare)+" of the busy time")
	add("launches by slot", perSlot(x.LaunchesPerSlot))
	add("slot selection", fmt.Sprintf("%s by LRU, %d by LCP similarity, %d by id", thousands(x.Selected.LRU), x.Selected.LCP, x.Selected.ByID))
	add("first tasks of a never-used slot", fmt.Sprint(x.NeverUsedSlots))
	add("tokens generated, of them with a log-probability", fmt.Sprintf("%s, %s", thousands(x.TokensPredicted), thousands(x.TokensObserved)))
	add("answers without the log-probabilities asked for", fmt.Sprint(x.NotObserved))
	add("requests that the runner gave up itself", fmt.Sprint(x.Censored))
	add("latency from the intended start: half, 99 %, longest", fmt.Sprintf("%s, %s, %s",
		milliseconds(x.LatencyMS.P50), milliseconds(x.LatencyMS.P99), milliseconds(x.LatencyMS.Max)))
	for _, w := range slices.Sorted(maps.Keys(x.Warnings)) {
		add("warnings: "+w, fmt.Sprintf("%d (they decide nothing)", x.Warnings[w]))
	}
	return t
}

func (r *Report) faces() table {
	t := table{
		Title: "Faces of a fault", Note: "How often each could have shown, and did.",
		Head:   []string{"face", "setting", "could show on", "seen", "rate at most", "first seen", "what was seen"},
		Number: []bool{2: true, 3: true, 4: true, 6: false},
	}
	for _, f := range r.verdict.Table {
		first := ""
		if f.First != nil {
			first = clock(*f.First)
		}
		unit := map[string][2]string{"arm": {"life", "lives"}, "request": {"request", "requests"}}[or(f.Unit, "request")]
		n := thousands(f.N) + " " + unit[1]
		if f.N == 1 {
			n = "1 " + unit[0]
		}
		t.Rows = append(t.Rows, []string{f.Face, f.Setting, n, fmt.Sprint(f.Seen), rate(f.Upper95), first, f.Excerpt})
	}
	return t
}

func (r *Report) faults() table {
	t := table{Title: "Faults", Head: []string{"face", "life", "request", "slot", "at", "what"}, Number: []bool{1: true, 2: true, 3: true, 5: false}}
	for i, f := range r.verdict.Faults {
		if !f.Gates {
			f.Face += " (reported)"
		}
		if i == mostFaults {
			t.Note = fmt.Sprintf("The first %d of %d; verdict.json has all.", mostFaults, len(r.verdict.Faults))
			break
		}
		t.Rows = append(t.Rows, []string{f.Face, fmt.Sprint(f.Arm), number(f.Request), number(f.Slot), clock(f.At), f.Detail})
	}
	return t
}

const mostFaults = 100

// slotTasks tells what every slot did when a life ended with a fault.
func (r *Report) slotTasks() table {
	t := table{
		Title: "What the slots did", Note: "At the end of each life with a fault, joined from the server's log and the wire. Where a fault was seen need not be where it came from.",
		Head:   []string{"life", "slot", "task", "request", "selected", "state", "prompt", "generated", "graphs reused", "by the log's clock"},
		Number: []bool{0: true, 1: true, 2: true, 3: true, 6: true, 7: true, 8: true, 9: false},
	}
	for _, f := range r.verdict.Faults[:min(len(r.verdict.Faults), mostFaults/10)] {
		for _, s := range f.Tasks {
			state, how := "over", strings.ToUpper(or(s.Selected, "unknown"))
			switch {
			case s.Faulted:
				state = "faulted"
			case s.Running:
				state = "running"
			}
			if s.NeverUsed {
				how += ", never used before"
			}
			from, to := time.Duration(s.FromUS)*time.Microsecond, time.Duration(s.ToUS)*time.Microsecond
			when := from.Round(time.Millisecond).String()
			if !s.Running {
				when += " to " + to.Round(time.Millisecond).String()
			}
			t.Rows = append(t.Rows, []string{fmt.Sprint(f.Arm), fmt.Sprint(s.Slot), fmt.Sprint(s.Task), number(s.Request), how, state,
				fmt.Sprint(s.PromptTokens), fmt.Sprint(s.Tokens), fmt.Sprint(s.GraphsReused), when})
		}
	}
	return t
}

func (r *Report) neighbours() table {
	t := table{
		Title: "Neighbour", Note: "Its own account. What goes wrong in it is no fault of the package under test.",
		Head: []string{"kind", "runs", "failed", "work", "alive", "what went wrong in it"}, Number: []bool{1: true, 2: true, 3: true, 4: true, 5: false},
	}
	for _, n := range r.history.Neighbours {
		var work []string
		for _, unit := range slices.Sorted(maps.Keys(n.Work)) {
			work = append(work, thousands(int(n.Work[unit]))+" "+unit)
		}
		t.Rows = append(t.Rows, []string{n.Kind, thousands(n.Runs), thousands(n.Failed), strings.Join(work, ", "), seconds(n.Alive.Seconds()), strings.Join(n.Findings, "; ")})
	}
	return t
}

// lives lists the server lives that were not clean; the clean ones are counted.
func (r *Report) lives() table {
	c := r.verdict.Arms
	t := table{
		Title: "Server lives",
		Note: fmt.Sprintf("%d clean, %d with a fault, %d invalid (an outside cause, no evidence), %d out of regime (the condition to be tested was not met). Those that were not clean:",
			c.Clean, c.Fault, c.Invalid, c.OutOfRegime),
		Head: []string{"life", "state", "why"}, Number: []bool{0: true, 2: false},
	}
	for _, s := range r.verdict.ArmStates {
		if s.State != "clean" {
			t.Rows = append(t.Rows, []string{fmt.Sprint(s.Arm), s.Reason, s.Detail})
		}
	}
	return t
}

func (r *Report) fisher() table {
	f := r.verdict.Fisher
	if f == nil {
		return table{}
	}
	return table{
		Title: "Candidate against control", Note: "Fisher's exact test on server lives with a fault.",
		Head: []string{"", "faulted", "lives"}, Number: []bool{1: true, 2: true},
		Rows: [][]string{
			{"candidate", fmt.Sprint(f.CandidateFaults), fmt.Sprint(f.CandidateLives)},
			{"control", fmt.Sprint(f.ControlFaults), fmt.Sprint(f.ControlLives)},
			{fmt.Sprintf("p = %.6f two-sided, %.6f less, %.6f greater", f.TwoSided, f.Less, f.Greater), "", ""},
		},
	}
}

func (r *Report) identities() table {
	t := table{Title: "Identities", Note: "Which bytes were tested, and by what.", Head: []string{"", "", "digest"}}
	for _, id := range r.history.Identities {
		t.Rows = append(t.Rows, []string{id.What, id.Name, id.Digest})
	}
	return t
}

func (r *Report) host() table {
	t := table{Title: "Host", Head: []string{"", "before", "after"}}
	b, a := r.verdict.Exposure.HostBefore, r.verdict.Exposure.HostAfter
	if b == nil {
		return t
	}
	if a == nil {
		a = &acceptance.HostFacts{}
	}
	t.Rows = [][]string{
		{"kernel", b.Kernel, a.Kernel},
		{"load average", b.LoadAverage, a.LoadAverage},
		{"MemAvailable", gib(b.MemAvailableGiB), gib(a.MemAvailableGiB)},
		{"GTT in use", gib(b.GTTUsedGiB), gib(a.GTTUsedGiB)},
		{"cwsr_enable", text(b.CWSREnabled), text(a.CWSREnabled)},
	}
	return t
}

// clock writes a time in UTC, so that a report is the same wherever it is made.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + "Z" }

package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/neighbour"
)

// canShow says what a run of the plan without a fault, or with one, shows.
func (p *Plan) canShow(e Estimate) []string {
	out := []string{}
	if e.SeeAtP0 != nil {
		out = append(out, fmt.Sprintf("a fault in 1 of %s %s would show with probability %.6f", reciprocal(p.P0), unitNames[p.Primary], *e.SeeAtP0))
	}
	if !p.ReportOnly {
		out = append(out, fmt.Sprintf("%s without a fault exclude, at %.6g %%, a rate of %g or more", p.units(e.RequiredN), 100*p.Confidence, p.P0))
	}
	b := e.Bounds
	for _, line := range []struct {
		bound float64
		what  string
	}{
		{b.ArmUpper95, fmt.Sprintf("a server life, by %s", plural(e.CandidateLives, "life", "lives"))},
		{b.RequestUpper95, fmt.Sprintf("a request, by %d that every gating face sees (%.6f if those of a life are correlated by 0.1)", int(float64(e.Requests)*p.gatingShare()), b.RequestUpper95ICC01)},
		{b.WorstBinUpper95, "a request of the least frequent prompt length"},
		{b.NeverUsedSlotUpper95, "the first task on a slot that was never used"},
		{b.HourUpper95, "an hour of load"},
	} {
		if line.bound < 1 {
			out = append(out, fmt.Sprintf("without a fault the rate is at most %.6f %s", line.bound, line.what))
		}
	}
	return out
}

var unitNames = map[string]string{PrimaryArm: "server lives", PrimaryRequest: "requests", PrimaryHour: "hours"}

func reciprocal(p float64) string { return fmt.Sprintf("%.4g", 1/p) }

// cannotShow says what no run of the plan can tell, whatever its verdict.
func (p *Plan) cannotShow(e Estimate) []string {
	var out []string
	if p.ReportOnly {
		out = append(out, "that the package is sound: the plan only reports, its verdict is fail or inconclusive and never pass")
	}
	if e.CandidateLives == 1 {
		out = append(out, fmt.Sprintf("other server lives: there is one, which bounds their rate at %.2f", e.Bounds.ArmUpper95))
	}
	if pooled := slices.ContainsFunc(p.Arms, func(a Arm) bool { return a.Role != RoleCandidate }); pooled {
		out = append(out, "a rate from control and baseline arms: the candidate is compared with them, and they never count")
	}
	out = append(out, p.uptime(), p.neighboursLeftOut())
	out = append(out, fmt.Sprintf("other loads: prompts are %s tokens, answers %s, %s in flight", listed(p.Load.PromptTokens), listed(p.Load.NPredict), p.inFlight()))
	for _, f := range detect.Faces() {
		setting := f.Default
		if s, ok := p.Faces[f.Name]; ok {
			setting = detect.Setting(s)
		}
		switch {
		case setting == detect.Off:
			out = append(out, fmt.Sprintf("face %s: it is off", f.Name))
		case p.lacks(f):
			out = append(out, fmt.Sprintf("face %s: it needs %s, and the plan has none", f.Name, f.Needs))
		}
	}
	if share := p.gatingShare(); share < 1 {
		out = append(out, fmt.Sprintf("NaN in %.6g %% of the requests, which do not ask for log-probabilities", 100*(1-share)))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// uptime is about faults that need a server to have run for long.
func (p *Plan) uptime() string {
	longest, count := time.Duration(0), 0
	for i := range p.Arms {
		l := p.life(i, 1)
		longest, count = max(longest, time.Duration(l.Load.Duration)), max(count, l.Load.Requests)
	}
	if longest > 0 {
		return fmt.Sprintf("what needs a server to be up for longer than %s", longest)
	}
	return fmt.Sprintf("what needs a server to be up for hours: a life ends after %s", plural(count, "request", "requests"))
}

// neighboursLeftOut are the kinds that no candidate arm has beside it.
func (p *Plan) neighboursLeftOut() string {
	used := map[string]bool{}
	for i, a := range p.Arms {
		if a.Role == RoleCandidate {
			used[p.life(i, 1).neighbourKind()] = true
		}
	}
	var missing []string
	for _, kind := range []string{neighbour.Bench, neighbour.Server, neighbour.Ops, neighbour.Memory, neighbour.None} {
		if !used[kind] {
			missing = append(missing, kind)
		}
	}
	return "the candidate beside a neighbour of another kind: " + strings.Join(missing, ", ")
}

func (p *Plan) inFlight() string {
	var n []int
	for i := range p.Arms {
		n = append(n, p.life(i, 1).Load.InFlight)
	}
	return listed(n)
}

// listed is the different numbers of a list, the least first.
func listed(list []int) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	text := make([]string, len(list))
	for i, v := range list {
		text[i] = fmt.Sprint(v)
	}
	return strings.Join(text, ", ")
}

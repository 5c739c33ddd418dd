package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/stats"
)

// verdict ends the last life and says what there is to say.
func (j *judging) verdict(s *ledgerSummary) *Verdict {
	if j.arm != nil && j.arm.end != nil {
		j.endLife() // one that goes on counts for the live bound alone
	}
	live := j.live()
	j.endLife()
	if s.Damage != "" {
		j.damage = s.Damage
	}
	p, candidate := j.plan, j.groups[RoleCandidate]
	v := &Verdict{
		Plan: p.Name, PlanFileSHA256: j.planFile, PlanSHA256: j.resolved,
		Package: j.open.Package, PackageDigest: j.open.PackageDigest,
		Ledger: LedgerHead{
			Records: s.Records, Head: s.Head, Closed: s.Closed, First: s.First, Last: s.Last, Resumed: j.resumed,
		},
		Arms: j.arms, ArmStates: append([]ArmState{}, j.states...), Requests: j.asked, Faults: append([]Fault{}, j.faults...),
		Primary: p.Primary, P0: p.P0, Fisher: j.fisher(), Bounds: candidate.counted.bounds(p, j.faces),
		Exposure: candidate.shown().exposure(), Notes: append([]string{}, slices.Concat(s.Notes, j.notes, j.remarked())...),
	}
	v.Bounds.AnytimeRequestUpper95 = live
	v.Exposure.EngineVersion, v.Exposure.HostBefore, v.Exposure.HostAfter = j.open.EngineVersion, j.before, j.after
	v.Table = j.faceRows()
	for _, f := range v.Table {
		if f.Setting == string(detect.Gate) && f.Unit == detect.UnitRequest {
			v.Exposure.Faces = append(v.Exposure.Faces, FaceExposure{f.Face, f.N, f.Upper95})
		}
	}
	v.Rows = []ArmRow{}
	for _, r := range j.rows {
		v.Rows = append(v.Rows, r.row(j))
		v.Exposure.ByArm = append(v.Exposure.ByArm, r.exposure())
	}
	v.NotTested = j.notTested()
	v.Verdict, v.Reason = j.decide(s, v)
	return v
}

// live is the bound that may be watched: of the lives that count, and of the one
// that goes on.
func (j *judging) live() float64 {
	t := *j.groups[RoleCandidate].counted
	if a := j.arm; a != nil && a.end == nil && a.start.Role == RoleCandidate {
		t.all.add(&a.requests.all)
		if a.toFault != nil {
			t.k += max(1, len(a.faulted))
		}
	}
	return stats.Anytime(float64(t.k), float64(t.all.least(j.faces)), 0.05)
}

// A run is not under control when more of its attempts than one in mostInvalid
// are invalid. A single one is never too many: of a plan of few lives one is
// always more than that share, however sound the host, so that no such plan
// could pass after a power cut or a runner that was killed, and going on with
// it could come to nothing.
const (
	mostInvalid = 5
	oneInvalid  = 1
)

// decide gives the verdict and the sentence for it. A fault that the intact
// part of the ledger holds fails the plan, whatever else is wrong; to pass,
// everything has to be there.
func (j *judging) decide(s *ledgerSummary, v *Verdict) (verdict, reason string) {
	for _, state := range j.states {
		if state.State == stateFault && state.Role != RoleBaseline {
			return Fail, told(state)
		}
	}
	switch {
	case j.damage != "":
		return Inconclusive, "the ledger is damaged: " + j.damage
	case !s.Closed:
		return Inconclusive, "invalid(harness): the ledger has no closing record, the run did not end by itself"
	case len(j.states) == 0:
		return Inconclusive, "no server was started"
	}
	if why := j.lacking(); why != "" {
		return Inconclusive, why
	}
	if why := j.outOfControl(); why != "" {
		return Inconclusive, why
	}
	if why := j.blind(); why != "" {
		return Inconclusive, why
	}
	for _, f := range j.faces.infos {
		if why := j.unseen(f); why != "" && j.plan.Faces[f.Name] == string(detect.Gate) {
			return Inconclusive, fmt.Sprintf("the plan gates on %s, and nothing could have shown it: %s", f.Name, why)
		}
	}
	b, p := v.Bounds, j.plan
	if p.ReportOnly {
		return Inconclusive, fmt.Sprintf("report only: 0 faults in %s, and the plan names no rate to exclude", amount(p.Primary, b.PrimaryN))
	}
	if !(b.PrimaryUpper <= p.P0) {
		return Inconclusive, fmt.Sprintf("no fault seen, but the bound at %s is %.6f > p0 %g, needs %s%s",
			amount(p.Primary, b.PrimaryN), b.PrimaryUpper, p.P0, amount(p.Primary, p.required()), j.uncounted())
	}
	return Pass, fmt.Sprintf("0 faults in %s: the rate is at most %.6f per %s at %.6g %% confidence, the plan asks for %g%s",
		amount(p.Primary, b.PrimaryN), b.PrimaryUpper, unitOf(p.Primary), 100*p.Confidence, p.P0, j.uncounted())
}

// uncounted names what was seen and decides nothing, since the plan only reports
// it: whoever reads that there was no fault must read this too. "" if nothing.
func (j *judging) uncounted() string {
	var list []string
	for _, face := range slices.Sorted(maps.Keys(j.only)) {
		list = append(list, fmt.Sprintf("%d of %s", j.only[face], face))
	}
	if len(list) == 0 {
		return ""
	}
	return "; not counted, for the plan only reports them: " + strings.Join(list, ", ")
}

// outOfControl says that too many lives were invalid, "" if not. Each role is
// looked at by itself: lives of another one prove nothing about these.
func (j *judging) outOfControl() string {
	for _, role := range []string{RoleCandidate, RoleControl, RoleBaseline} {
		if n, all := j.tried[role].Invalid, j.tried[role].attempts(); n > oneInvalid && n*mostInvalid > all {
			return fmt.Sprintf("%d of %d lives were invalid (%s), where one may be, and of more than one at most one in %d: the conditions were not under control",
				n, all, role, mostInvalid)
		}
	}
	return ""
}

// blind names a face that gates and that no request of the lives that count
// could have shown, and says so if no face gates at all; "" if neither.
func (j *judging) blind() string {
	if !j.faces.canFail() {
		return "no face of fault gates: nothing could have failed this run"
	}
	t := j.groups[RoleCandidate].counted
	for i, f := range j.faces.infos {
		if j.faces.gating.has(i) && t.all.of(j.faces, i) == 0 {
			return fmt.Sprintf("the plan gates on %s, and no request could have shown it", f.Name)
		}
	}
	return ""
}

// told is the sentence for a state.
func told(s ArmState) string {
	reason := s.Reason
	if s.Detail != "" {
		reason += ": " + s.Detail
	}
	if s.OutOfRegime {
		reason += " (out of regime)"
	}
	return reason
}

// lacking says which lives of the package are no evidence, though the plan asks
// for them; "" if none.
func (j *judging) lacking() string {
	want, got := 0, 0
	var last *ArmState
	for _, l := range slices.SortedFunc(maps.Values(j.lives), func(a, b PlannedLife) int { return a.Index - b.Index }) {
		if l.Role == RoleBaseline {
			continue
		}
		want++
		switch s, lived := j.done[lifeKey{l.Arm, l.Life}]; {
		case lived && s.State == stateClean:
			got++
		case lived:
			last = &s
		}
	}
	switch {
	case got == want:
		return ""
	case last == nil:
		return fmt.Sprintf("only %d of %d lives were lived", got, want)
	case want == 1:
		return told(*last)
	}
	return fmt.Sprintf("only %d of %d lives are evidence; arm %d: %s", got, want, last.Arm, told(*last))
}

// required is how much of the primary unit p0 needs, without a fault.
func (p *Plan) required() float64 {
	alpha := 1 - p.Confidence
	if p.Primary == PrimaryHour {
		return stats.PoissonUpper(0, alpha) / p.P0
	}
	return float64(stats.RequiredTrials(0, p.P0, alpha))
}

func unitOf(primary string) string {
	if primary == PrimaryArm {
		return "server life"
	}
	return primary
}

// amount says how much of a unit there was.
func amount(primary string, n float64) string {
	switch primary {
	case PrimaryHour:
		if n < 1 {
			return fmt.Sprintf("%.3g hours of load", n)
		}
		return fmt.Sprintf("%.2f hours of load", n)
	case PrimaryArm:
		return fmt.Sprintf("%.0f server lives", n)
	}
	return fmt.Sprintf("%.0f requests", n)
}

// fisher compares candidate and control by their faulted lives.
func (j *judging) fisher() *Fisher {
	a, b := j.groups[RoleCandidate].counted, j.groups[RoleControl].counted
	if a.lives == 0 || b.lives == 0 {
		return nil
	}
	p := stats.FisherExact(a.faulted, a.lives, b.faulted, b.lives)
	return &Fisher{
		CandidateFaults: a.faulted, CandidateLives: a.lives, ControlFaults: b.faulted, ControlLives: b.lives,
		TwoSided: p.TwoSided, Less: p.Less, Greater: p.Greater,
	}
}

// loadTime is the time under load of the life that had most of it.
func loadTime(us int64) time.Duration {
	return (time.Duration(us) * time.Microsecond).Round(time.Second)
}

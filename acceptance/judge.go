package acceptance

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"
)

// Names in an evidence folder.
const (
	PlanName       = "plan.yaml"     // the plan's file, byte for byte
	ResolvedName   = "plan.json"     // the resolved plan; its SHA-256 is plan_sha256
	ServerLogName  = "server.log"    // output of the server
	NeighbourLog   = "neighbour.log" // standard error of the neighbour
	NeighbourRows  = "neighbour.jsonl"
	SamplesName    = "samples.jsonl"
	HostBeforeName = "host-before.json"
	HostAfterName  = "host-after.json"
	VerdictName    = "verdict.json"
	FaultsDir      = "faults" // raw bodies of the answers that had a fault
)

// JudgeDir judges the run in an evidence folder, from its plan and ledger
// alone: nothing else in the folder and nothing of this host matters, and the
// same bytes always give the same verdict. A ledger that is incomplete, torn
// or changed gives an inconclusive verdict, unless what is intact of it holds a
// fault. The error is for a folder without a readable run.
func JudgeDir(dir string) (*Verdict, error) {
	var parts [3][]byte
	for i, name := range []string{PlanName, ResolvedName, LedgerName} {
		var err error
		if parts[i], err = readInput(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("judge %s: it is not the evidence of a run: %w", dir, err)
		}
	}
	v, err := judge(parts[0], parts[1], parts[2])
	if err != nil {
		return nil, fmt.Errorf("judge %s: %w", dir, err)
	}
	return v, nil
}

// run is what a ledger tells.
type run struct {
	open          openRecord
	arms          []*arm
	before, after *HostFacts
}

// judge is the whole verdict function.
func judge(planFile, resolved, raw []byte) (*Verdict, error) {
	p, err := parsePlan(planFile)
	if err != nil {
		return nil, err
	}
	content, err := readLedger(raw)
	if err != nil {
		return nil, err
	}
	r, damage := replay(p, content)
	v := &Verdict{
		Plan: p.Name, PlanFileSHA256: p.FileSHA256(), PlanSHA256: sumOf(resolved), Package: r.open.Package,
		PackageDigest: r.open.PackageDigest, Primary: p.Primary, Notes: append([]string{}, content.Notes...),
		ArmStates: []ArmState{}, Faults: []Fault{}, NotTested: []string{},
	}
	if damage == "" && len(content.Lines) > 0 {
		damage = r.foreign(v)
	}
	for _, a := range r.arms {
		s := a.classify()
		v.ArmStates = append(v.ArmStates, s)
		v.Faults = append(v.Faults, a.faults()...)
		v.Requests += a.ended()
		v.Arms.add(s.State)
	}
	tally := newTally(p, r.arms, v.ArmStates)
	v.Bounds, v.Exposure = tally.bounds(), exposure(r, tally)
	v.NotTested = notTested(p, r, tally)
	v.Verdict, v.Reason = decide(p, r, v, content, damage, tally)
	return v, nil
}

// replay sorts the records into arms. It stops at the first that makes no
// sense, and says so.
func replay(p *Plan, c *ledgerContent) (*run, string) {
	r := &run{}
	for i, l := range c.Lines {
		var err error
		switch {
		case i == 0:
			err = json.Unmarshal(l.Data, &r.open)
			if err == nil && (l.Kind != recordOpen || r.open.Schema != ledgerSchema) {
				err = fmt.Errorf("record 1: not an opening record of schema %d", ledgerSchema)
			}
		case l.Kind == recordHost:
			var h *hostRecord
			if h, err = decode[hostRecord](l); err == nil && h.When == "before" {
				r.before = &h.Host
			} else if err == nil {
				r.after = &h.Host
			}
		case l.Kind == recordStart:
			var s *startRecord
			if s, err = decode[startRecord](l); err == nil {
				r.arms = append(r.arms, &arm{plan: p, start: *s})
			}
		case len(r.arms) == 0:
			err = fmt.Errorf("record %d: %s before any start", l.Seq, l.Kind)
		default:
			err = r.arms[len(r.arms)-1].take(l)
		}
		if err != nil {
			return r, err.Error()
		}
	}
	return r, c.Damage
}

// ledgerSchema is the version of the records.
const ledgerSchema = 1

// foreign tells whether the plan beside the ledger is another than it names.
func (r *run) foreign(v *Verdict) string {
	switch {
	case r.open.PlanFileSHA256 != v.PlanFileSHA256:
		return PlanName + " is not the plan of this ledger"
	case r.open.PlanSHA256 != v.PlanSHA256:
		return ResolvedName + " is not the resolved plan of this ledger"
	}
	return ""
}

func (c *ArmCounts) add(state string) {
	switch state {
	case stateClean:
		c.Clean++
	case stateFault:
		c.Fault++
	case stateInvalid:
		c.Invalid++
	case stateOutOfRegime:
		c.OutOfRegime++
	}
}

// decide gives the verdict and the sentence for it. A fault that the intact
// part of the ledger holds fails the plan, whatever else is wrong.
func decide(p *Plan, r *run, v *Verdict, c *ledgerContent, damage string, t *tally) (verdict, reason string) {
	for _, s := range v.ArmStates {
		if s.State == stateFault {
			reason := s.Reason + ": " + s.Detail
			if s.OutOfRegime {
				reason += " (out of regime)"
			}
			return Fail, reason
		}
	}
	switch {
	case damage != "":
		return Inconclusive, "the ledger is damaged: " + damage
	case !c.Closed:
		return Inconclusive, "invalid(harness): the ledger has no closing record, the run did not end by itself"
	case len(r.arms) == 0:
		return Inconclusive, "no server was started"
	}
	for _, s := range v.ArmStates {
		if s.State != stateClean {
			return Inconclusive, s.Reason + ": " + s.Detail
		}
	}
	if why := short(p, v, t); why != "" {
		return Inconclusive, why
	}
	return Pass, fmt.Sprintf("0 faults in %d requests: the rate is at most %.6f per request at %g %% confidence, the plan asks for %g",
		t.n, v.Bounds.PrimaryUpper, 100*p.Confidence, p.P0)
}

// short says what a clean run lacks for a pass.
func short(p *Plan, v *Verdict, t *tally) string {
	if n := p.Load.Requests; n > 0 && t.ended < n {
		return fmt.Sprintf("only %d of %d requests were made", t.ended, n)
	}
	if want := time.Duration(p.Load.Duration).Seconds(); want > 0 && !(v.Exposure.LoadSeconds >= want) {
		return fmt.Sprintf("the load lasted %.0f of %.0f seconds", v.Exposure.LoadSeconds, want)
	}
	if !(v.Bounds.PrimaryUpper <= p.P0) {
		return fmt.Sprintf("no fault seen, but the bound at %d requests is %.6f > p0 %g, needs %d requests",
			t.n, v.Bounds.PrimaryUpper, p.P0, p.RequiredRequests())
	}
	return ""
}

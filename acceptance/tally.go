package acceptance

import (
	"fmt"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// A tally counts the evidence: arms that are clean, and arms with a fault in
// the regime. The others say nothing about the rate.
type tally struct {
	plan       *Plan
	counted    []*arm
	armFaults  int
	ended      int            // requests that ended by themselves
	faulted    int            // of those, with a fault of their own
	wire       int            // of those, whose tokens' log-probabilities were seen
	n          int            // what the blindest of the gating faces saw
	bins       map[int]*count // by length of prompt
	neverUsed  count
	bySlot     map[int]int // faulted requests
	notSeen    int         // answers without the log-probabilities that were asked for
	lifeFaults int         // faulted events without a request
}

type count struct{ n, faulted int }

func newTally(p *Plan, arms []*arm, states []ArmState) *tally {
	t := &tally{plan: p, bins: map[int]*count{}, bySlot: map[int]int{}}
	for _, length := range p.Load.PromptTokens {
		t.bins[length] = &count{}
	}
	for i, a := range arms {
		s := states[i]
		if s.State != stateClean && (s.State != stateFault || s.OutOfRegime) {
			continue
		}
		t.counted = append(t.counted, a)
		if s.State == stateFault {
			t.armFaults++
		}
		t.add(a)
	}
	t.n = min(t.ended, t.wire)
	return t
}

// add counts the requests of one arm.
func (t *tally) add(a *arm) {
	blamed := map[int]bool{}
	for _, f := range a.faults() {
		if f.Request == nil {
			t.lifeFaults++
			continue
		}
		blamed[*f.Request] = true
		if f.Slot != nil {
			t.bySlot[*f.Slot]++
		}
	}
	first := map[int]requestRecord{} // on each slot
	for _, r := range a.requests {
		if r.Outcome == outcomeCensored {
			continue
		}
		t.ended++
		bad, seen := blamed[r.ID], r.Observed > 0
		if bad {
			t.faulted++
		}
		if r.ProbsAsked && r.Outcome == outcomeAnswered && r.Observed == 0 && r.Predicted > 0 {
			t.notSeen++
		}
		if seen || bad {
			t.wire++
			if b := t.bins[r.PromptTarget]; b != nil {
				b.n++
				if bad {
					b.faulted++
				}
			}
		}
		if other, known := first[r.Slot]; r.Slot >= 0 && (!known || r.StartUS < other.StartUS) {
			first[r.Slot] = r
		}
	}
	for _, r := range first {
		if seen := r.Observed > 0; seen || blamed[r.ID] {
			t.neverUsed.n++
		}
		if blamed[r.ID] {
			t.neverUsed.faulted++
		}
	}
}

// bounds computes every bound from the counts.
func (t *tally) bounds() Bounds {
	const alpha = 0.05
	n, lives := float64(t.n), float64(len(t.counted))
	// A fault without a request of its own (an abort, a crash) is at least one
	// faulted request.
	k := float64(t.faulted + t.lifeFaults)
	b := Bounds{
		ArmUpper95:           upperBound(float64(t.armFaults), lives, alpha),
		RequestUpper95:       upperBound(k, n, alpha),
		NeverUsedSlotUpper95: upperBound(float64(t.neverUsed.faulted), float64(t.neverUsed.n), alpha),
		PrimaryUpper:         upperBound(k, n, 1-t.plan.Confidence),
		Confidence:           t.plan.Confidence,
		Hold:                 "each",
	}
	if lives > 0 {
		deff := n / effective(n, n/lives, 0.1)
		b.RequestUpper95ICC01 = upperBound(k/deff, n/deff, alpha)
	} else {
		b.RequestUpper95ICC01 = 1
	}
	for _, bin := range t.bins {
		b.WorstBinUpper95 = max(b.WorstBinUpper95, upperBound(float64(bin.faulted), float64(bin.n), alpha))
	}
	return b
}

// exposure says what the load was, over all arms.
func exposure(r *run, t *tally) Exposure {
	e := Exposure{
		EngineVersion: r.open.EngineVersion, LaunchesPerSlot: map[int]int{}, Warnings: map[string]int{},
		FaultedBySlot: t.bySlot, NotObserved: t.notSeen, HostBefore: r.before, HostAfter: r.after,
	}
	var all shape
	var latency []float64
	ended := 0
	for _, a := range r.arms {
		ended += a.ended()
		e.Censored += len(a.requests) - a.ended()
		for _, q := range a.requests {
			e.TokensPredicted += q.Predicted
			e.TokensObserved += q.Observed
			for _, w := range q.Warnings {
				e.Warnings[w]++
			}
			if q.Outcome == outcomeAnswered {
				latency = append(latency, float64(q.EndUS-q.IntendedUS)/1000)
			}
		}
		if a.end == nil {
			continue
		}
		s := a.end.Shape
		for slot, n := range s.Launches {
			e.LaunchesPerSlot[slot] += n
		}
		e.Selected.LRU += s.LRU
		e.Selected.LCP += s.LCP
		e.Selected.ByID += s.ByID
		e.NeverUsedSlots += s.NeverUsed
		all.BusyUS += s.BusyUS
		all.AllSlotsBusy += s.AllSlotsBusy
		e.LoadSeconds += time.Duration(a.end.LoadUS * 1000).Seconds()
		e.addNeighbour(a)
	}
	e.AllSlotsBusyShare = all.busyShare()
	if e.LoadSeconds > 0 {
		e.RequestsPerSecond = float64(ended) / e.LoadSeconds
	}
	e.LatencyMS = latencies(latency)
	e.Faces = t.faces()
	return e
}

func (e *Exposure) addNeighbour(a *arm) {
	if a.plan.Neighbour == nil {
		return
	}
	if e.Neighbour == nil {
		e.Neighbour = &NeighbourExposure{}
	}
	runs, tokens, failed := a.neighbourWork()
	e.Neighbour.Runs += runs
	e.Neighbour.Tokens += tokens
	e.Neighbour.FailedRuns += failed
	if n := a.end.Neighbour; n != nil {
		e.Neighbour.Died = n.Died
		if a.end.LoadUS > 0 {
			e.Neighbour.AliveShare = min(1, float64(n.AliveUS)/float64(a.end.LoadUS))
		}
	}
}

// faces tells, for each gating face, how many requests it could see.
func (t *tally) faces() []FaceExposure {
	var list []FaceExposure
	add := func(face string, n int) {
		k := 0
		for _, a := range t.counted {
			for _, f := range a.faults() {
				if f.Face == face {
					k++
				}
			}
		}
		list = append(list, FaceExposure{face, n, upperBound(float64(k), float64(n), 0.05)})
	}
	add(FaceNaNWire, t.wire)
	for _, face := range []string{FaceNaN, FaceUTF8, FaceJSON, FaceFormat, FaceStatus, FaceTransport, FaceHang, FaceLeak, FaceCrash, FaceDevice} {
		add(face, t.ended)
	}
	probes := 0
	for _, a := range t.counted {
		if a.probe != nil && a.probe.Face != engine.FaceNotObserved {
			probes++
		}
	}
	add(FaceCorruption, probes)
	return list
}

func latencies(ms []float64) Latency {
	if len(ms) == 0 {
		return Latency{}
	}
	slices.Sort(ms)
	at := func(q float64) float64 { return ms[min(len(ms)-1, int(q*float64(len(ms))))] }
	return Latency{P50: at(0.5), P99: at(0.99), Max: ms[len(ms)-1]}
}

// notTested says what a reader must not take from the verdict.
func notTested(p *Plan, r *run, t *tally) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	add("lives: %d: one server start says little about the rate of faults per start", len(r.arms))
	load := 0.0
	for _, a := range r.arms {
		if a.end != nil {
			load += float64(a.end.LoadUS) / 1e6
		}
	}
	add("uptime beyond %s", (time.Duration(load) * time.Second).String())
	if p.Neighbour == nil {
		add("neighbour: the plan has none")
	} else {
		add("neighbours other than %s", p.Neighbour.Kind)
	}
	if share := *p.Load.LogprobsShare; share < 1 {
		add("log-probabilities on %g of the requests: the others cannot show a NaN on the wire", 1-share)
	}
	if t.notSeen > 0 {
		add("log-probabilities of %d answers that came without", t.notSeen)
	}
	guarded := false
	for _, a := range r.arms {
		_, seen := a.logged(engine.LogNaN)
		guarded = guarded || seen
	}
	if !guarded {
		add("the NaN guard: the log had no line of it, which an engine without a guard has in common with a clean one")
	}
	if !*p.FinalProbe {
		add("identical requests on a quiet server (final_probe is off)")
	}
	if p.Gates.GTTUsedGiB == nil {
		add("a band of GTT in use: the plan has no gate on it")
	}
	add("queue evictions and the kernel log: not read")
	add("prompts of more than %d tokens and answers of more than %d", slices.Max(p.Load.PromptTokens), slices.Max(p.Load.NPredict))
	add("reuse of cached prompts, streaming, chat templates, temperatures above 0")
	return list
}

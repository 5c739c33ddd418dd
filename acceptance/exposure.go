package acceptance

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/engine"
)

// exposure says what the load of these lives was.
func (t *tally) exposure() Exposure {
	e := Exposure{
		LoadSeconds: time.Duration(t.loadUS * 1000).Seconds(), LaunchesPerSlot: maps.Clone(t.shape.Launches),
		AllSlotsBusyShare: t.shape.busyShare(), Selected: Selected{t.shape.LRU, t.shape.LCP, t.shape.ByID},
		NeverUsedSlots: t.shape.NeverUsed, Neighbour: t.beside, Censored: t.censored, NotObserved: t.notSeen,
		TokensPredicted: t.predicted, TokensObserved: t.observed, LatencyMS: t.latencies(),
		FaultedBySlot: maps.Clone(t.bySlot), Warnings: maps.Clone(t.warned), ByArm: []ArmExposure{},
		EvictedMS: t.host.evictedMS, PeakGTTGiB: t.host.peak, MinMemAvailableGiB: t.host.mem, MaxTempC: t.host.temp,
	}
	if e.LoadSeconds > 0 {
		e.RequestsPerSecond = float64(t.ended) / e.LoadSeconds
	}
	return e
}

func (t *tally) latencies() Latency {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	return Latency{P50: ms(t.latency.Quantile(0.5)), P99: ms(t.latency.Quantile(0.99)), Max: ms(t.latency.Max())}
}

// addNeighbour adds what the neighbour of one life did.
func (t *tally) addNeighbour(a *arm) {
	plan := a.plan.Neighbour
	if plan == nil {
		return
	}
	n := t.beside
	if n == nil {
		n = &NeighbourExposure{Kind: plan.Kind, AliveShare: 1, Findings: []string{}}
		t.beside = n
	}
	if n.Kind != plan.Kind {
		n.Kind = "several"
	}
	w := a.end.beside()
	n.Runs += w.Runs
	n.FailedRuns += w.Failed
	n.Units += w.Units
	if unit := cmp.Or(w.Unit, a.beside.unit); unit != cmp.Or(n.Unit, unit) {
		n.Unit = "units"
	} else {
		n.Unit = unit
	}
	if n.Unit == "tokens" || n.Unit == "" {
		n.Tokens = n.Units
	}
	for _, f := range a.beside.findings {
		if len(n.Findings) < mostNeighbourFindings && !slices.Contains(n.Findings, f) {
			n.Findings = append(n.Findings, f)
		}
	}
	n.Died = cmp.Or(n.Died, w.Died)
	if a.end.Neighbour != nil && a.end.LoadUS > 0 {
		n.AliveShare = min(n.AliveShare, float64(w.AliveUS)/float64(a.end.LoadUS))
	}
}

// guardLines counts the lines of the engine's guard in the log of a life.
func guardLines(e *endRecord) int { return e.LogLines[engine.LogNaN] }

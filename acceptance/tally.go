package acceptance

import (
	"slices"

	"github.com/1bit-systems/pkg/acceptance/load"
	"github.com/1bit-systems/pkg/acceptance/stats"
)

// A tally adds up the lives of one condition, or of all that count.
type tally struct {
	lives   int // that are evidence
	seeing  int // of those, in which every request's face that gates could have shown, or one did
	faulted int // of those, with a fault
	k       int // faulted requests; a fault without a request of its own is at least one
	loadUS  int64
	seenUS  int64 // of it, in lives that were seeing, while at least one slot was busy

	all       chances
	bins      map[int]*chances
	slots     map[int]*chances
	neverUsed chances
	bySlot    map[int]int // faulted requests
	prompt    int         // longest, in tokens
	answer    int
	probes    int   // identical requests after a load
	memories  int   // lives whose memory was watched
	kernels   int   // lives beside which the kernel's log was read
	longestUS int64 // load of one life

	ended, answered, ok, censored, notSeen int
	predicted, observed                    int
	httpErrors, nan, guardLines, restarts  int
	latency                                load.Histogram
	warned                                 map[string]int
	shape                                  shape
	slotsUsed                              int // in the life with the fewest
	beside                                 *NeighbourExposure
	host                                   hostTally
}

// hostTally is what the host was like over several lives.
type hostTally struct {
	evictedMS           *int64
	before, after, peak *float64 // GTT, GiB
	mem, temp           *float64
	server              *float64 // MiB
}

func newTally() *tally {
	return &tally{
		bins: map[int]*chances{}, slots: map[int]*chances{}, bySlot: map[int]int{}, warned: map[string]int{},
		shape: shape{Launches: map[int]int{}},
	}
}

// add takes one life that has ended, or never will.
func (t *tally) add(a *arm, s ArmState) {
	q := &a.requests
	seeing := s.evidence() && (s.State == stateFault || a.seeing())
	if seeing {
		t.seeing++
		if a.end != nil {
			t.seenUS += min(a.end.LoadUS, a.end.Shape.BusyUS)
		}
	}
	if s.evidence() {
		t.lives++
		if s.State == stateFault {
			t.faulted++
			t.k += s.Faults
		}
	}
	t.all.add(&q.all)
	addStrata(t.bins, q.bins)
	addStrata(t.slots, q.slots)
	for slot, n := range a.bySlot {
		t.bySlot[slot] += n
	}
	t.ended += q.ended
	t.answered += q.answered
	t.prompt, t.answer = max(t.prompt, q.prompt), max(t.answer, q.answer)
	t.ok += q.ok
	t.censored += q.censored
	t.notSeen += q.notSeen
	t.predicted += q.predicted
	t.observed += q.observed
	t.httpErrors += q.httpErrors
	t.nan += q.nan
	t.latency.Merge(&q.latency)
	for what, n := range q.warned {
		t.warned[what] += n
	}
	t.probes += a.probes
	t.restarts += a.restarts()
	t.host.load(a.load)
	if a.load != nil && a.load.KernelLog == "" {
		t.kernels++
	}
	if a.end != nil {
		t.addEnd(a)
	}
}

// addEnd takes what is only known at the end of a life.
func (t *tally) addEnd(a *arm) {
	e, s := a.end, a.end.Shape
	t.loadUS += e.LoadUS
	t.longestUS = max(t.longestUS, e.LoadUS)
	t.guardLines += guardLines(e)
	for slot, n := range s.Launches {
		t.shape.Launches[slot] += n
	}
	if used := len(s.Launches); t.slotsUsed == 0 || used < t.slotsUsed {
		t.slotsUsed = used
	}
	t.shape.LRU += s.LRU
	t.shape.LCP += s.LCP
	t.shape.ByID += s.ByID
	t.shape.NeverUsed += s.NeverUsed
	t.shape.BusyUS += s.BusyUS
	t.shape.AllSlotsBusy += s.AllSlotsBusy
	for slot, task := range a.requests.first {
		if slices.Contains(s.FirstSlots, slot) {
			t.neverUsed.one(task.sight, task.faulted)
		}
	}
	if e.ServerMiBPerReq != nil {
		t.memories++
	}
	t.host.end(e)
	t.addNeighbour(a)
}

// restarts counts the ends of the server that nobody asked for.
func (a *arm) restarts() int {
	if a.exit != nil {
		return 1
	}
	return 0
}

func addStrata(to, from map[int]*chances) {
	for key, c := range from {
		stratum(to, key).add(c)
	}
}

func (h *hostTally) load(l *loadRecord) {
	if l == nil {
		return
	}
	if h.before == nil {
		h.before = l.GTTUsedGiB
	}
	h.mem = least(h.mem, l.MemAvailableGiB)
}

func (h *hostTally) end(e *endRecord) {
	if e.EvictedMS != nil {
		sum := *e.EvictedMS
		if h.evictedMS != nil {
			sum += *h.evictedMS
		}
		h.evictedMS = &sum
	}
	if e.GTTAfterGiB != nil {
		h.after = e.GTTAfterGiB
	}
	h.peak = most(h.peak, e.PeakGTTGiB)
	h.mem = least(h.mem, e.MinMemGiB)
	h.temp = most(h.temp, e.MaxTempC)
	h.server = most(h.server, e.ServerMiB)
}

func least(a, b *float64) *float64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

func most(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// usPerHour and usPerSecond turn the ledger's time into a human's.
const (
	usPerSecond = 1e6
	usPerHour   = 3600 * usPerSecond
)

// hours of load, in which the server had something to do. A life's clock counts µs, so no load is less than one of them.
func (t *tally) hours() float64 { return float64(max(1, t.seenUS)) / usPerHour }

// seeing tells whether every face that gates on requests could have shown on one
// of this life's. A life that could not show a fault says nothing about its
// rate, however long it was. Without such a face the server's own end is what
// is looked for, and every life would have shown that.
func (a *arm) seeing() bool {
	return a.faces.gating == 0 || a.requests.all.least(a.faces) > 0
}

// bounds computes every bound from the counts.
func (t *tally) bounds(p *Plan, faces *faceTable) Bounds {
	const alpha = 0.05
	n, lives := float64(t.all.least(faces)), float64(t.seeing)
	k, faulted := float64(t.k), float64(t.faulted)
	b := Bounds{
		ArmUpper95:            stats.UpperBound(faulted, lives, alpha),
		RequestUpper95:        stats.UpperBound(k, n, alpha),
		HourUpper95:           stats.RateUpper(t.faulted, t.hours(), alpha),
		NeverUsedSlotUpper95:  t.neverUsed.upper(faces, alpha),
		ArmUpper95Joint:       stats.UpperBound(faulted, lives, alpha/2),
		RequestUpper95Joint:   stats.UpperBound(k, n, alpha/2),
		AnytimeRequestUpper95: stats.Anytime(k, n, alpha),
		Confidence:            p.Confidence,
		Hold:                  "each",
		SlotUpper95:           map[int]float64{},
		BinUpper95:            map[int]float64{},
		Clustering:            Clustering{RequestsPerLife: n / float64(max(1, t.lives))},
	}
	clustered := func(icc float64, to *float64) float64 {
		*to = stats.Effective(n, b.Clustering.RequestsPerLife, icc)
		if !(n > 0) {
			return 1
		}
		return stats.UpperBound(k**to/n, *to, alpha)
	}
	b.RequestUpper95ICC01 = clustered(0.1, &b.Clustering.EffectiveN01)
	b.RequestUpper95ICC05 = clustered(0.5, &b.Clustering.EffectiveN05)
	for slot, c := range t.slots {
		b.SlotUpper95[slot] = c.upper(faces, alpha)
	}
	// Sentinels of another length are no part of the load's lengths.
	bins := map[int]*chances{}
	for _, length := range p.Load.PromptTokens {
		bins[length] = &chances{}
		if c := t.bins[length]; c != nil {
			bins[length] = c
		}
	}
	for length, c := range bins {
		b.BinUpper95[length] = c.upper(faces, alpha)
		b.WorstBinUpper95 = max(b.WorstBinUpper95, b.BinUpper95[length])
		b.WorstBinUpper95Joint = max(b.WorstBinUpper95Joint, c.upper(faces, alpha/float64(len(bins))))
	}
	switch p.Primary {
	case PrimaryArm:
		b.PrimaryN, b.PrimaryUpper = lives, stats.UpperBound(faulted, lives, 1-p.Confidence)
	case PrimaryHour:
		b.PrimaryN, b.PrimaryUpper = float64(t.seenUS)/usPerHour, stats.RateUpper(t.faulted, t.hours(), 1-p.Confidence)
	default:
		b.PrimaryN, b.PrimaryUpper = n, stats.UpperBound(k, n, 1-p.Confidence)
	}
	return b
}

// upper bounds the rate of a part of the requests.
func (c *chances) upper(faces *faceTable, alpha float64) float64 {
	return stats.UpperBound(float64(c.faulted), float64(c.least(faces)), alpha)
}

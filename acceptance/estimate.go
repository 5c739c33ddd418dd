package acceptance

import (
	"math"
	"time"

	"github.com/1bit-systems/pkg/acceptance/stats"
)

// EstimateInput is what is known of model and host before a run. A zero value
// is not known, and assumed from the size of the model.
type EstimateInput struct {
	LoadTime        time.Duration // from the start of a server until it is ready
	TokensPerSecond float64       // generated, by all slots together
	ModelBytes      int64         // size of the model's file; 0: not known either
}

// An Estimate says what a plan will take and what it can show, before it is
// run. Its JSON is that of `1bit accept plan -o json`.
type Estimate struct {
	Plan           string         `json:"plan"`
	PlanFileSHA256 string         `json:"plan_file_sha256"`
	Arms           []EstimateArm  `json:"arms"`
	Lives          int            `json:"lives"`           // of all arms
	CandidateLives int            `json:"candidate_lives"` // those that count
	Attempts       int            `json:"attempts"`        // most lives, replaced ones included
	Requests       int            `json:"requests"`        // of the candidate lives that end by them
	LoadHours      float64        `json:"load_hours"`      // of the candidate lives that end by time
	MinSeconds     float64        `json:"min_seconds"`
	MaxSeconds     float64        `json:"max_seconds"`
	Assumed        []string       `json:"assumed"` // what the duration rests on
	Primary        string         `json:"primary"`
	P0             float64        `json:"p0"`
	RequiredN      float64        `json:"required_n"` // units of primary without a fault that p0 needs
	PlannedN       *float64       `json:"planned_n"`  // units that the plan makes; null: as many as fit into its time
	SeeAtP0        *float64       `json:"see_at_p0"`  // probability of at least one fault if the rate were p0
	CanPass        bool           `json:"can_pass"`
	Bounds         EstimateBounds `json:"bounds"` // if there is no fault
	CanShow        []string       `json:"can_show"`
	CannotShow     []string       `json:"cannot_show"`
	Notes          []string       `json:"notes"`
}

// An EstimateArm is one arm of an estimate.
type EstimateArm struct {
	Name         string  `json:"name"`
	Role         string  `json:"role"`
	Lives        int     `json:"lives"`
	Requests     int     `json:"requests"` // of one life; 0: until its time is over
	LoadSeconds  float64 `json:"load_seconds"`
	Parallel     int     `json:"parallel"`
	Neighbour    string  `json:"neighbour"` // kind
	PromptTokens []int   `json:"prompt_tokens"`
}

// EstimateBounds are the bounds of a run without a fault, at 95 % each. One
// that the plan gives no evidence for, or not a known one, is 1.
type EstimateBounds struct {
	ArmUpper95           float64 `json:"arm_upper_95"`
	RequestUpper95       float64 `json:"request_upper_95"`
	RequestUpper95ICC01  float64 `json:"request_upper_95_icc_0_1"`
	WorstBinUpper95      float64 `json:"worst_bin_upper_95"`
	NeverUsedSlotUpper95 float64 `json:"never_used_slot_upper_95"`
	HourUpper95          float64 `json:"hour_upper_95"`
}

// Estimate says what the plan will take and what it can show.
func (p *Plan) Estimate(in EstimateInput) Estimate {
	e := Estimate{
		Plan: p.Name, PlanFileSHA256: p.FileSHA256(), Attempts: p.Attempts, CandidateLives: p.candidateLives(),
		Primary: p.Primary, P0: p.P0, RequiredN: p.RequiredN(), Notes: append([]string{}, p.Notes()...),
	}
	for i, a := range p.Arms {
		l := p.life(i, 1)
		row := EstimateArm{
			Name: a.Name, Role: a.Role, Lives: a.Lives, Requests: l.Load.Requests, Parallel: l.Server.Parallel,
			LoadSeconds: time.Duration(l.Load.Duration).Seconds(), Neighbour: l.neighbourKind(), PromptTokens: l.Load.PromptTokens,
		}
		e.Arms, e.Lives = append(e.Arms, row), e.Lives+a.Lives
		if a.Role == RoleBaseline && a.Package == "" {
			e.Notes = append(e.Notes, "arm "+a.Name+" runs the package that is given as baseline")
		}
	}
	e.Requests, _ = p.candidateRequests()
	e.LoadHours, _ = p.loadHours()
	e.Bounds = p.boundsAtN()
	e.CanPass = !p.ReportOnly && len(p.cannotPass()) == 0
	if n, known := p.plannedN(); known {
		e.PlannedN = &n
		see := stats.Seen(int(n), p.P0)
		if p.Primary == PrimaryHour {
			see = -math.Expm1(-n * p.P0)
		}
		if !p.ReportOnly {
			e.SeeAtP0 = &see
		}
	}
	pace := in.pace()
	least, most := p.duration(pace)
	e.MinSeconds, e.MaxSeconds = math.Round(10*least)/10, math.Round(10*most)/10
	e.Assumed = pace.assumed
	e.CanShow, e.CannotShow = p.canShow(e), p.cannotShow(e)
	return e
}

// neighbourKind is the kind of the life's neighbour.
func (l PlannedLife) neighbourKind() string {
	if l.Neighbour == nil {
		return "none"
	}
	return l.Neighbour.Kind
}

// boundsAtN are the bounds that the plan's candidate lives give if none of them
// has a fault.
func (p *Plan) boundsAtN() EstimateBounds {
	const alpha = 0.05
	b := EstimateBounds{RequestUpper95: 1, RequestUpper95ICC01: 1, WorstBinUpper95: 1, NeverUsedSlotUpper95: 1, HourUpper95: 1}
	lives := p.candidateLives()
	b.ArmUpper95 = stats.UpperBound(0, float64(p.seeingLives()), alpha)
	if requests, known := p.candidateRequests(); known {
		n := math.Floor(float64(requests) * p.gatingShare())
		b.RequestUpper95 = stats.UpperBound(0, n, alpha)
		b.RequestUpper95ICC01 = stats.UpperBound(0, stats.Effective(n, n/float64(lives), 0.1), alpha)
		b.WorstBinUpper95 = stats.UpperBound(0, p.leastBin(n), alpha)
	}
	if hours, known := p.loadHours(); known {
		b.HourUpper95 = min(1, stats.RateUpper(0, hours, alpha))
	}
	first := 0
	for i, a := range p.Arms {
		l := p.life(i, 1)
		slots := l.Server.Parallel // each has one first task
		if l.Load.Requests > 0 {
			slots = min(slots, l.Load.Requests)
		}
		if p.Sentinels.Every > 0 { // the quiet server's answers to them come first, one length a slot
			slots = max(0, slots-len(p.Sentinels.PromptTokens))
		}
		if a.Role == RoleCandidate && p.Load.API == APICompletion { // whose answers name their slot
			first += a.Lives * slots
		}
	}
	b.NeverUsedSlotUpper95 = stats.UpperBound(0, math.Floor(float64(first)*p.gatingShare()), alpha)
	return b
}

// leastBin is how many of n requests the prompt length gets that gets fewest.
func (p *Plan) leastBin(n float64) float64 {
	share, own := map[int]float64{}, 1.0
	if s := p.Sentinels; s.Every > 0 {
		own -= 1 / float64(s.Every)
		for _, length := range s.PromptTokens {
			share[length] += 1 / float64(s.Every*len(s.PromptTokens))
		}
	}
	for _, length := range p.Load.PromptTokens {
		share[length] += own / float64(len(p.Load.PromptTokens))
	}
	least := 1.0
	for _, length := range p.Load.PromptTokens { // sentinels of other lengths are no part of the load's
		least = min(least, share[length])
	}
	return math.Floor(n*least + 1e-9)
}

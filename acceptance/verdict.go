package acceptance

import "time"

// The three verdicts.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
)

// A Verdict is the judgement of one run: a function of its plan and its ledger
// alone. Its JSON is `1bit accept verdict -o json`.
//
// It speaks for one package, by its digest. A fail is for good: whoever moves a
// channel has to look at every run of that digest, those that were broken off
// too, and not at the best of them.
type Verdict struct {
	Verdict        string     `json:"verdict"` // Pass, Fail, Inconclusive
	Reason         string     `json:"reason"`
	Plan           string     `json:"plan"` // its name
	PlanFileSHA256 string     `json:"plan_file_sha256"`
	PlanSHA256     string     `json:"plan_sha256"` // of the resolved plan: with package, model and runner
	Package        string     `json:"package"`
	PackageDigest  string     `json:"package_digest"`
	Ledger         LedgerHead `json:"ledger"` // which run it was
	Arms           ArmCounts  `json:"arms"`   // lives of the package: candidate and control
	ArmStates      []ArmState `json:"arm_states"`
	Requests       int        `json:"requests"` // that ended by themselves, in those lives; censored ones are not counted
	Faults         []Fault    `json:"faults"`
	Primary        string     `json:"primary"`
	P0             float64    `json:"p0"`
	Rows           []ArmRow   `json:"rows"`   // one a condition of the plan, in the columns that reproduction reports use
	Table          []FaceRow  `json:"faces"`  // every face: what could be seen, what was, when first
	Fisher         *Fisher    `json:"fisher"` // candidate arms against control arms; nil without both
	Bounds         Bounds     `json:"bounds"`
	Exposure       Exposure   `json:"exposure"`
	NotTested      []string   `json:"not_tested"`
	Notes          []string   `json:"notes"`
}

// A LedgerHead names a ledger: two with the same head are the same run.
type LedgerHead struct {
	Records int       `json:"records"` // without the closing one
	Head    string    `json:"head"`    // sum of the last
	Closed  bool      `json:"closed"`  // the run ended by itself
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
	Resumed int       `json:"resumed"` // times that a runner went on with it
}

// A Fault is one thing that went wrong in a life. What one event shows in
// several faces is one fault, told by the most telling of them.
type Fault struct {
	Face    string    `json:"face"`
	Arm     int       `json:"arm"`
	Request *int      `json:"request"` // the first; null: none in particular
	Slot    *int      `json:"slot"`    // where it was seen, which need not be the cause
	At      time.Time `json:"at"`
	Detail  string    `json:"detail"`
	Excerpt string    `json:"excerpt,omitempty"`

	Gates         bool        `json:"gates"`                   // it fails the plan; else it is only told
	OutOfRegime   bool        `json:"out_of_regime,omitempty"` // outside of the rate; it fails the plan all the same
	Requests      int         `json:"faulted_requests"`
	BySlot        map[int]int `json:"by_slot"`        // those, by the slot that they were seen on
	AfterRequests *int        `json:"after_requests"` // that had ended in the life, the faulted one included
	Traces        []Trace     `json:"traces"`         // every face that showed it
	Tasks         []SlotTask  `json:"tasks"`          // what the slots did at the end of the life, as the log tells
}

// A Trace is one face of a fault.
type Trace struct {
	Face   string    `json:"face"`
	Seen   int       `json:"seen"`
	First  time.Time `json:"first"`
	Detail string    `json:"detail"`
}

// An ArmRow sums up the lives of one condition.
type ArmRow struct {
	Name           string    `json:"name"`
	Role           string    `json:"role"`
	Build          string    `json:"build"` // package and version line
	Parallel       int       `json:"parallel"`
	Neighbour      string    `json:"neighbour"` // kind and its proof of work
	Lives          int       `json:"lives"`     // that count
	Requests       int       `json:"requests"`  // that ended by themselves
	OK             int       `json:"ok"`
	NaN            int       `json:"nan"`         // replies with a NaN
	GuardLines     int       `json:"guard_lines"` // "NaN logits" in the log
	HTTPErrors     int       `json:"http_errors"`
	Restarts       int       `json:"restarts"`
	SlotsUsed      int       `json:"slots_used"`
	NeverUsedSlots int       `json:"never_used_slots"` // first tasks of a slot
	Selected       Selected  `json:"selected"`
	BusyShare      float64   `json:"all_slots_busy_share"`
	MedianMS       float64   `json:"median_ms"`
	GTTBeforeGiB   *float64  `json:"gtt_before_gib"`
	GTTAfterGiB    *float64  `json:"gtt_after_gib"`
	States         ArmCounts `json:"states"`
	ArmUpper95     float64   `json:"arm_upper_95"`
	RequestUpper95 float64   `json:"request_upper_95"`
}

// A FaceRow is one face of fault over the whole run.
type FaceRow struct {
	Face    string     `json:"face"`
	Setting string     `json:"setting"` // gate, report or off
	N       int        `json:"n"`       // requests, or lives, that it could have shown on, in arms that count
	Unit    string     `json:"unit"`    // request or arm
	Seen    int        `json:"seen"`    // in all arms
	Upper95 float64    `json:"upper_95"`
	First   *time.Time `json:"first"`
	Excerpt string     `json:"excerpt,omitempty"`
}

// Fisher compares two groups of arms by faulted lives, exactly.
type Fisher struct {
	CandidateFaults int     `json:"candidate_faults"`
	CandidateLives  int     `json:"candidate_lives"`
	ControlFaults   int     `json:"control_faults"`
	ControlLives    int     `json:"control_lives"`
	TwoSided        float64 `json:"two_sided"`
	Less            float64 `json:"less"`
	Greater         float64 `json:"greater"`
}

// ArmCounts counts arms by state.
type ArmCounts struct {
	Clean       int `json:"clean"`
	Fault       int `json:"fault"`
	Invalid     int `json:"invalid"`
	OutOfRegime int `json:"out_of_regime"`

	FaultOutOfRegime int `json:"fault_out_of_regime"` // of those with a fault
}

func (c *ArmCounts) add(s ArmState) {
	switch s.State {
	case stateClean:
		c.Clean++
	case stateFault:
		c.Fault++
		if s.OutOfRegime {
			c.FaultOutOfRegime++
		}
	case stateInvalid:
		c.Invalid++
	case stateOutOfRegime:
		c.OutOfRegime++
	}
}

func (c ArmCounts) attempts() int { return c.Clean + c.Fault + c.Invalid + c.OutOfRegime }

// Bounds are upper bounds on fault rates. Each holds by itself at its
// confidence; they do not all hold together, except those that say so. Only
// clean candidate arms and their faults in the regime count. A bound without
// evidence is 1; that of faults in an hour is then what a single µs would give.
type Bounds struct {
	ArmUpper95           float64 `json:"arm_upper_95"`             // per server life
	RequestUpper95       float64 `json:"request_upper_95"`         // per request, if requests of a life are independent
	RequestUpper95ICC01  float64 `json:"request_upper_95_icc_0_1"` // if they are correlated by 0.1
	WorstBinUpper95      float64 `json:"worst_bin_upper_95"`       // per request, in the prompt length least seen
	NeverUsedSlotUpper95 float64 `json:"never_used_slot_upper_95"` // per first task of a slot
	PrimaryUpper         float64 `json:"primary_upper"`            // of the primary unit, at the plan's confidence
	Confidence           float64 `json:"confidence"`
	Hold                 string  `json:"hold"` // "each"

	HourUpper95           float64         `json:"hour_upper_95"`            // faults per hour of load
	RequestUpper95ICC05   float64         `json:"request_upper_95_icc_0_5"` // if they are correlated by 0.5
	ArmUpper95Joint       float64         `json:"arm_upper_95_joint"`       // this and the next hold together at 95 %
	RequestUpper95Joint   float64         `json:"request_upper_95_joint"`
	AnytimeRequestUpper95 float64         `json:"anytime_request_upper_95"` // may be watched while it runs; never gates
	SlotUpper95           map[int]float64 `json:"slot_upper_95"`            // per request on each slot
	BinUpper95            map[int]float64 `json:"bin_upper_95"`             // per request of each prompt length
	WorstBinUpper95Joint  float64         `json:"worst_bin_upper_95_joint"` // such that those of all lengths hold together at 95 %
	PrimaryN              float64         `json:"primary_n"`                // lives, requests or hours that the primary bound rests on
	Clustering            Clustering      `json:"clustering"`
}

// Clustering is what it means that requests of one life are not independent.
type Clustering struct {
	RequestsPerLife float64 `json:"requests_per_life"`
	EffectiveN01    float64 `json:"effective_n_icc_0_1"` // independent requests that would say as much, if those of a life are correlated by 0.1
	EffectiveN05    float64 `json:"effective_n_icc_0_5"`
}

// Exposure says what the load really was: in the candidate lives that count,
// or in all of them if none does.
type Exposure struct {
	EngineVersion     string             `json:"engine_version"`
	LoadSeconds       float64            `json:"load_seconds"`
	RequestsPerSecond float64            `json:"requests_per_second"`
	LaunchesPerSlot   map[int]int        `json:"launches_per_slot"`
	AllSlotsBusyShare float64            `json:"all_slots_busy_share"` // of the time in which any was busy
	Selected          Selected           `json:"selected"`
	NeverUsedSlots    int                `json:"never_used_slots"` // first tasks of a slot
	Neighbour         *NeighbourExposure `json:"neighbour"`
	Faces             []FaceExposure     `json:"faces"`
	Censored          int                `json:"censored"`
	NotObserved       int                `json:"not_observed"` // answers that should have had log-probabilities
	TokensPredicted   int                `json:"tokens_predicted"`
	TokensObserved    int                `json:"tokens_observed"`
	LatencyMS         Latency            `json:"latency_ms"`
	FaultedBySlot     map[int]int        `json:"faulted_by_slot"`
	Warnings          map[string]int     `json:"warnings"` // shapes of text; they decide nothing
	HostBefore        *HostFacts         `json:"host_before"`
	HostAfter         *HostFacts         `json:"host_after"`

	EvictedMS          *int64        `json:"evicted_ms"` // of the servers' queues; null: no sensor
	PeakGTTGiB         *float64      `json:"peak_gtt_gib"`
	MinMemAvailableGiB *float64      `json:"min_mem_available_gib"`
	MaxTempC           *float64      `json:"max_temp_c"`
	ByArm              []ArmExposure `json:"by_arm"`
}

// An ArmExposure is the exposure of the lives of one condition.
type ArmExposure struct {
	Name              string             `json:"name"`
	Role              string             `json:"role"`
	Lives             int                `json:"lives"` // that count
	LoadSeconds       float64            `json:"load_seconds"`
	RequestsPerSecond float64            `json:"requests_per_second"`
	AllSlotsBusyShare float64            `json:"all_slots_busy_share"`
	LaunchesPerSlot   map[int]int        `json:"launches_per_slot"`
	Selected          Selected           `json:"selected"`
	NeverUsedSlots    int                `json:"never_used_slots"`
	Neighbour         *NeighbourExposure `json:"neighbour"`
	LatencyMS         Latency            `json:"latency_ms"`
	EvictedMS         *int64             `json:"evicted_ms"`
	PeakGTTGiB        *float64           `json:"peak_gtt_gib"`
	ServerMiB         *float64           `json:"server_mib"` // most that a server had at the end of its load
}

// Selected counts how slots were chosen.
type Selected struct {
	LRU  int `json:"lru"`
	LCP  int `json:"lcp"`
	ByID int `json:"by_id"`
}

// NeighbourExposure is the neighbour's own account. Its failures are no faults
// of the candidate.
type NeighbourExposure struct {
	Kind       string   `json:"kind"`
	Runs       int      `json:"runs"` // that proved work during the load
	FailedRuns int      `json:"failed_runs"`
	Units      int64    `json:"units"` // of work that was proven during the load
	Unit       string   `json:"unit"`
	Tokens     int64    `json:"tokens"`      // the units, if they are tokens
	AliveShare float64  `json:"alive_share"` // of the load, in the life with the least
	Died       string   `json:"died,omitempty"`
	Findings   []string `json:"findings"` // what went wrong in it, different ones
}

// FaceExposure says how many requests a face could see.
type FaceExposure struct {
	Face    string  `json:"face"`
	N       int     `json:"n"`
	Upper95 float64 `json:"upper_95"`
}

// Latency is measured from the intended start of a request.
type Latency struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

package acceptance

// The three verdicts.
const (
	Pass         = "pass"
	Fail         = "fail"
	Inconclusive = "inconclusive"
)

// A Verdict is the judgement of one run: a function of its plan and its ledger
// alone. Its JSON is `1bit accept verdict -o json`.
type Verdict struct {
	Verdict        string     `json:"verdict"` // Pass, Fail, Inconclusive
	Reason         string     `json:"reason"`
	Plan           string     `json:"plan"` // its name
	PlanFileSHA256 string     `json:"plan_file_sha256"`
	PlanSHA256     string     `json:"plan_sha256"` // of the resolved plan: with package, model and runner
	Package        string     `json:"package"`
	PackageDigest  string     `json:"package_digest"`
	Arms           ArmCounts  `json:"arms"`
	ArmStates      []armState `json:"arm_states"`
	Requests       int        `json:"requests"` // that ended by themselves; censored ones are not counted
	Faults         []Fault    `json:"faults"`
	Primary        string     `json:"primary"`
	Bounds         Bounds     `json:"bounds"`
	Exposure       Exposure   `json:"exposure"`
	NotTested      []string   `json:"not_tested"`
	Notes          []string   `json:"notes"`
}

// ArmCounts counts arms by state.
type ArmCounts struct {
	Clean       int `json:"clean"`
	Fault       int `json:"fault"`
	Invalid     int `json:"invalid"`
	OutOfRegime int `json:"out_of_regime"`
}

// Bounds are upper bounds on fault rates. Each holds by itself at its
// confidence; they do not all hold together. Only clean arms and faults in the
// regime count. A bound without evidence is 1.
type Bounds struct {
	ArmUpper95           float64 `json:"arm_upper_95"`             // per server life
	RequestUpper95       float64 `json:"request_upper_95"`         // per request, if requests of a life are independent
	RequestUpper95ICC01  float64 `json:"request_upper_95_icc_0_1"` // if they are correlated by 0.1
	WorstBinUpper95      float64 `json:"worst_bin_upper_95"`       // per request, in the prompt length least seen
	NeverUsedSlotUpper95 float64 `json:"never_used_slot_upper_95"` // per first task of a slot
	PrimaryUpper         float64 `json:"primary_upper"`            // of the primary unit, at the plan's confidence
	Confidence           float64 `json:"confidence"`
	Hold                 string  `json:"hold"` // "each"
}

// Exposure says what the load really was.
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
	Runs       int     `json:"runs"` // finished, with results
	FailedRuns int     `json:"failed_runs"`
	Tokens     int64   `json:"tokens"`
	AliveShare float64 `json:"alive_share"` // of the load
	Died       string  `json:"died,omitempty"`
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

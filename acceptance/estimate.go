package acceptance

import "time"

// EstimateInput is what is known of model and host before a run. A zero value
// is not known, and assumed from the size of the model.
type EstimateInput struct {
	LoadTime        time.Duration // from the start of a server until it is ready
	TokensPerSecond float64       // generated, by all slots together
	ModelBytes      int64         // size of the model's file; 0: not known either
}

// An Estimate says what a plan will take and what it can show, before it is
// run. Its JSON is part of `1bit accept plan -o json`.
type Estimate struct {
	Arms           int      `json:"arms"`
	Lives          int      `json:"lives"`           // of all arms
	CandidateLives int      `json:"candidate_lives"` // those that count
	Attempts       int      `json:"attempts"`        // most lives, replaced ones included
	Requests       int      `json:"requests"`        // of candidate lives; 0: as many as fit into their time
	LoadHours      float64  `json:"load_hours"`      // of candidate lives, the least; by time or as estimated
	MinSeconds     float64  `json:"min_seconds"`
	MaxSeconds     float64  `json:"max_seconds"`
	Assumed        []string `json:"assumed"` // what the duration rests on

	Primary    string         `json:"primary"`
	P0         float64        `json:"p0"`
	RequiredN  float64        `json:"required_n"` // units without a fault that p0 needs: lives, requests or hours
	PlannedN   float64        `json:"planned_n"`  // units that the plan makes
	CanPass    bool           `json:"can_pass"`
	SeeAtP0    float64        `json:"see_at_p0"` // probability of at least one fault at a rate of p0
	Bounds     EstimateBounds `json:"bounds"`    // if there is no fault
	Can        []string       `json:"can_show"`
	Cannot     []string       `json:"cannot_show"`
	Problems   []string       `json:"cannot_pass"` // why it can never pass
	FileSHA256 string         `json:"plan_file_sha256"`
}

// EstimateBounds are the bounds of a run without a fault, at 95 % each. One
// that the plan gives no evidence for is 1.
type EstimateBounds struct {
	ArmUpper95           float64 `json:"arm_upper_95"`
	RequestUpper95       float64 `json:"request_upper_95"`
	RequestUpper95ICC01  float64 `json:"request_upper_95_icc_0_1"`
	WorstBinUpper95      float64 `json:"worst_bin_upper_95"`
	NeverUsedSlotUpper95 float64 `json:"never_used_slot_upper_95"`
	HourUpper95          float64 `json:"hour_upper_95"`
}

// Estimate says what the plan will take and what it can show.
func (p *Plan) Estimate(in EstimateInput) Estimate { return Estimate{} }

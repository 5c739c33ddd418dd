package acceptance

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/stats"
)

// RequiredN is how many units without fault the plan's p0 and confidence need:
// lives, requests or hours of load, as its primary says. It is 0 for a plan
// that only reports.
func (p *Plan) RequiredN() float64 {
	switch {
	case p.ReportOnly:
		return 0
	case p.Primary == PrimaryHour:
		return stats.PoissonUpper(0, 1-p.Confidence) / p.P0
	}
	return float64(stats.RequiredTrials(0, p.P0, 1-p.Confidence))
}

// plannedN is how many of these units the plan makes; known is false if that
// depends on how fast the server is.
func (p *Plan) plannedN() (n float64, known bool) {
	switch p.Primary {
	case PrimaryArm:
		return float64(p.seeingLives()), true
	case PrimaryHour:
		hours, known := p.loadHours()
		return hours, known
	}
	requests, known := p.candidateRequests()
	return math.Floor(float64(requests) * p.gatingShare()), known
}

// candidateRequests is how many requests the candidate arms make; known is
// false if some of them are limited by time.
func (p *Plan) candidateRequests() (n int, known bool) {
	known = true
	for i, a := range p.Arms {
		if l := p.life(i, 1); a.Role == RoleCandidate {
			n += a.Lives * l.Load.Requests
			known = known && l.Load.Requests > 0
		}
	}
	return n, known
}

// loadHours is the time that candidate arms are under load; known is false if
// some of them are limited by requests.
func (p *Plan) loadHours() (hours float64, known bool) {
	known = true
	for i, a := range p.Arms {
		if l := p.life(i, 1); a.Role == RoleCandidate {
			hours += float64(a.Lives) * time.Duration(l.Load.Duration).Hours()
			known = known && l.Load.Duration > 0
		}
	}
	return hours, known
}

// seeingLives are the candidate lives in which every face that gates could be
// seen on a request or more: only they say anything about a rate of lives.
func (p *Plan) seeingLives() int {
	n := 0
	for i, a := range p.Arms {
		l := p.life(i, 1)
		blind := l.Load.Requests > 0 && float64(l.Load.Requests)*p.gatingShare() < 1
		if a.Role == RoleCandidate && !blind {
			n += a.Lives
		}
	}
	return n
}

// gatingShare is the share of the requests on which every face that gates could
// be seen.
func (p *Plan) gatingShare() float64 {
	if notGating(p.Faces, detect.NaNWire) {
		return 1
	}
	share := *p.Load.LogprobsShare
	if s := p.Sentinels; s.Every > 0 { // they always ask
		share += (1 - share) / float64(s.Every)
	}
	return share
}

// Notes says in sentences what a plan cannot do, before it is run.
func (p *Plan) Notes() []string { return append(p.cannotPass(), p.remarks()...) }

// cannotPass says why a plan can never pass: nil if it can.
func (p *Plan) cannotPass() []string {
	var notes []string
	need := p.RequiredN()
	if n, known := p.plannedN(); !p.ReportOnly && known && n < need {
		notes = append(notes, fmt.Sprintf("cannot pass: the bound at %s is %.6f > p0 %g, needs %s",
			p.units(n), p.boundAt(n), p.P0, p.units(need)))
	}
	if !newFaceTable(p).canFail() {
		notes = append(notes, "cannot pass: no face of fault gates, so nothing could fail this plan")
	}
	for i, a := range p.Arms {
		l := p.life(i, 1)
		which := ""
		if len(p.Arms) > 1 {
			which = "arm " + a.Name + ": "
		}
		if least := l.Server.Parallel * l.Gates.MinLaunchesPerSlot; l.Load.Requests > 0 && l.Load.Requests < least {
			notes = append(notes, fmt.Sprintf("cannot pass: %s%d requests cannot give each of %d slots %d launches",
				which, l.Load.Requests, l.Server.Parallel, l.Gates.MinLaunchesPerSlot))
		}
		if l.Load.InFlight < l.Server.Parallel {
			notes = append(notes, fmt.Sprintf("cannot pass: %s%d in flight never make %d slots busy at once, so the life will be invalid(load-shape)",
				which, l.Load.InFlight, l.Server.Parallel))
		}
	}
	if p.Load.Prompts == PromptsSharedPrefix {
		notes = append(notes, "cannot pass: prompts that begin alike are selected by their prefix, so the life will be invalid(load-shape)")
	}
	return notes
}

// remarks are what is good to know of a plan that can pass.
func (p *Plan) remarks() []string {
	var notes []string
	if _, known := p.plannedN(); !p.ReportOnly && !known {
		switch hours, timed := p.loadHours(); {
		case timed:
			notes = append(notes, fmt.Sprintf("needs %s without fault within %s for p0 %g", p.units(p.RequiredN()), hoursText(hours), p.P0))
		default:
			notes = append(notes, fmt.Sprintf("needs %s without fault for p0 %g", p.units(p.RequiredN()), p.P0))
		}
	}
	if p.Load.API != APICompletion {
		notes = append(notes, fmt.Sprintf("the answers of %s do not say which slot served them: what slots did is told by the server's log alone, and no rate of single slots or of first tasks on them is", pathOf(p.Load.API)))
	}
	if p.Load.API == APIChat && slices.Min(p.Load.PromptTokens) < chatShort {
		notes = append(notes, fmt.Sprintf("the chat template stands before a prompt's own mark: prompts of fewer than %d tokens may be selected by it, and the life is invalid(load-shape) then", chatShort))
	}
	if p.Load.Schedule == ScheduleBurst && p.Load.Every <= Duration(time.Second) {
		notes = append(notes, "bursts come whatever the server does: where it needs longer than "+time.Duration(p.Load.Every).String()+" for one, requests wait and latencies grow without end")
	}
	if n, known := p.plannedN(); known && p.Primary == PrimaryRequest && !p.ReportOnly && p.gates(detect.Leak) && n >= p.RequiredN() && !(n*p.wordyShare() >= p.RequiredN()) {
		notes = append(notes, fmt.Sprintf("answers of fewer than %d tokens may be too short to show a leak, and do not count then: of %s perhaps %.0f would, needs %s",
			wordyTokens, p.units(n), n*p.wordyShare(), p.units(p.RequiredN())))
	}
	return notes
}

// chatShort is the shortest prompt that a usual chat template is less than a
// tenth of.
const chatShort = 10 * chatTokens

// boundAt is the plan's bound on its primary rate after n units without fault.
func (p *Plan) boundAt(n float64) float64 {
	if p.Primary == PrimaryHour {
		return stats.RateUpper(0, n, 1-p.Confidence)
	}
	return stats.UpperBound(0, n, 1-p.Confidence)
}

// units names a number of the primary unit.
func (p *Plan) units(n float64) string {
	switch p.Primary {
	case PrimaryArm:
		return plural(int(math.Ceil(n)), "server life", "server lives")
	case PrimaryHour:
		return hoursText(n) + " of load"
	}
	return plural(int(math.Ceil(n)), "request", "requests")
}

func hoursText(hours float64) string {
	return time.Duration(hours * float64(time.Hour)).Round(time.Second).String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// wordyTokens is from how many tokens on the text of an answer surely has the
// characters that a leak is told by.
const wordyTokens = 8

// wordyShare is the share of the requests whose answers may have so many.
func (p *Plan) wordyShare() float64 {
	n := 0
	for _, tokens := range p.Load.NPredict {
		if tokens >= wordyTokens {
			n++
		}
	}
	return float64(n) / float64(len(p.Load.NPredict))
}

// gates tells whether a face does in this plan.
func (p *Plan) gates(face string) bool {
	return newFaceTable(p).setting(face) == detect.Gate
}

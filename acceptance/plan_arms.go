package acceptance

import (
	"fmt"
	"slices"

	"github.com/1bit-systems/pkg/acceptance/neighbour"
)

// armProblem names the first key of an arm whose value cannot be.
func (p *Plan) armProblem() (key, why string) {
	if len(p.Arms) > maxArms {
		return "arms", fmt.Sprintf("must be %d or fewer", maxArms)
	}
	names, lives := map[string]bool{}, 0
	for i, a := range p.Arms {
		prefix := fmt.Sprintf("arms.%d.", i)
		if key, why := firstBad(prefix, a.checks(names)); why != "" {
			return key, why
		}
		if key, why := firstBad(prefix+"neighbour.", a.Neighbour.checks()); why != "" {
			return key, why
		}
		names[a.Name] = true
		lives += a.Lives
	}
	return firstBad("arms", []check{
		{"", p.candidateLives() == 0, "one must be a candidate: only candidates count"},
		{"", lives > maxLives, fmt.Sprintf("have more than %d lives", maxLives)},
	})
}

func (a Arm) checks(names map[string]bool) []check {
	own := ownFlag(serverFlags, a.Flags)
	return []check{
		{"name", !planName().MatchString(a.Name), "must be given, in letters, digits, '.', '_' and '-'"},
		{"name", names[a.Name], "is the name of another arm too"},
		{"role", a.Role != RoleCandidate && a.Role != RoleControl && a.Role != RoleBaseline, "must be candidate, control or baseline"},
		{"package", a.Package != "" && a.Role != RoleBaseline, "is for the role baseline: another package is never counted with the one that is soaked"},
		{"lives", a.Lives < 1 || a.Lives > maxLives, fmt.Sprintf("must be 1 to %d", maxLives)},
		{"parallel", a.Parallel < 0 || a.Parallel > 256, "must be 1 to 256"},
		{"ctx", a.Ctx < 0 || a.Ctx > maxTokens*256, "must be more than 0"},
		{"flags", own != "", own + " is set by the runner or would leave the path that users are on"},
		{"env", badEnv(a.Env) != "", badEnv(a.Env)},
		{"requests", a.Requests < 0 || a.Requests > maxRequests, "must be more than 0"},
		{"duration", a.Duration < 0 || a.Duration > maxDuration, "must be more than 0, and 30 days at most"},
		{"requests", a.Requests != 0 && a.Duration != 0, "give either requests or duration"},
		{"in_flight", a.InFlight < 0 || a.InFlight > 1024, "must be 1 to 1024"},
	}
}

// lifeProblem names the first key that makes a life of some arm impossible.
func (p *Plan) lifeProblem() (key, why string) {
	for i := range p.Arms {
		l := p.life(i, 1)
		at := func(key string) string { return key }
		if len(p.Arms) > 1 || p.Arms[0].Name != RoleCandidate {
			at = func(string) string { return fmt.Sprintf("arms.%d", i) }
		}
		need, have := p.contextNeed(l)
		key, why := firstBad("", []check{
			{"load", (l.Load.Requests == 0) == (l.Load.Duration == 0), "give either requests or duration"},
			{at("load"), need > have, p.overcommit(l)},
			{at("gates.neighbour_work"), p.Gates.NeighbourWork > 0 && !p.hasNeighbour(), "the plan has no neighbour whose work could be counted"},
			{at("watchdogs.life"), p.Watchdogs.Life != 0 && p.Watchdogs.Life <= l.Load.Duration+l.Load.RequestDeadline, "must be longer than the load with the last request's deadline"},
		})
		if why != "" {
			return key, why
		}
	}
	return "", ""
}

func (p *Plan) hasNeighbour() bool {
	if p.Neighbour != nil && p.Neighbour.Kind != neighbour.None {
		return true
	}
	return slices.ContainsFunc(p.Arms, func(a Arm) bool { return a.Neighbour != nil && a.Neighbour.Kind != neighbour.None })
}

// chatTokens is what the template of a model may add to a prompt of a chat.
const chatTokens = 64

// contextNeed is the most tokens that the requests which slots work on at a
// time can have, and what the server has for them: of one slot each, where
// slots do not share.
func (p *Plan) contextNeed(l PlannedLife) (need, have int) {
	longest, most := p.longest(l)
	if l.Server.KVUnified != nil && !*l.Server.KVUnified {
		return longest + most, l.Server.Ctx / l.Server.Parallel
	}
	return min(l.Load.InFlight, l.Server.Parallel) * (longest + most), l.Server.Ctx
}

// longest are the lengths of the longest prompt and the longest answer that
// may come together.
func (p *Plan) longest(l PlannedLife) (prompt, answer int) {
	prompt, answer = slices.Max(l.Load.PromptTokens), slices.Max(l.Load.NPredict)
	if s := p.Sentinels; s.Every > 0 {
		if longest := slices.Max(s.PromptTokens); longest+s.NPredict > prompt+answer {
			prompt, answer = longest, s.NPredict
		}
	}
	if l.Load.API == APIChat {
		prompt += chatTokens
	}
	return prompt, answer
}

func (p *Plan) overcommit(l PlannedLife) string {
	need, have := p.contextNeed(l)
	longest, most := p.longest(l)
	if !*l.Server.KVUnified {
		return fmt.Sprintf("a request of up to %d + %d tokens does not fit into the %d of one slot: server.ctx is %d for %d slots",
			longest, most, have, l.Server.Ctx, l.Server.Parallel)
	}
	return fmt.Sprintf("%d requests in flight of up to %d + %d tokens need a context of %d, server.ctx is %d",
		min(l.Load.InFlight, l.Server.Parallel), longest, most, need, have)
}

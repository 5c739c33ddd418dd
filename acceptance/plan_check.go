package acceptance

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/acceptance/detect"
	"github.com/1bit-systems/pkg/acceptance/neighbour"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// Bounds of what a plan may ask for.
const (
	minPromptTokens = 24      // below it two prompts that begin with the same token look alike to the slot selection
	maxTokens       = 1 << 20 // of a prompt, an answer, a context
	maxRequests     = 100_000_000
	maxLives        = 10_000 // of all arms
	maxArms         = 64
	maxLengths      = 64
	minP0           = 1e-9 // no soak makes the requests that less would need
	maxGiB          = 1 << 20
)

// A deadline shorter than any server answers would find faults of its own; one
// that is longer than a day is none.
const (
	minDeadline = Duration(100 * time.Millisecond)
	maxDeadline = Duration(24 * time.Hour)
	maxDuration = Duration(30 * 24 * time.Hour)
	saneWhy     = "must be 100ms to 24h"
)

func (d Duration) sane() bool { return d >= minDeadline && d <= maxDeadline }

// A check is one thing that a key's value may be wrong in.
type check struct {
	key string
	bad bool
	why string
}

// firstBad gives the first check that is not met, with a prefix to its key.
func firstBad(prefix string, checks []check) (key, why string) {
	for _, c := range checks {
		if c.bad {
			return prefix + c.key, c.why
		}
	}
	return "", ""
}

// problem names the first key whose value cannot be, and why.
func (p *Plan) problem() (key, why string) {
	for _, part := range []func() (string, string){
		func() (string, string) { return firstBad("", p.checkHead()) },
		func() (string, string) { return firstBad("server.", p.Server.checks()) },
		func() (string, string) { return firstBad("load.", p.Load.checks(p.Faces)) },
		func() (string, string) { return firstBad("neighbour.", p.Neighbour.checks()) },
		func() (string, string) { return firstBad("gates.", p.Gates.checks()) },
		func() (string, string) { return firstBad("", p.checkLooks()) },
		p.armProblem,
		p.lifeProblem,
		func() (string, string) { return firstBad("", p.checkClaim()) },
	} {
		if key, why := part(); why != "" {
			return key, why
		}
	}
	return "", ""
}

func (p *Plan) checkHead() []check {
	return []check{
		{"name", !planName().MatchString(p.Name), "must be given, in letters, digits, '.', '_' and '-'"},
		{"model", p.Model == "", "must be given"},
	}
}

func (s ServerPlan) checks() []check {
	return []check{
		{"entry", !planName().MatchString(s.Entry), "must be the name of an entry point of the package"},
		{"parallel", s.Parallel < 1 || s.Parallel > 256, "must be 1 to 256"},
		{"ctx", s.Ctx < 1 || s.Ctx > maxTokens*256, "must be more than 0"},
		{"flags", ownFlag(serverFlags, s.Flags) != "", ownFlag(serverFlags, s.Flags) + " is set by the runner or would leave the path that users are on"},
		{"env", badEnv(s.Env) != "", badEnv(s.Env)},
	}
}

func (l Load) checks(faces map[string]string) []check {
	longest, most := slices.Max(append([]int{0}, l.PromptTokens...)), slices.Max(append([]int{0}, l.NPredict...))
	blind := !(*l.LogprobsShare > 0) && !notGating(faces, detect.NaNWire)
	return []check{
		{"requests", l.Requests < 0 || l.Requests > maxRequests, "must be more than 0"},
		{"duration", l.Duration < 0 || l.Duration > maxDuration, "must be more than 0, and 30 days at most"},
		{"in_flight", l.InFlight < 1 || l.InFlight > 1024, "must be 1 to 1024"},
		{"schedule", l.Schedule != ScheduleClosed && l.Schedule != ScheduleBurst, "must be closed or burst"},
		{"every", l.Schedule == ScheduleBurst && !l.Every.sane(), "must be given for bursts, 100ms to 24h"},
		{"every", l.Schedule != ScheduleBurst && l.Every != 0, "is the time between two bursts: the schedule is closed"},
		{"api", !slices.Contains([]string{APICompletion, APICompletions, APIChat}, l.API), "must be completion, completions or chat_completions"},
		{"prompts", l.Prompts != PromptsUnique && l.Prompts != PromptsSharedPrefix, "must be unique or shared_prefix"},
		{"prompt_tokens", badLengths(l.PromptTokens) || longest > maxTokens, lengthsWhy},
		{"n_predict", len(l.NPredict) == 0 || len(l.NPredict) > maxLengths || slices.Min(l.NPredict) < 1 || most > maxTokens, fmt.Sprintf("must be numbers from 1 to %d", maxTokens)},
		{"logprobs_share", !(*l.LogprobsShare >= 0 && *l.LogprobsShare <= 1) || blind, "must be more than 0 and at most 1: without log-probabilities a NaN is not seen (0 needs faces: {nan-wire: off})"},
		{"request_deadline", !l.RequestDeadline.sane(), saneWhy},
	}
}

var lengthsWhy = fmt.Sprintf("must be lengths of %d to %d tokens", minPromptTokens, maxTokens)

func badLengths(lengths []int) bool {
	return len(lengths) == 0 || len(lengths) > maxLengths || slices.Min(lengths) < minPromptTokens || slices.Max(lengths) > maxTokens
}

// checks of no neighbour at all are met.
func (n *Neighbour) checks() []check {
	if n == nil {
		return nil
	}
	program := n.Kind == neighbour.Bench || n.Kind == neighbour.Server || n.Kind == neighbour.Ops || n.Kind == neighbour.Command
	_, proofErr := regexp.Compile(n.Proof)
	own := ownFlag(neighbourFlags[n.Kind], n.Args)
	only := func(kinds ...string) bool { return !slices.Contains(kinds, n.Kind) }
	return []check{
		{"kind", !slices.Contains([]string{neighbour.Bench, neighbour.Server, neighbour.Ops, neighbour.Memory, neighbour.Command, neighbour.None}, n.Kind),
			"must be bench, server, ops, memory, command or none"},
		{"args", n.Kind == neighbour.Command && len(n.Args) == 0, "must be given: the command line of kind command"},
		{"args", len(n.Args) > 0 && !program, "are of a program: kind " + n.Kind + " has none"},
		{"args", own != "", own + " is set by the runner"},
		{"env", len(n.Env) > 0 && !program, "is of a program: kind " + n.Kind + " has none"},
		{"env", badEnv(n.Env) != "", badEnv(n.Env)},
		{"model", n.Model != "" && only(neighbour.Bench, neighbour.Server), "is for kinds bench and server"},
		{"gib", n.GiB != 0 && only(neighbour.Memory), "is for kind memory"},
		{"gib", n.Kind == neighbour.Memory && !(n.GiB > 0 && n.GiB <= maxGiB), "must be more than 0"},
		{"workers", n.Workers != 0 && only(neighbour.Server), "is for kind server"},
		{"workers", n.Kind == neighbour.Server && (n.Workers < 1 || n.Workers > 256), "must be 1 to 256"},
		{"proof", n.Proof != "" && only(neighbour.Command), "is for kind command"},
		{"proof", proofErr != nil, "is no regular expression"},
		{"lead", !n.Lead.sane(), saneWhy},
	}
}

func (g Gates) checks() []check {
	return []check{
		{"min_launches_per_slot", g.MinLaunchesPerSlot < 1, "must be 1 or more"},
		{"all_slots_busy_share", !(*g.AllSlotsBusyShare > 0 && *g.AllSlotsBusyShare <= 1), "must be more than 0 and at most 1"},
		{"neighbour_work", g.NeighbourWork < 0, "must be 1 or more"},
		{"gtt_used_gib", !g.GTTUsedGiB.valid(), "must have 0 <= min < max"},
		{"evicted_ms", g.EvictedMS < 0, "must be more than 0"},
		{"mem_available_gib", !(g.MemAvailableGiB >= 0 && g.MemAvailableGiB <= maxGiB), "must be more than 0"},
	}
}

// checkLooks is about what is looked at and what ends a life.
func (p *Plan) checkLooks() []check {
	s, w := p.Sentinels, p.Watchdogs
	_, facesErr := detect.New(p.Faces)
	blind := p.blindGate()
	return []check{
		{"sentinels.every", s.Every < 0 || s.Every == 1 || s.Every > maxRequests, "must be 2 or more: every so many requests one is a sentinel"},
		{"sentinels.every", s.Every == 0 && (s.PromptTokens != nil || s.NPredict != 0 || s.Tau != 0 || s.Reference != ""), "must be given, or no sentinel is sent"},
		{"sentinels.prompt_tokens", s.Every != 0 && badLengths(s.PromptTokens), lengthsWhy},
		{"sentinels.n_predict", s.Every != 0 && (s.NPredict < 1 || s.NPredict > maxTokens), fmt.Sprintf("must be a number from 1 to %d", maxTokens)},
		{"sentinels.tau", s.Every != 0 && !(s.Tau > 0 && s.Tau <= 10), "must be more than 0 and at most 10"},
		{"faces", facesErr != nil, fmt.Sprint(facesErr)},
		{"faces." + blind, blind != "", "is a gate, but the plan has nothing that it could be seen in: " + needOf(blind)},
		{"device.layers", p.Device.Layers != "" && p.Device.Layers != AllLayers, "must be all, or left out"},
		{"device.counts_as", p.Device.Counts != DeviceFault && p.Device.Counts != DeviceInvalid, "must be fault or invalid"},
		{"watchdogs.mem_available_gib", !(w.MemAvailableGiB >= 0 && w.MemAvailableGiB <= maxGiB), "must be more than 0"},
		{"watchdogs.temp_c", w.TempC != 0 && !(w.TempC >= 30 && w.TempC <= 150), "must be 30 to 150"},
		{"watchdogs.gtt_growth_gib", !(w.GTTGrowthGiB >= 0 && w.GTTGrowthGiB <= maxGiB), "must be more than 0"},
		{"watchdogs.life", w.Life != 0 && (w.Life < minDeadline || w.Life > maxDuration), "must be 100ms to 30 days"},
		{"load_deadline", !p.LoadDeadline.sane(), saneWhy},
	}
}

// checkClaim is about what the plan promises.
func (p *Plan) checkClaim() []check {
	lives, candidates := len(p.Lives()), p.candidateLives()
	most := 1.0
	if p.Primary == PrimaryHour {
		most = 3600
	}
	return []check{
		{"p0", p.ReportOnly && p.P0 != 0, "is a promise: a plan that is report_only makes none"},
		{"p0", !p.ReportOnly && !(p.P0 > 0 && p.P0 < most), fmt.Sprintf("must be given, more than 0 and less than %g (or say report_only: true)", most)},
		{"p0", !p.ReportOnly && p.P0 < minP0, fmt.Sprintf("must be at least %g: no soak makes the requests that less would need", minP0)},
		{"primary", !slices.Contains([]string{PrimaryArm, PrimaryRequest, PrimaryHour}, p.Primary), "must be arm, request or hour"},
		{"primary", p.Primary == PrimaryArm && candidates == 1 && !p.ReportOnly, "must be request or hour: one server life bounds the rate of lives at 0.95 and no lower"},
		{"confidence", !(p.Confidence >= 0.5 && p.Confidence < 1), "must be at least 0.5 and less than 1"},
		{"attempts", p.Attempts < lives || p.Attempts > 10*maxLives, fmt.Sprintf("must be at least the %d lives of the plan", lives)},
		{"after_fault", p.AfterFault != AfterFaultStop && p.AfterFault != AfterFaultGoOn, "must be stop or go_on"},
	}
}

var (
	planName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	envName  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (b *Band) valid() bool {
	return b == nil || b.Min >= 0 && b.Max > b.Min && !math.IsInf(b.Max, 1)
}

// notGating tells whether a plan says that a face decides nothing.
func notGating(faces map[string]string, face string) bool {
	return faces[face] == string(detect.Off) || faces[face] == string(detect.Report)
}

// blindGate is a face that the plan itself makes a gate, without what it needs.
func (p *Plan) blindGate() string {
	for _, f := range detect.Faces() {
		if p.Faces[f.Name] == string(detect.Gate) && p.lacks(f) {
			return f.Name
		}
	}
	return ""
}

// lacks tells whether the plan has nothing of what a face needs. What the host
// must have is not asked here.
func (p *Plan) lacks(f detect.FaceInfo) bool {
	switch f.Needs {
	case detect.NeedsProbs:
		return !(*p.Load.LogprobsShare > 0)
	case detect.NeedsSentinels: // two answers on a quiet server can show corruption too
		return p.Sentinels.Every == 0 && !(f.Name == detect.Corruption && *p.FinalProbe)
	case detect.NeedsPlacement:
		return p.Device.Name == "" && p.Device.Layers == ""
	}
	return false
}

func needOf(face string) string {
	for _, f := range detect.Faces() {
		if f.Name == face {
			return f.Needs
		}
	}
	return ""
}

// badEnv says what is wrong with a variable, or "".
func badEnv(env map[string]string) string {
	for name, value := range env {
		switch {
		case !envName().MatchString(name) || strings.ContainsRune(value, 0):
			return fmt.Sprintf("%q is no variable", name)
		case strings.HasPrefix(name, "LLAMA_ARG_"), strings.HasPrefix(name, "LLAMA_LOG_"), name == "LLAMA_API_KEY":
			return name + " is an option of the server: give it as a flag"
		}
	}
	return ""
}

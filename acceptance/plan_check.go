package acceptance

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/1bit-systems/pkg/internal/lazyregexp"
)

// minPromptTokens is the shortest prompt: below it two prompts that begin with
// the same first token would look alike to the slot selection.
const minPromptTokens = 24

// maxTokens bounds a prompt and an answer.
const maxTokens = 1 << 20

// maxLives bounds the server lives of an arm.
const maxLives = 10_000

// minP0 is the smallest fault rate that a plan may ask to exclude.
const minP0 = 1e-9

// A deadline shorter than any server answers would find faults of its own; one
// that is longer than a day is none.
const (
	minDeadline = Duration(100 * time.Millisecond)
	maxDeadline = Duration(24 * time.Hour)
	saneWhy     = "must be 100ms to 24h"
)

func (d Duration) sane() bool { return d >= minDeadline && d <= maxDeadline }

// ownFlags are the flags that the runner sets itself, and those that would take
// the load off the path users are on.
var ownFlags = []string{
	"-m", "--model", "--host", "--port", "-c", "--ctx-size", "-np", "--parallel",
	"-kvu", "--kv-unified", "-no-kvu", "--no-kv-unified", "-sps", "--slot-prompt-similarity", "--no-slots",
	"-hf", "--hf-repo", "--api-key", "--log-disable", "--log-file",
}

// problem names the first key whose value cannot be, and why.
func (p *Plan) problem() (key, why string) {
	l, s := p.Load, p.Server
	longest, most := slices.Max(append([]int{0}, l.PromptTokens...)), slices.Max(append([]int{0}, l.NPredict...))
	checks := []struct {
		key string
		bad bool
		why string
	}{
		{"name", !planName().MatchString(p.Name), "must be given, in letters, digits, '.', '_' and '-'"},
		{"model", p.Model == "", "must be given"},
		{"server.parallel", s.Parallel < 1 || s.Parallel > 256, "must be 1 to 256"},
		{"server.ctx", s.Ctx < 1, "must be more than 0"},
		{"server.flags", forbiddenFlag(s.Flags) != "", forbiddenFlag(s.Flags) + " is set by the runner or would leave the path that users are on"},
		{"server.env", badEnv(s.Env) != "", badEnv(s.Env) + " is no variable"},
		{"load.requests", l.Requests < 0, "must be more than 0"},
		{"load.duration", l.Duration < 0, "must be more than 0"},
		{"load", (l.Requests == 0) == (l.Duration == 0), "give either requests or duration"},
		{"load.in_flight", l.InFlight < 1 || l.InFlight > 1024, "must be 1 to 1024"},
		{"load.prompts", l.Prompts != PromptsUnique && l.Prompts != PromptsSharedPrefix, "must be unique or shared_prefix"},
		{"load.prompt_tokens", len(l.PromptTokens) == 0 || slices.Min(l.PromptTokens) < minPromptTokens || longest > maxTokens,
			fmt.Sprintf("must be lengths of %d to %d tokens", minPromptTokens, maxTokens)},
		{"load.n_predict", len(l.NPredict) == 0 || slices.Min(l.NPredict) < 1 || most > maxTokens, fmt.Sprintf("must be numbers from 1 to %d", maxTokens)},
		{"load.logprobs_share", !(*l.LogprobsShare > 0 && *l.LogprobsShare <= 1), "must be more than 0 and at most 1: without log-probabilities a NaN is not seen"},
		{"load.request_deadline", !l.RequestDeadline.sane(), saneWhy},
		{"load", l.InFlight*(longest+most) > s.Ctx, fmt.Sprintf(
			"%d requests in flight of up to %d + %d tokens need a context of %d, server.ctx is %d", l.InFlight, longest, most, l.InFlight*(longest+most), s.Ctx)},
		{"gates.min_launches_per_slot", p.Gates.MinLaunchesPerSlot < 1, "must be 1 or more"},
		{"gates.all_slots_busy_share", !(*p.Gates.AllSlotsBusyShare > 0 && *p.Gates.AllSlotsBusyShare <= 1), "must be more than 0 and at most 1"},
		{"gates.neighbour_runs", p.Gates.NeighbourRuns < 0, "must be 1 or more"},
		{"gates.neighbour_runs", p.Neighbour == nil && p.Gates.NeighbourRuns > 0, "the plan has no neighbour whose work could be counted"},
		{"gates.gtt_used_gib", !p.Gates.GTTUsedGiB.valid(), "must have 0 <= min < max"},
		{"primary", p.Primary != PrimaryArm && p.Primary != PrimaryRequest && p.Primary != PrimaryHour, "must be arm, request or hour"},
		{"p0", !(p.P0 > 0 && p.P0 < 1), "must be given, more than 0 and less than 1"},
		{"p0", p.P0 < minP0, fmt.Sprintf("must be at least %g: no soak makes the requests that less would need", minP0)},
		{"confidence", !(p.Confidence >= 0.5 && p.Confidence < 1), "must be at least 0.5 and less than 1"},
		{"load_deadline", !p.LoadDeadline.sane(), saneWhy},
	}
	if n := p.Neighbour; n != nil {
		checks = append(checks, []struct {
			key string
			bad bool
			why string
		}{
			{"neighbour.kind", n.Kind != "bench", "must be bench"},
			{"neighbour.args", slices.ContainsFunc(n.Args, ownBenchFlag), "-m and -o are set by the runner"},
			{"neighbour.env", badEnv(n.Env) != "", badEnv(n.Env) + " is no variable"},
			{"neighbour.lead", !n.Lead.sane(), saneWhy},
		}...)
	}
	for _, c := range checks {
		if c.bad {
			return c.key, c.why
		}
	}
	return "", ""
}

var (
	planName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	envName  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (b *Band) valid() bool { return b == nil || b.Min >= 0 && b.Max > b.Min }

// forbiddenFlag finds a flag of ours among the plan's.
func forbiddenFlag(flags []string) string {
	for _, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		if slices.Contains(ownFlags, name) {
			return name
		}
	}
	return ""
}

func ownBenchFlag(f string) bool {
	name, _, _ := strings.Cut(f, "=")
	return slices.Contains([]string{"-m", "--model", "-o", "--output", "-oe", "--output-err", "-hf", "--hf-repo"}, name)
}

func badEnv(env map[string]string) string {
	for name, value := range env {
		if !envName().MatchString(name) || strings.ContainsRune(value, 0) {
			return fmt.Sprintf("%q", name)
		}
	}
	return ""
}

// RequiredRequests is the number of requests without fault that the plan's p0
// and confidence need.
func (p *Plan) RequiredRequests() int {
	return requiredTrials(0, p.P0, 1-p.Confidence)
}

// Notes says in sentences what a plan cannot do, before it is run.
func (p *Plan) Notes() []string {
	var notes []string
	need := p.RequiredRequests()
	if n := p.seen(p.Load.Requests); p.Load.Requests > 0 && n < need {
		notes = append(notes, fmt.Sprintf("cannot pass: the bound at %d requests is %.6f > p0 %g, needs %d requests",
			n, upperBound(0, float64(n), 1-p.Confidence), p.P0, need))
	}
	if p.Load.Requests > 0 && p.Load.Requests < p.Server.Parallel*p.Gates.MinLaunchesPerSlot {
		notes = append(notes, fmt.Sprintf("cannot pass: %d requests cannot give each of %d slots %d launches",
			p.Load.Requests, p.Server.Parallel, p.Gates.MinLaunchesPerSlot))
	}
	if p.Load.InFlight < p.Server.Parallel {
		notes = append(notes, fmt.Sprintf("cannot pass: %d in flight never make %d slots busy at once, so the life will be invalid(load-shape)",
			p.Load.InFlight, p.Server.Parallel))
	}
	if p.Load.Prompts == PromptsSharedPrefix {
		notes = append(notes, "cannot pass: prompts that begin alike are selected by their prefix, so the life will be invalid(load-shape)")
	}
	if p.Load.Duration > 0 {
		notes = append(notes, fmt.Sprintf("needs %d requests without fault within %s for p0 %g", need, time.Duration(p.Load.Duration), p.P0))
	}
	return notes
}

// seen is how many of n requests ask for log-probabilities, on average.
func (p *Plan) seen(n int) int { return int(float64(n) * *p.Load.LogprobsShare) }

var (
	yamlUnknown = lazyregexp.New(`line (\d+): field (\S+) not found in type \S+`)
	yamlType    = lazyregexp.New(`line (\d+): cannot unmarshal !!\w+ (.*) into (\S+)`)
)

// plainYAML turns the decoder's errors into sentences that name line and key.
func plainYAML(err error, root *yaml.Node) string {
	text := err.Error()
	var list *yaml.TypeError
	if errors.As(err, &list) && len(list.Errors) > 0 {
		text = list.Errors[0]
	}
	text = strings.TrimPrefix(text, "yaml: ")
	if m := yamlUnknown().FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("line %s: unknown key %s", m[1], m[2])
	}
	if m := yamlType().FindStringSubmatch(text); m != nil {
		key := keyAt(root, m[1])
		return fmt.Sprintf("line %s: %s%s is not of the right kind (%s)", m[1], key, strings.Trim(m[2], "`"), strings.TrimPrefix(m[3], "acceptance."))
	}
	if m := regexp.MustCompile(`^line (\d+): "`).FindStringSubmatch(text); m != nil {
		return "line " + m[1] + ": " + keyAt(root, m[1]) + strings.TrimPrefix(text, "line "+m[1]+": ")
	}
	return text
}

// keyAt names the key whose value stands on a line, with a colon after it.
func keyAt(n *yaml.Node, line string) string {
	found := ""
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		if n.Kind != yaml.MappingNode {
			for _, c := range n.Content {
				walk(c, path)
			}
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
			if fmt.Sprint(n.Content[i].Line) == line || fmt.Sprint(n.Content[i+1].Line) == line {
				found = name + ": "
			}
			walk(n.Content[i+1], name)
		}
	}
	walk(n, "")
	return found
}

// lineOf gives "line N: " for a key such as load.requests, or for the nearest
// parent that the file has.
func lineOf(root *yaml.Node, key string) string {
	n, line := root, 0
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	for part := range strings.SplitSeq(key, ".") {
		var next *yaml.Node
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == part {
				line, next = n.Content[i].Line, n.Content[i+1]
			}
		}
		if next == nil {
			break
		}
		n = next
	}
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", line)
}

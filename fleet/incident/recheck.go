package incident

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/acceptance"
	"github.com/1bit-systems/pkg/internal/secret"
)

// ErrShape says that an incident does not tell enough of its server to make one of its shape.
var ErrShape = errors.New("no plan can be made of the incident")

// The plan of a recheck asks whether a package does what the incident saw. It has many short lives, each with first
// tasks on slots that were never used, and one long one where the incident came late.
const (
	freshLives    = 60   // bounds the rate of lives with a fault at 0.0487 (95 %)
	freshRequests = 25   // of each, at least: 1500 in all bound the rate of requests at 0.0020
	mostFresh     = 100  // requests that a short life goes to, to come past the incident's
	freshP0       = 0.05 // needs 59 lives
	freshAttempts = 80
	longFrom      = 10 * time.Minute // uptime from which on a long life is made too
	longMost      = 8 * time.Hour
	contextOf     = 8192 // tokens, where the incident does not tell
	slotsOf       = 4
)

// shaped is a plan's content, worked out of a report.
type shaped struct {
	name, model string
	entry       string // "" is llama-server
	parallel    int
	ctx         int
	unified     bool
	flags       []string
	env         map[string]string
	prompts     []int
	predict     []int
	requests    int
	uptime      float64       // seconds until the incident; 0: not told
	long        time.Duration // 0: none
	neighbour   string        // kind of an acceptance plan
	device      string        // "" for any
	watchdog    float64       // GiB of MemAvailable

	told  map[string]string // reasons, by key, where the incident tells less than the plan says
	notes []string          // for the person
}

// Plan makes an acceptance plan of the shape of a report's service: a YAML file, with the reason of each choice. model is
// the model's file where it is not where the incident had it, "" where it is. notes say what a person has to add,
// such as a secret that was masked, and what the plan cannot show. The error wraps [ErrShape], or [acceptance.ErrPlan]
// where the shape is one that no soak may have.
func Plan(r *Report, model string) (text []byte, notes []string, err error) {
	p, err := shapePlan(r, model)
	if err != nil {
		return nil, nil, err
	}
	text = p.yaml(r)
	if _, err := acceptance.ParsePlan(text); err != nil {
		return nil, nil, fmt.Errorf("make a plan of the incident of %s: %w", r.Unit, err)
	}
	return text, p.notes, nil
}

func shapePlan(r *Report, model string) (*shaped, error) {
	s := r.Shape
	p := &shaped{
		name: planName(r), model: model, parallel: s.Parallel, ctx: s.Context, unified: s.KVUnified,
		neighbour: s.Neighbour, told: map[string]string{},
	}
	if s.Entry != entryServer {
		p.entry = s.Entry
	}
	if p.neighbour == "" {
		p.neighbour = "none"
	}
	if !slices.Contains([]string{"none", "bench", "server", "ops"}, p.neighbour) {
		return nil, fmt.Errorf("%w: its neighbour %q is of no kind that is known", ErrShape, p.neighbour)
	}
	if p.model == "" {
		p.model = s.Model
	}
	if p.model == "" {
		return nil, fmt.Errorf("%w: it does not tell which model %s had: name its file", ErrShape, r.Unit)
	}
	if !filepath.IsAbs(p.model) && !strings.HasPrefix(p.model, "~/") {
		return nil, fmt.Errorf("%w: its model %q is no whole path: name the file", ErrShape, p.model)
	}
	p.server(r)
	p.environment(r)
	p.options(s.Flags)
	p.leftOut(r)
	if err := p.lengths(s); err != nil {
		return nil, err
	}
	p.lives(s)
	p.limits(r)
	return p, nil
}

// server settles slots and context.
func (p *shaped) server(r *Report) {
	if p.parallel <= 0 && r.Server != nil {
		p.parallel = r.Server.Slots
	}
	if p.parallel <= 0 {
		p.parallel = slotsOf
		p.told["parallel"] = "the incident does not tell how many; this is llama-server's own choice"
	}
	if p.ctx <= 0 && r.Server != nil && r.Server.Context > 0 {
		p.ctx = r.Server.Context
		if !p.unified {
			p.ctx *= p.parallel
		}
	}
	if p.ctx <= 0 {
		p.ctx = contextOf
		p.told["ctx"] = "the incident does not tell how many"
	}
	if r.Server != nil {
		for _, d := range r.Server.Devices {
			if !strings.HasPrefix(strings.ToUpper(d), "CPU") && p.device == "" {
				p.device = d
			}
		}
	}
}

// environment takes over the variables that are no secrets, no options and do not lead into the package of then.
func (p *shaped) environment(r *Report) {
	p.env = map[string]string{}
	masked := map[string]bool{}
	for _, s := range r.Evidence.settings() {
		if strings.Contains(s.Value, secret.Mask) {
			masked[s.Key] = true
		}
	}
	for key, value := range r.Shape.Env {
		switch {
		case secret.Value(key, value) != value || strings.Contains(value, secret.Mask):
			masked[key] = true
		case key == "ONEBIT_LLAMA_SERVER", key == "ONEBIT_PACKAGE", r.Evidence.inPackage(value):
		case runsHere(key), loadsCode(key), strings.Contains(value, "/"): // of the incident's host, whoever wrote it down
			p.notes = append(p.notes, fmt.Sprintf("%s=%s is of the incident's host and not in the plan: if it is meant, give it under server.env", key, value))
		case strings.HasPrefix(key, "LLAMA_"):
			p.notes = append(p.notes, fmt.Sprintf("%s=%s is an option of the server and not in the plan: give it under server.flags if it matters", key, value))
		default:
			p.env[key] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(masked)) {
		p.notes = append(p.notes, fmt.Sprintf("%s is a secret and not in the plan: if the server needs it, add it under server.env, and keep the plan to yourself", key))
	}
	p.env["GGML_HRX_NAN_CONTINUE"] = "1"
}

// loadsCode tells the variables by which a program loads, or starts, what is none of its own.
func loadsCode(key string) bool {
	return strings.HasPrefix(key, "LD_") || slices.Contains([]string{"BASH_ENV", "ENV", "GCONV_PATH", "GLIBC_TUNABLES", "IFS", "SHELLOPTS"}, key) ||
		strings.HasPrefix(key, "PYTHON") || strings.HasPrefix(key, "PERL") || strings.HasPrefix(key, "BASH_FUNC_")
}

// options takes over the server's options but for those that the runner sets, and for secrets.
func (p *shaped) options(flags []string) {
	shown := secret.Words(flags)
	for i := 0; i < len(flags); i++ {
		name, _, assigned := strings.Cut(flags[i], "=")
		value := !assigned && strings.HasPrefix(name, "-") && i+1 < len(flags) && !isOption(flags[i+1])
		hidden := strings.Contains(flags[i], secret.Mask) || shown[i] != flags[i]
		if value {
			hidden = hidden || strings.Contains(flags[i+1], secret.Mask) || shown[i+1] != flags[i+1]
		}
		switch {
		case acceptance.OwnFlag(name):
		case hidden:
			p.notes = append(p.notes, fmt.Sprintf("%s has a secret and is not in the plan: if the server needs it, add it under server.flags, and keep the plan to yourself", name))
		default:
			p.flags = append(p.flags, flags[i])
			if value {
				p.flags = append(p.flags, flags[i+1])
			}
		}
		if value {
			i++
		}
	}
}

// leftOut says of which options of the service's command the value is a secret, where a plan may have them.
func (p *shaped) leftOut(r *Report) {
	if r.Evidence == nil {
		return
	}
	option := ""
	for _, word := range r.Evidence.Command {
		name, _, assigned := strings.Cut(word, "=")
		if assigned || isOption(word) {
			option = name
		}
		if strings.Contains(word, secret.Mask) && isOption(option) && !acceptance.OwnFlag(option) {
			p.notes = append(p.notes, fmt.Sprintf("the service's %s has a secret, so it is not in the plan, and options beside it may lack: compare server.flags with the command in the report", option))
		}
	}
}

// isOption tells an option from a negative number.
func isOption(word string) bool {
	return len(word) > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9') && word[1] != '.'
}

// lengths settles prompts and answers: of all slots at once they must fit into the context.
func (p *shaped) lengths(s Shape) error {
	room := p.ctx / p.parallel    // of a request
	const least, longest = 24, 64 // tokens that a plan's prompts have at least; lengths that it may have
	for _, n := range s.NPredict {
		if n = max(1, min(n, room/2)); !slices.Contains(p.predict, n) {
			p.predict = append(p.predict, n)
		}
	}
	if len(p.predict) == 0 {
		p.predict = []int{min(16, room/4), min(32, room/4), min(96, room/4)}
		p.told["n_predict"] = "the incident does not tell"
	}
	slices.Sort(p.predict)
	room -= p.predict[len(p.predict)-1]
	cut, grown := 0, 0
	for _, n := range s.PromptTokens {
		if n > room {
			n, cut = room, cut+1
		}
		if n < least {
			n, grown = least, grown+1
		}
		if !slices.Contains(p.prompts, n) {
			p.prompts = append(p.prompts, n)
		}
	}
	switch {
	case room < least:
		return fmt.Errorf("%w: %d tokens of context are too few for requests on %d slots at once", ErrShape, p.ctx, p.parallel)
	case len(p.prompts) == 0:
		p.prompts = slices.Compact([]int{24, min(175, room), min(300, room)})
		p.told["prompt_tokens"] = "the incident does not tell"
	case cut > 0:
		p.told["prompt_tokens"] = fmt.Sprintf("cut to %d where the incident's were longer: with all slots busy more does not fit into the context", room)
	case grown > 0:
		p.told["prompt_tokens"] = fmt.Sprintf("from the log of the incident, but %d at least: shorter ones would be selected by their beginning", least)
	}
	slices.Sort(p.prompts)
	p.prompts, p.predict = p.prompts[:min(longest, len(p.prompts))], p.predict[:min(longest, len(p.predict))]
	return nil
}

// lives settles how long a short life is, and whether there is a long one.
func (p *shaped) lives(s Shape) {
	p.requests = max(freshRequests, 6*p.parallel)
	if s.TasksBefore > 0 && s.TasksBefore+p.parallel <= mostFresh {
		p.requests = max(p.requests, s.TasksBefore+p.parallel)
	}
	const longest = 100 * 365 * 24 * 3600
	if s.UptimeS > 0 && s.UptimeS < longest {
		p.uptime = s.UptimeS
	}
	if p.uptime < longFrom.Seconds() {
		return
	}
	minutes := math.Ceil(min(p.uptime*1.1/60, longMost.Minutes()))
	p.long = time.Duration(minutes) * time.Minute
	if p.uptime > longMost.Seconds() {
		p.notes = append(p.notes, fmt.Sprintf("the incident came after %s, the long life ends after %s: for more set its duration", uptimeText(p.uptime), uptimeText(p.long.Seconds())))
	}
}

// limits settles when a life is ended for the host's sake, and says what the plan cannot do.
func (p *shaped) limits(r *Report) {
	if r.Evidence != nil && r.Evidence.HostNow.MemTotal != nil {
		p.watchdog = math.Max(0.25, math.Min(4, math.Round(*r.Evidence.HostNow.MemTotal/8)/4))
	}
	if p.long > 0 && p.neverUsed(r) {
		p.notes = append(p.notes, "a slot that is used for the first time after hours of uptime is in no arm: a soak keeps all slots busy from its first seconds on; the short lives have the first use, the long one the uptime")
	}
	if r.Ending != nil && r.Ending.Result == "oom-kill" {
		p.notes = append(p.notes, "a soak takes a kill for memory for an outside cause and makes the life again: watch the memory table of its report, not the verdict alone")
	}
}

// neverUsed tells whether the incident was on the first task of a slot.
func (p *shaped) neverUsed(r *Report) bool {
	return slices.ContainsFunc(r.Slots, func(s Slot) bool { return s.State == "running" && s.NeverUsed })
}

// settings are those of the unit, none without evidence.
func (e *Evidence) settings() []UnitSetting {
	if e == nil {
		return nil
	}
	return e.Settings
}

// inPackage tells whether a value leads into the package that the service ran from.
func (e *Evidence) inPackage(value string) bool {
	return e != nil && e.Package != nil && e.Package.Path != "" && strings.Contains(value, e.Package.Path)
}

// planName is that of the plan, with the characters that one may have.
func planName(r *Report) string {
	name, at := "recheck-"+strings.TrimSuffix(r.Unit, ".service"), ""
	if r.Ending != nil {
		at = r.Ending.At.UTC().Format("-20060102-150405")
	}
	const most = 64
	clean := []byte(name[:min(len(name), most-len(at))] + at)
	for i, c := range clean {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			clean[i] = '-'
		}
	}
	return string(clean)
}

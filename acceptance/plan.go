package acceptance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"go.yaml.in/yaml/v3"
)

// ErrPlan says that a plan cannot be carried out as it is written: it is not
// valid, refers to what is not there, or asks for the impossible.
var ErrPlan = errors.New("plan refused")

// A Plan is what a soak promises before its first request. Every field has the
// name of its key in the file; a zero value means the default named here.
type Plan struct {
	Name         string     `yaml:"name" json:"name"`
	Server       ServerPlan `yaml:"server" json:"server"`
	Model        string     `yaml:"model" json:"model"` // path; relative to the plan's folder, ~/ is the home folder
	Load         Load       `yaml:"load" json:"load"`
	Neighbour    *Neighbour `yaml:"neighbour" json:"neighbour"` // nil: none
	Gates        Gates      `yaml:"gates" json:"gates"`
	Primary      string     `yaml:"primary" json:"primary"`             // unit of p0; "request", the only one of a single life
	P0           float64    `yaml:"p0" json:"p0"`                       // fault rate to exclude, per request
	Confidence   float64    `yaml:"confidence" json:"confidence"`       // default 0.95
	LoadDeadline Duration   `yaml:"load_deadline" json:"load_deadline"` // until the model has loaded; default 5m
	FinalProbe   *bool      `yaml:"final_probe" json:"final_probe"`     // two identical greedy requests after the load; default true

	path string
	file []byte
}

// ServerPlan says how llama-server is started. Host, port, model, context and
// slots are set by the runner.
type ServerPlan struct {
	Parallel  int               `yaml:"parallel" json:"parallel"`     // slots; default 4
	KVUnified *bool             `yaml:"kv_unified" json:"kv_unified"` // -kvu; default true
	Ctx       int               `yaml:"ctx" json:"ctx"`               // tokens of all slots together; default 8192
	Flags     []string          `yaml:"flags" json:"flags"`
	Env       map[string]string `yaml:"env" json:"env"`
}

// Load is the load on the server: a closed loop of InFlight workers, until
// either Requests have been sent or Duration is over.
type Load struct {
	Requests        int      `yaml:"requests" json:"requests"`
	Duration        Duration `yaml:"duration" json:"duration"`
	InFlight        int      `yaml:"in_flight" json:"in_flight"`               // default: server.parallel
	Prompts         string   `yaml:"prompts" json:"prompts"`                   // PromptsUnique (default) or PromptsSharedPrefix
	PromptTokens    []int    `yaml:"prompt_tokens" json:"prompt_tokens"`       // lengths, used equally often; default [24, 175, 300]
	NPredict        []int    `yaml:"n_predict" json:"n_predict"`               // tokens to generate, drawn at random; default [4, 32, 96]
	LogprobsShare   *float64 `yaml:"logprobs_share" json:"logprobs_share"`     // share of requests that ask for log-probabilities; default 1
	Seed            uint64   `yaml:"seed" json:"seed"`                         // of prompts and lengths; default 1
	RequestDeadline Duration `yaml:"request_deadline" json:"request_deadline"` // an answer later than this is a hang; default 3m
}

// Shapes of prompts.
const (
	PromptsUnique       = "unique"
	PromptsSharedPrefix = "shared_prefix" // all begin alike: to show that such a load proves nothing
)

// Neighbour is the other job on the device: llama-bench in a loop.
type Neighbour struct {
	Entry string            `yaml:"entry" json:"entry"` // entry point of the package; default llama-bench, the only one
	Model string            `yaml:"model" json:"model"` // default: the plan's model
	Args  []string          `yaml:"args" json:"args"`
	Env   map[string]string `yaml:"env" json:"env"`
	Lead  Duration          `yaml:"lead" json:"lead"` // most time to wait for its first result before the load; default 1m
}

// Gates say when a life counts at all.
type Gates struct {
	MinLaunchesPerSlot int      `yaml:"min_launches_per_slot" json:"min_launches_per_slot"` // default 1
	AllSlotsBusyShare  *float64 `yaml:"all_slots_busy_share" json:"all_slots_busy_share"`   // of the busy time; default 0.5
	NeighbourRuns      int      `yaml:"neighbour_runs" json:"neighbour_runs"`               // runs with tokens; default 1 if there is a neighbour
	GTTUsedGiB         *Band    `yaml:"gtt_used_gib" json:"gtt_used_gib"`                   // GTT in use at the first request; default: no gate
}

// Band is a closed interval.
type Band struct {
	Min float64 `yaml:"min" json:"min"`
	Max float64 `yaml:"max" json:"max"`
}

// Duration is a time.Duration written as "90s" or "4h".
type Duration time.Duration

// UnmarshalYAML reads "90s".
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: %q is no duration such as 90s or 4h", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes "1m30s".
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	v, err := time.ParseDuration(s)
	*d = Duration(v)
	return err
}

// maxPlan bounds the size of a plan file in bytes.
const maxPlan = 1 << 20

// LoadPlan reads a plan file. Unknown keys and impossible values are refused;
// the error wraps ErrPlan and names line and key.
func LoadPlan(path string) (*Plan, error) {
	f, err := openInput(path)
	if errors.Is(err, errNoFile) {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxPlan+1))
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	p, err := parsePlan(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p.path = path
	return p, nil
}

func parsePlan(raw []byte) (*Plan, error) {
	if len(raw) > maxPlan {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrPlan, maxPlan)
	}
	var root yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	switch err := dec.Decode(&root); {
	case err == io.EOF:
		return nil, fmt.Errorf("%w: the file is empty", ErrPlan)
	case err != nil:
		return nil, fmt.Errorf("%w: %s", ErrPlan, plainYAML(err, &root))
	}
	if err := dec.Decode(new(yaml.Node)); err != io.EOF {
		return nil, fmt.Errorf("%w: more than one document in the file", ErrPlan)
	}
	p := &Plan{file: raw}
	strict := yaml.NewDecoder(bytes.NewReader(raw))
	strict.KnownFields(true)
	if err := strict.Decode(p); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrPlan, plainYAML(err, &root))
	}
	p.setDefaults()
	if key, why := p.problem(); why != "" {
		return nil, fmt.Errorf("%w: %s%s: %s", ErrPlan, lineOf(&root, key), key, why)
	}
	return p, nil
}

// FileSHA256 is the digest of the plan file, in hex.
func (p *Plan) FileSHA256() string {
	sum := sha256.Sum256(p.file)
	return hex.EncodeToString(sum[:])
}

func (p *Plan) setDefaults() {
	set(&p.Server.Parallel, 4)
	set(&p.Server.Ctx, 8192)
	setTo(&p.Server.KVUnified, true)
	set(&p.Load.InFlight, p.Server.Parallel)
	set(&p.Load.Prompts, PromptsUnique)
	set(&p.Load.Seed, 1)
	set(&p.Load.RequestDeadline, Duration(3*time.Minute))
	setTo(&p.Load.LogprobsShare, 1)
	if p.Load.PromptTokens == nil {
		p.Load.PromptTokens = []int{24, 175, 300}
	}
	if p.Load.NPredict == nil {
		p.Load.NPredict = []int{4, 32, 96}
	}
	if n := p.Neighbour; n != nil {
		set(&n.Entry, "llama-bench")
		set(&n.Model, p.Model)
		set(&n.Lead, Duration(time.Minute))
		set(&p.Gates.NeighbourRuns, 1)
	}
	set(&p.Gates.MinLaunchesPerSlot, 1)
	setTo(&p.Gates.AllSlotsBusyShare, 0.5)
	set(&p.Primary, "request")
	set(&p.Confidence, 0.95)
	set(&p.LoadDeadline, Duration(5*time.Minute))
	setTo(&p.FinalProbe, true)
}

func set[T comparable](to *T, value T) {
	var zero T
	if *to == zero {
		*to = value
	}
}

func setTo[T any](to **T, value T) {
	if *to == nil {
		*to = &value
	}
}

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

	"github.com/1bit-systems/pkg/acceptance/neighbour"
)

// ErrPlan says that a plan cannot be carried out as it is written: it is not
// valid, refers to what is not there, or asks for the impossible.
var ErrPlan = errors.New("plan refused")

// A Plan is what a soak promises before its first request. Every field has the
// name of its key in the file; a zero value means the default named here.
type Plan struct {
	Name  string `yaml:"name" json:"name"`
	Model string `yaml:"model" json:"model"` // path; relative to the plan's folder, ~/ is the home folder

	// Server, Load, Neighbour and Gates hold for every arm that does not say
	// otherwise.
	Server    ServerPlan `yaml:"server" json:"server"`
	Load      Load       `yaml:"load" json:"load"`
	Neighbour *Neighbour `yaml:"neighbour" json:"neighbour"` // nil: none
	Gates     Gates      `yaml:"gates" json:"gates"`
	Arms      []Arm      `yaml:"arms" json:"arms"` // default: one, called "candidate", of one life

	Sentinels Sentinels         `yaml:"sentinels" json:"sentinels"`
	Faces     map[string]string `yaml:"faces" json:"faces"` // face of fault: gate, report or off; default: each face's own
	Device    DevicePlan        `yaml:"device" json:"device"`
	Watchdogs Watchdogs         `yaml:"watchdogs" json:"watchdogs"`

	Primary    string  `yaml:"primary" json:"primary"`         // unit of p0: PrimaryArm (default with more than one candidate life), PrimaryRequest or PrimaryHour
	P0         float64 `yaml:"p0" json:"p0"`                   // fault rate to exclude, per unit
	Confidence float64 `yaml:"confidence" json:"confidence"`   // default 0.95
	ReportOnly bool    `yaml:"report_only" json:"report_only"` // no p0: the verdict is fail or inconclusive, never pass

	Attempts     int      `yaml:"attempts" json:"attempts"`           // most lives, replaced ones included; default: a third more than planned, at least two more
	AfterFault   string   `yaml:"after_fault" json:"after_fault"`     // AfterFaultStop (default): a fault ends the run; AfterFaultGoOn: it ends its life alone
	LoadDeadline Duration `yaml:"load_deadline" json:"load_deadline"` // until the model has loaded; default 5m
	FinalProbe   *bool    `yaml:"final_probe" json:"final_probe"`     // two identical greedy requests after the load; default true

	path string
	file []byte
}

// Units of p0.
const (
	PrimaryArm     = "arm" // a server life
	PrimaryRequest = "request"
	PrimaryHour    = "hour" // of load
)

// What a fault ends.
const (
	AfterFaultStop = "stop"
	AfterFaultGoOn = "go_on"
)

// An Arm is one condition, of so many server lives. What it leaves out it has
// from the plan.
type Arm struct {
	Name      string            `yaml:"name" json:"name"`
	Role      string            `yaml:"role" json:"role"`       // RoleCandidate (default), RoleControl or RoleBaseline
	Package   string            `yaml:"package" json:"package"` // an installed package; default: the one that is soaked, of a baseline the one given as baseline
	Lives     int               `yaml:"lives" json:"lives"`     // default 1
	Parallel  int               `yaml:"parallel" json:"parallel"`
	Ctx       int               `yaml:"ctx" json:"ctx"`
	KVUnified *bool             `yaml:"kv_unified" json:"kv_unified"`
	Flags     []string          `yaml:"flags" json:"flags"` // after the plan's
	Env       map[string]string `yaml:"env" json:"env"`     // over the plan's
	Requests  int               `yaml:"requests" json:"requests"`
	Duration  Duration          `yaml:"duration" json:"duration"`
	InFlight  int               `yaml:"in_flight" json:"in_flight"`
	Neighbour *Neighbour        `yaml:"neighbour" json:"neighbour"` // kind none: none, whatever the plan has
}

// Roles of an arm. Only candidate arms count towards N.
const (
	RoleCandidate = "candidate"
	RoleControl   = "control"  // the same package under an easier condition; its faults fail the plan too
	RoleBaseline  = "baseline" // another package, to compare with; its faults are reported
)

// ServerPlan says how llama-server is started. Host, port, model, context and
// slots are set by the runner.
type ServerPlan struct {
	Entry     string            `yaml:"entry" json:"entry"`           // entry point of the package; default llama-server. "1bit" runs its front end: 1bit serve
	Parallel  int               `yaml:"parallel" json:"parallel"`     // slots; default 4
	KVUnified *bool             `yaml:"kv_unified" json:"kv_unified"` // -kvu; default true
	Ctx       int               `yaml:"ctx" json:"ctx"`               // tokens of all slots together; default 8192
	Flags     []string          `yaml:"flags" json:"flags"`
	Env       map[string]string `yaml:"env" json:"env"`
}

// Load is the load on the server, until either Requests have been sent or
// Duration is over.
type Load struct {
	Requests        int      `yaml:"requests" json:"requests"`
	Duration        Duration `yaml:"duration" json:"duration"`
	InFlight        int      `yaml:"in_flight" json:"in_flight"`               // default: server.parallel
	Schedule        string   `yaml:"schedule" json:"schedule"`                 // ScheduleClosed (default) or ScheduleBurst
	Every           Duration `yaml:"every" json:"every"`                       // ScheduleBurst: time between the beginnings of two bursts
	API             string   `yaml:"api" json:"api"`                           // APICompletion (default), APICompletions or APIChat
	Stream          bool     `yaml:"stream" json:"stream"`                     // take the answer as server-sent events
	Prompts         string   `yaml:"prompts" json:"prompts"`                   // PromptsUnique (default) or PromptsSharedPrefix
	PromptTokens    []int    `yaml:"prompt_tokens" json:"prompt_tokens"`       // lengths, used equally often; default [24, 175, 300]
	NPredict        []int    `yaml:"n_predict" json:"n_predict"`               // tokens to generate, drawn at random; default [4, 32, 96]
	LogprobsShare   *float64 `yaml:"logprobs_share" json:"logprobs_share"`     // share of requests that ask for log-probabilities; default 1
	Seed            uint64   `yaml:"seed" json:"seed"`                         // of prompts and lengths; default 1
	RequestDeadline Duration `yaml:"request_deadline" json:"request_deadline"` // an answer later than this is a hang; default 3m
}

// Schedules of a load.
const (
	ScheduleClosed = "closed" // every worker sends its next request when it has its answer
	ScheduleBurst  = "burst"  // InFlight requests at once, every Every, whatever the server does
)

// APIs of a server.
const (
	APICompletion  = "completion"       // llama-server's /completion
	APICompletions = "completions"      // OpenAI-compatible /v1/completions
	APIChat        = "chat_completions" // OpenAI-compatible /v1/chat/completions
)

// Shapes of prompts.
const (
	PromptsUnique       = "unique"
	PromptsSharedPrefix = "shared_prefix" // all begin alike: to show that such a load proves nothing
)

// Sentinels are fixed greedy requests whose answers are known: asked for twice
// on the quiet server before the load, one after the other, and again under it.
type Sentinels struct {
	Every        int     `yaml:"every" json:"every"`                 // every so many requests; 0: none
	PromptTokens []int   `yaml:"prompt_tokens" json:"prompt_tokens"` // one sentinel a length; default: the load's
	NPredict     int     `yaml:"n_predict" json:"n_predict"`         // default 24
	Tau          float64 `yaml:"tau" json:"tau"`                     // log-probability within which a difference under load is one of rounding; default 0.2
	Reference    string  `yaml:"reference" json:"reference"`         // evidence folder whose quiet answers these must equal; "": the life's own alone
}

// DevicePlan says where the model has to be.
type DevicePlan struct {
	Name   string `yaml:"name" json:"name"`           // such as CUDA0 or HRX0; "": any
	Layers string `yaml:"layers" json:"layers"`       // "all": every layer offloaded; "": any number
	Counts string `yaml:"counts_as" json:"counts_as"` // what another device is: DeviceFault (default) or DeviceInvalid
}

// What a model on another device than the plan's is.
const (
	DeviceFault   = "fault"
	DeviceInvalid = "invalid"
	AllLayers     = "all"
)

// Neighbour is the other job on the device.
type Neighbour struct {
	neighbour.Spec `yaml:",inline"`
	Lead           Duration `yaml:"lead" json:"lead"` // most time to wait for its first unit of work before the load; default 1m
}

// Gates say when a life counts at all.
type Gates struct {
	MinLaunchesPerSlot int      `yaml:"min_launches_per_slot" json:"min_launches_per_slot"` // default 1
	AllSlotsBusyShare  *float64 `yaml:"all_slots_busy_share" json:"all_slots_busy_share"`   // of the busy time; default 0.5
	NeighbourWork      int      `yaml:"neighbour_work" json:"neighbour_work"`               // units of its work during the load; default 1 if there is a neighbour
	GTTUsedGiB         *Band    `yaml:"gtt_used_gib" json:"gtt_used_gib"`                   // GTT in use at the first request; default: no gate
	EvictedMS          int64    `yaml:"evicted_ms" json:"evicted_ms"`                       // least time that queues of the server were evicted; 0: no gate
	MemAvailableGiB    float64  `yaml:"mem_available_gib" json:"mem_available_gib"`         // least at the first request; 0: no gate
}

// Watchdogs end a life for a cause outside of the server: it is invalid then.
type Watchdogs struct {
	MemAvailableGiB float64  `yaml:"mem_available_gib" json:"mem_available_gib"` // below: ended before the kernel ends something; 0: off
	TempC           float64  `yaml:"temp_c" json:"temp_c"`                       // at or above; default 93 where a GPU tells its temperature
	GTTGrowthGiB    float64  `yaml:"gtt_growth_gib" json:"gtt_growth_gib"`       // since the load began, at or above; 0: off
	Life            Duration `yaml:"life" json:"life"`                           // longest life; 0: off
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
	p, err := ParsePlan(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p.path = path
	return p, nil
}

// ParsePlan is LoadPlan of a text. Models that are not absolute lie in the working folder.
func ParsePlan(raw []byte) (*Plan, error) {
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
	set(&p.Server.Entry, "llama-server")
	set(&p.Server.Parallel, 4)
	set(&p.Server.Ctx, 8192)
	setTo(&p.Server.KVUnified, true)
	p.Load.setDefaults(p.Server.Parallel)
	p.Neighbour.setDefaults(p.Model)
	if n := p.Neighbour; n != nil && n.Kind != neighbour.None {
		set(&p.Gates.NeighbourWork, 1)
	}
	set(&p.Gates.MinLaunchesPerSlot, 1)
	setTo(&p.Gates.AllSlotsBusyShare, 0.5)
	if len(p.Arms) == 0 {
		p.Arms = []Arm{{Name: RoleCandidate}}
	}
	lives := 0
	for i := range p.Arms {
		a := &p.Arms[i]
		set(&a.Role, RoleCandidate)
		set(&a.Lives, 1)
		a.Neighbour.setDefaults(p.Model)
		lives += max(0, min(a.Lives, maxLives))
	}
	if p.Sentinels.Every != 0 {
		if p.Sentinels.PromptTokens == nil {
			p.Sentinels.PromptTokens = p.Load.PromptTokens
		}
		set(&p.Sentinels.NPredict, 24)
		set(&p.Sentinels.Tau, 0.2)
	}
	set(&p.Device.Counts, DeviceFault)
	if p.candidateLives() > 1 {
		set(&p.Primary, PrimaryArm)
	}
	set(&p.Primary, PrimaryRequest)
	set(&p.Confidence, 0.95)
	set(&p.Attempts, lives+max(2, (lives+2)/3))
	set(&p.AfterFault, AfterFaultStop)
	set(&p.LoadDeadline, Duration(5*time.Minute))
	setTo(&p.FinalProbe, true)
}

func (l *Load) setDefaults(parallel int) {
	set(&l.InFlight, parallel)
	set(&l.Schedule, ScheduleClosed)
	set(&l.API, APICompletion)
	set(&l.Prompts, PromptsUnique)
	set(&l.Seed, 1)
	set(&l.RequestDeadline, Duration(3*time.Minute))
	setTo(&l.LogprobsShare, 1)
	if l.PromptTokens == nil {
		l.PromptTokens = []int{24, 175, 300}
	}
	if l.NPredict == nil {
		l.NPredict = []int{4, 32, 96}
	}
}

func (n *Neighbour) setDefaults(model string) {
	if n == nil {
		return
	}
	set(&n.Kind, neighbour.Bench)
	switch n.Kind {
	case neighbour.Bench, neighbour.Server:
		set(&n.Model, model)
	case neighbour.Memory:
		set(&n.GiB, 1)
	}
	if n.Kind == neighbour.Server {
		set(&n.Workers, 2)
	}
	set(&n.Lead, Duration(time.Minute))
}

// candidateLives are those that count towards N.
func (p *Plan) candidateLives() int {
	n := 0
	for _, a := range p.Arms {
		if a.Role == RoleCandidate {
			n += max(0, a.Lives)
		}
	}
	return n
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

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/1bit-systems/pkg/acceptance/neighbour"
	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/packager"
	"github.com/1bit-systems/pkg/packager/store"
)

// resolved is a plan with everything that it leaves to the moment: what is
// written as plan.json, and whose digest is plan_sha256.
type resolved struct {
	Schema         int                `json:"schema"`
	Plan           *Plan              `json:"plan"`      // with its defaults
	PlanPath       string             `json:"plan_path"` // models lie beside it
	PlanFileSHA256 string             `json:"plan_file_sha256"`
	Package        identity           `json:"package"`
	Model          identity           `json:"model"`
	Arms           []resolvedArm      `json:"arms"`                // as those of the plan
	Reference      *resolvedReference `json:"reference,omitempty"` // of the sentinels
	Runner         identity           `json:"runner"`
	RequiredN      float64            `json:"required_n"` // units of the plan's primary that must be without a fault
	Notes          []string           `json:"notes"`

	sums *sums // of all that is named here, and of all files of the packages
}

// resolvedArm is what one arm of the plan runs.
type resolvedArm struct {
	Name          string             `json:"name"`
	Package       identity           `json:"package"`
	EngineVersion string             `json:"engine_version"` // of --version; "" if the program does not say
	Server        identity           `json:"server"`         // the program that is started; the libraries stand in the package
	ServerArgs    []string           `json:"server_args"`    // without host and port
	ServerEnv     []string           `json:"server_env"`
	Neighbour     *resolvedNeighbour `json:"neighbour"`

	pkg *store.Package
}

// resolvedNeighbour is the other job of an arm.
type resolvedNeighbour struct {
	Kind     string     `json:"kind"`
	Entries  []string   `json:"entries"`  // entry points of the package
	Programs []identity `json:"programs"` // of each
	Model    *identity  `json:"model"`
	Env      []string   `json:"env"`
}

// passedEnv are the variables of the runner's own environment that programs
// get: where they are, whose they are and where they keep their caches. All
// others would change what is tested without standing in the plan.
var passedEnv = []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"}

// defaultPath is used where the runner has no PATH.
const defaultPath = "PATH=/usr/local/bin:/usr/bin:/bin"

// environment gives the variables that are passed on, with the plan's own on
// top, sorted.
func environment(base []string, own map[string]string) []string {
	values := map[string]string{}
	for _, kv := range append([]string{defaultPath}, base...) {
		if name, value, ok := strings.Cut(kv, "="); ok && slices.Contains(passedEnv, name) {
			values[name] = value
		}
	}
	for name, value := range own {
		values[name] = value
	}
	env := make([]string, 0, len(values))
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// modelPath finds a model of the plan: ~/ is the home folder, anything else that
// is not absolute lies beside the plan.
func (p *Plan) modelPath(path string, env []string) (string, error) {
	rest, home := strings.CutPrefix(path, "~/")
	switch {
	case home:
		for _, kv := range env {
			if dir, ok := strings.CutPrefix(kv, "HOME="); ok {
				return filepath.Join(dir, rest), nil
			}
		}
		return "", fmt.Errorf("%w: model %s: no home folder is known (HOME)", ErrPlan, path)
	case filepath.IsAbs(path):
		return path, nil
	}
	return filepath.Abs(filepath.Join(filepath.Dir(p.path), path))
}

// resolve fixes everything that the plan leaves open. What is missing is
// refused with ErrPlan.
func resolve(ctx context.Context, o RunOptions) (*resolved, error) {
	p := o.Plan
	if err := whole(o.Package); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(p.path)
	if err != nil {
		return nil, fmt.Errorf("find the folder of the plan: %w", err)
	}
	r := &resolved{
		Schema: ledgerSchema, Plan: p, PlanPath: path, PlanFileSHA256: p.FileSHA256(),
		Package:   identity{Name: o.Package.Name, Digest: o.Package.Digest},
		RequiredN: p.RequiredN(), Notes: append([]string{}, p.Notes()...), sums: newSums(),
	}
	known := r.sums
	model, err := p.modelPath(p.Model, environment(o.Env, nil))
	if err != nil {
		return nil, err
	}
	if r.Model, err = known.identify(ctx, "model", model); err != nil {
		return nil, err
	}
	for i := range p.Arms {
		arm, err := o.resolveArm(ctx, known, p.life(i, 1), model)
		if err != nil {
			return nil, fmt.Errorf("arm %s: %w", p.Arms[i].Name, err)
		}
		if err := known.hold(arm.pkg); err != nil {
			return nil, err
		}
		r.Arms = append(r.Arms, *arm)
	}
	if p.Sentinels.Reference != "" {
		if r.Reference, err = p.resolveReference(ctx, known); err != nil {
			return nil, err
		}
	}
	if r.Runner, err = known.identify(ctx, "runner", "/proc/self/exe"); err != nil {
		return nil, err
	}
	r.Runner.Name = o.Runner
	return r, nil
}

// resolveArm finds what one arm runs.
func (o RunOptions) resolveArm(ctx context.Context, known *sums, l PlannedLife, model string) (*resolvedArm, error) {
	pkg, err := o.packageOf(ctx, l)
	if err != nil {
		return nil, err
	}
	if err := whole(pkg); err != nil {
		return nil, err
	}
	a := &resolvedArm{Name: l.Name, Package: identity{Name: pkg.Name, Digest: pkg.Digest}, pkg: pkg}
	program, err := pkg.Program(l.Server.Entry)
	if err != nil {
		return nil, fmt.Errorf("find the server: %w", err)
	}
	if a.Server, err = known.identify(ctx, "server", program); err != nil {
		return nil, err
	}
	a.ServerEnv, a.ServerArgs = environment(o.Env, l.Server.Env), serverArgs(l.Server, model)
	a.EngineVersion = o.version(ctx, pkg, program, a.ServerEnv)
	if l.Neighbour != nil {
		a.Neighbour, err = o.resolveNeighbour(ctx, known, pkg, l.Neighbour)
	}
	return a, err
}

// version is the engine's version line: what the program says, and if it is a
// front end that does not, what the package's llama-server says. One that cannot
// say it is judged by its start.
func (o RunOptions) version(ctx context.Context, pkg *store.Package, program string, env []string) string {
	programs := []string{program}
	if server, err := pkg.Program("llama-server"); err == nil && server != program {
		programs = append(programs, server)
	}
	for _, program := range programs {
		version, err := engine.Version(ctx, program, env)
		if err == nil {
			return version
		}
		o.Log.Info("read engine version", "error", err)
	}
	return ""
}

// whole refuses a package that is known to be broken.
func whole(pkg *store.Package) error {
	if pkg.State == store.StateBroken {
		return fmt.Errorf("package %s: %w: %s", pkg.Name, packager.ErrIntegrity, pkg.Detail)
	}
	return nil
}

// sensors are those of the host's GPUs.
func (o RunOptions) sensors() gpu.Sensors {
	s := gpu.Sensors{Root: o.Root}
	for _, kv := range environment(o.Env, nil) {
		path, ok := strings.CutPrefix(kv, "PATH=")
		if !ok || o.Root != "/" {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			smi := filepath.Join(dir, "nvidia-smi")
			if info, err := os.Stat(smi); err == nil && info.Mode()&0o111 != 0 && s.SMI == "" {
				s.SMI = smi
			}
		}
	}
	return s
}

// packageOf finds the package that an arm runs.
func (o RunOptions) packageOf(ctx context.Context, l PlannedLife) (*store.Package, error) {
	switch {
	case l.Package != "":
		if o.Find == nil {
			return nil, fmt.Errorf("%w: package %s: there is no store to look into", ErrPlan, l.Package)
		}
		pkg, err := o.Find(ctx, l.Package)
		if err != nil {
			return nil, fmt.Errorf("find package %s: %w", l.Package, err)
		}
		return pkg, nil
	case l.Role == RoleBaseline && o.Baseline == nil:
		return nil, fmt.Errorf("%w: it is a baseline: name its package in the plan, or give one with --baseline", ErrPlan)
	case l.Role == RoleBaseline:
		return o.Baseline, nil
	}
	return o.Package, nil
}

// neighbourEntries are the entry points that a kind of neighbour runs.
func neighbourEntries(kind string) []string {
	switch kind {
	case neighbour.Bench:
		return []string{"llama-bench"}
	case neighbour.Server:
		return []string{"llama-server"}
	case neighbour.Ops:
		return []string{"test-backend-ops"}
	}
	return []string{}
}

func (o RunOptions) resolveNeighbour(ctx context.Context, known *sums, pkg *store.Package, n *Neighbour) (*resolvedNeighbour, error) {
	r := &resolvedNeighbour{Kind: n.Kind, Entries: neighbourEntries(n.Kind), Programs: []identity{}, Env: environment(o.Env, n.Env)}
	for _, entry := range r.Entries {
		path, err := pkg.Program(entry)
		if err != nil {
			return nil, fmt.Errorf("find the neighbour's program: %w", err)
		}
		id, err := known.identify(ctx, "neighbour."+entry, path)
		if err != nil {
			return nil, err
		}
		r.Programs = append(r.Programs, id)
	}
	if n.Model != "" {
		path, err := o.Plan.modelPath(n.Model, r.Env)
		if err != nil {
			return nil, err
		}
		id, err := known.identify(ctx, "neighbour.model", path)
		if err != nil {
			return nil, err
		}
		r.Model = &id
	}
	return r, nil
}

// options are those that do not change from life to life.
func (r *resolvedNeighbour) options(n *Neighbour) neighbour.Options {
	o := neighbour.Options{Spec: n.Spec, Programs: map[string]string{}, Env: r.Env}
	for i, entry := range r.Entries {
		o.Programs[entry] = r.Programs[i].Name
	}
	if r.Model != nil {
		o.Model = r.Model.Name
	}
	return o
}

// serverArgs are the server's arguments without host and port.
func serverArgs(s ServerPlan, model string) []string {
	args := []string{"-m", model, "--ctx-size", fmt.Sprint(s.Ctx), "--parallel", fmt.Sprint(s.Parallel)}
	if s.Entry == frontEnd {
		args = append([]string{"serve"}, args...) // it says itself whether the slots share their memory
	} else if *s.KVUnified {
		args = append(args, "-kvu")
	}
	return append(args, s.Flags...)
}

// frontEnd is the entry point of a program that starts the server itself.
const frontEnd = "1bit"

// encode gives the bytes of plan.json.
func (r *resolved) encode() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the resolved plan: %w", err)
	}
	return append(b, '\n'), nil
}

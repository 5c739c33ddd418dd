package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// resolved is a plan with everything that it leaves to the moment: what is
// written as plan.json, and whose digest is plan_sha256.
type resolved struct {
	Schema         int       `json:"schema"`
	Plan           *Plan     `json:"plan"` // with its defaults
	PlanFileSHA256 string    `json:"plan_file_sha256"`
	Package        identity  `json:"package"`
	EngineVersion  string    `json:"engine_version"`
	Model          identity  `json:"model"`
	NeighbourModel *identity `json:"neighbour_model"`
	Runner         identity  `json:"runner"`
	ServerArgs     []string  `json:"server_args"` // without host and port
	ServerEnv      []string  `json:"server_env"`
	NeighbourArgs  []string  `json:"neighbour_args"`
	RequiredN      int       `json:"required_requests"`
	Notes          []string  `json:"notes"`
	paths          resolvedPaths
}

// identity names a thing and the digest of its bytes.
type identity struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Size   int64  `json:"size,omitempty"`
}

type resolvedPaths struct {
	server, bench, model, benchModel string
	env, benchEnv                    []string
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
	return filepath.Join(filepath.Dir(p.path), path), nil
}

// resolve fixes everything that the plan leaves open. What is missing is
// refused with ErrPlan.
func resolve(ctx context.Context, o RunOptions) (*resolved, error) {
	p := o.Plan
	r := &resolved{
		Schema: ledgerSchema, Plan: p, PlanFileSHA256: p.FileSHA256(),
		Package:   identity{Name: o.Package.Name, Digest: o.Package.Digest},
		RequiredN: p.RequiredRequests(), Notes: append([]string{}, p.Notes()...),
	}
	var err error
	if r.paths.server, err = o.Package.Program("llama-server"); err != nil {
		return nil, fmt.Errorf("find the server of package %s: %w", o.Package.Name, err)
	}
	r.paths.env = environment(o.Env, p.Server.Env)
	r.ServerEnv = r.paths.env
	if r.paths.model, err = p.modelPath(p.Model, r.paths.env); err != nil {
		return nil, err
	}
	if r.Model, err = identify(ctx, "model", r.paths.model); err != nil {
		return nil, err
	}
	r.ServerArgs = serverArgs(p, r.paths.model)
	if n := p.Neighbour; n != nil {
		if r.paths.bench, err = o.Package.Program("llama-bench"); err != nil {
			return nil, fmt.Errorf("find the neighbour's program of package %s: %w", o.Package.Name, err)
		}
		r.paths.benchEnv = environment(o.Env, n.Env)
		if r.paths.benchModel, err = p.modelPath(n.Model, r.paths.benchEnv); err != nil {
			return nil, err
		}
		id, err := identify(ctx, "neighbour.model", r.paths.benchModel)
		if err != nil {
			return nil, err
		}
		r.NeighbourModel = &id
		r.NeighbourArgs = append([]string{"-m", r.paths.benchModel, "-o", "jsonl"}, n.Args...)
	}
	if r.Runner, err = identify(ctx, "runner", "/proc/self/exe"); err != nil {
		return nil, err
	}
	r.Runner.Name = o.Runner
	return r, nil
}

// serverArgs are llama-server's arguments without host and port.
func serverArgs(p *Plan, model string) []string {
	args := []string{"-m", model, "--ctx-size", fmt.Sprint(p.Server.Ctx), "--parallel", fmt.Sprint(p.Server.Parallel)}
	if *p.Server.KVUnified {
		args = append(args, "-kvu")
	}
	return append(args, p.Server.Flags...)
}

// identify reads a file's size and digest.
func identify(ctx context.Context, key, path string) (identity, error) {
	digest, size, err := sumInput(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return identity{}, fmt.Errorf("%w: %s: there is no file %s", ErrPlan, key, path)
	case errors.Is(err, errNoFile):
		return identity{}, fmt.Errorf("%w: %s: %w", ErrPlan, key, err)
	case err != nil:
		return identity{}, fmt.Errorf("read %s: %w", key, err)
	}
	return identity{Name: path, Digest: "sha256:" + digest, Size: size}, nil
}

// encode gives the bytes of plan.json.
func (r *resolved) encode() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the resolved plan: %w", err)
	}
	return append(b, '\n'), nil
}

package incident

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/internal/secret"
	"github.com/1bit-systems/pkg/internal/ui"
)

// Entries of a package that a Shape starts.
const (
	entryServer   = "llama-server"
	entryFrontEnd = "1bit"
)

// maxLengthsShown bounds how many lengths of prompts a shape has.
const maxLengthsShown = 6

// shapeOf says what a run needs to be like the one that ended: how its server was started, what it was asked, and what
// was beside it.
func shapeOf(e *Evidence, r *Report, s *server) Shape {
	out := Shape{Entry: entryServer, Flags: []string{}, Env: map[string]string{}, PromptTokens: []int{}, NPredict: []int{}}
	out.command(e.Command)
	for _, v := range e.Settings {
		if v.Value != "" && !strings.Contains(v.Value, secret.Mask) && !runsHere(v.Key) && !e.inPackage(v.Value) {
			out.Env[v.Key] = v.Value
		}
	}
	if s != nil {
		out.PromptTokens = lengths(s.prompts)
		out.NPredict = lengths(s.answers)
		out.TasksBefore = max(0, s.launches-1)
		if s.startup != nil {
			out.Parallel = cmp.Or(s.startup.Slots, out.Parallel)
			out.KVUnified = s.startup.KVUnified
			if out.Context == 0 && s.startup.Context > 0 {
				out.Context = s.startup.Context
				if !out.KVUnified {
					out.Context *= max(1, s.startup.Slots)
				}
			}
		}
		if s.clock > 0 {
			out.UptimeS = s.clock.Seconds()
		}
	}
	if r.Ending != nil && r.Ending.UptimeS != nil {
		out.UptimeS = *r.Ending.UptimeS
	}
	out.neighbour(e, r)
	return out
}

// runsHere tells the variables that are of this host, not of the engine's behaviour.
func runsHere(key string) bool {
	return slices.Contains([]string{"ONEBIT_LLAMA_SERVER", "ONEBIT_PACKAGE", "PATH", "HOME", "USER", "LANG", "LD_LIBRARY_PATH", "INVOCATION_ID",
		"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"}, key) || secret.Named(key) || strings.HasPrefix(key, "LC_") || strings.HasPrefix(key, "XDG_")
}

// command reads the unit's command line. What a soak sets by itself (address, log, access) is left out.
func (out *Shape) command(argv []string) {
	i := slices.IndexFunc(argv, func(w string) bool { return path.Base(w) == entryServer || path.Base(w) == entryFrontEnd })
	if i < 0 {
		return
	}
	out.Entry = path.Base(argv[i])
	args := argv[i+1:]
	if out.Entry == entryFrontEnd && len(args) > 0 && args[0] == "serve" {
		args = args[1:]
	}
	for i := 0; i < len(args); i++ {
		name, value, joined := strings.Cut(args[i], "=")
		if !strings.HasPrefix(name, "-") {
			continue
		}
		takes := func() string {
			if !joined && i+1 < len(args) {
				i++
				value = args[i]
			}
			return value
		}
		switch name {
		case "-m", "--model":
			out.Model = takes()
		case "-np", "--parallel":
			out.Parallel = atoi(takes())
		case "-c", "--ctx-size":
			out.Context = atoi(takes())
		case "-kvu", "--kv-unified":
			out.KVUnified = true
		case "-no-kvu", "--no-kv-unified":
		case "--host", "--port", "--log-file", "--api-key", "--api-key-file", "--api-prefix", "--alias", "-a", "--ssl-key-file", "--ssl-cert-file",
			"--log-colors", "--slot-save-path", "--path", "-mu", "--model-url", "-hf", "-hfr", "--hf-repo", "-hff", "--hf-file", "-hft", "--hf-token":
			takes()
		case "--log-disable", "--no-webui", "--metrics", "--props", "--slots", "--no-slots":
		default:
			flag := args[i : i+1]
			if !joined && i+1 < len(args) && (!strings.HasPrefix(args[i+1], "-") || number(args[i+1])) {
				i++
				flag = args[i-1 : i+1]
			}
			if !strings.Contains(strings.Join(flag, " "), secret.Mask) { // without its value it would be another
				out.Flags = append(out.Flags, flag...)
			}
		}
	}
}

func number(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// lengths are a few that stand for those seen: the least, the most, and those between at even ranks.
func lengths(seen map[int]int) []int {
	all := slices.Sorted(maps.Keys(seen))
	out := []int{}
	n := min(len(all), maxLengthsShown)
	for i := range n {
		out = append(out, all[i*(len(all)-1)/max(1, n-1)])
	}
	return out
}

// neighbour names the kind of job that is closest to what used the GPU too when it ended.
func (out *Shape) neighbour(e *Evidence, r *Report) {
	at := e.GatheredAt
	if r.Ending != nil {
		at = r.Ending.At
	}
	for _, run := range e.Runs {
		if !run.spans(at) {
			continue
		}
		kind := kindOfJob(run.Workflow + " " + run.Name)
		out.Neighbour = cmp.Or(kind, "ops")
		out.Why = fmt.Sprintf("CI run %d (%s) spans the end", run.ID, ui.Clean(cut(run.Workflow, 100)))
		if kind == "" {
			out.Why += "; what it ran on the GPU is not told, and many different graphs and allocations come closest to a gate"
		}
		return
	}
	for _, c := range e.Claims {
		if holds(c, at) {
			out.Neighbour = cmp.Or(kindOfJob(c.Command+" "+c.Label), "bench")
			out.Why = fmt.Sprintf("claim %q held the GPU when it ended", ui.Clean(cut(c.Label, 100)))
			return
		}
	}
	for _, p := range e.Processes {
		if !p.Start.IsZero() && p.Start.After(at) {
			continue
		}
		out.Neighbour = cmp.Or(kindOfJob(p.Command), "server")
		out.Why = fmt.Sprintf("process %d has a GPU open, and had been started before the end", p.PID)
		return
	}
	out.Neighbour, out.Why = "none", "nothing else is known to have used the GPU when it ended"
}

// kindOfJob reads the kind from a command or a name, "" if it tells none.
func kindOfJob(s string) string {
	s = strings.ToLower(s)
	for _, k := range []struct{ words, kind string }{
		{"test-backend-ops", "ops"}, {"llama-bench", "bench"}, {"llama-server", "server"}, {" serve", "server"},
		{"bench", "bench"}, {"backend-ops", "ops"}, {"perplexity", "bench"},
	} {
		if strings.Contains(s, k.words) {
			return k.kind
		}
	}
	return ""
}

// begun is when the attempt began that the run tells the end of.
func (r Run) begun() time.Time {
	if r.Attempt > 1 && r.Started.After(r.Created) {
		return r.Started
	}
	return r.Created
}

// spans tells whether a run was under way at a moment. One that is not completed goes on.
func (r Run) spans(at time.Time) bool {
	return !r.begun().IsZero() && !at.Before(r.begun()) && (r.Status != "completed" && r.Status != "" || !at.After(r.Updated))
}

func holds(c claim.Record, at time.Time) bool {
	end := c.Until
	if c.Ended != nil {
		end = *c.Ended
	}
	return !at.Before(c.Since) && !at.After(end)
}

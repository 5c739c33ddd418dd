package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// Options say where to look, and what only the caller knows. Hosts, UID, User and Now are required.
type Options struct {
	Hosts  []*fleet.Host // the first is the one that acts are for; the others are looked at only
	Unseen []string      // why the services of a manager that should be among Hosts cannot be looked at

	Root string // "" is /: where proc, sys, dev, etc, run and var are

	UID        int    // who looks
	User       string // the name of that account
	RuntimeDir string // XDG_RUNTIME_DIR as the caller's environment has it
	BusAddress string // DBUS_SESSION_BUS_ADDRESS, likewise
	Now        time.Time

	Policy Policy

	// Journal reads the journal; nil: systemd.ReadJournal on this machine, and nothing where there is a Root.
	Journal func(ctx context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) (gaps []string, err error)

	Claim         claim.Lock // a Path of "" is the default one
	ClaimFloorGiB float64    // of MemAvailable, below which a claim is refused; 0: none
}

// The states of a check.
const (
	StateOK      = "ok"      // it looked, and all is well
	StateFound   = "found"   // it found something
	StateUnknown = "unknown" // it could not look, or not everywhere, and found nothing where it could
)

// CheckResult is how one check ended.
type CheckResult struct {
	Name  string `json:"name"`
	State string `json:"state"`
	Why   string `json:"why"` // what could not be looked at, and why; "" where everything was
}

// Result is what all checks found. Its JSON keys are a promise.
type Result struct {
	Findings []Finding     `json:"findings"` // in the order of the checks
	Checks   []CheckResult `json:"checks"`
	Policy   []string      `json:"policy"` // how the owner's policy is enforced here and what it does not protect from
}

// Checks are all checks, in the order in which their findings are shown: the host's first, since what is wrong there
// is often why a service is.
func Checks() []Check { return slices.Concat(hostChecks(), serviceChecks()) }

// Run runs every check. It fails only when ctx ends: what cannot be looked at is a check that says unknown. It returns
// soon then, also where a check waits for something that heeds no context, such as a file system that does not answer;
// that check is left to itself.
func Run(ctx context.Context, opts Options) (*Result, error) {
	type outcome struct {
		result *Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := run(ctx, opts)
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-done: // also what finishes or undoes an earlier command ends in order
		return o.result, o.err
	case <-time.After(windDown):
		return nil, fmt.Errorf("look at this host: %w", ctx.Err())
	}
}

// windDown is what a check is given to end by itself.
const windDown = time.Second

func run(ctx context.Context, opts Options) (*Result, error) {
	l := newLook(ctx, opts)
	r := &Result{Findings: []Finding{}, Checks: []CheckResult{}}
	for _, c := range Checks() {
		found, state := c.run(ctx, l)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("look at this host (%s): %w", c.Name, err)
		}
		r.Findings = append(r.Findings, found...)
		r.Checks = append(r.Checks, state)
	}
	r.Policy = policy(l)
	return r, nil
}

// run runs one check.
func (c Check) run(ctx context.Context, l *look) (found []Finding, state CheckResult) {
	add := func(where, remedy, what string, args ...any) {
		found = append(found, Finding{c.Name, where, fmt.Sprintf(what, args...), c.Reason, cmp.Or(remedy, c.Remedy)})
	}
	err := c.find(ctx, l, add)
	state = CheckResult{Name: c.Name, State: StateOK}
	if err != nil {
		state.State, state.Why = StateUnknown, strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if len(found) > 0 {
		state.State = StateFound
	}
	return found, state
}

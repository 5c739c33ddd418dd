package incident

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine/claim"
	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/internal/procfs"
	"github.com/1bit-systems/pkg/internal/secret"
	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// Services are those of one scope of a host. *fleet.Host is one.
type Services interface {
	Inspect(ctx context.Context, units ...string) ([]fleet.Inspection, error)
	History(ctx context.Context, unit string) ([]fleet.Record, error)
}

// GatherOptions say whose end is looked at, and where. Host, Unit, Journal and Now are required.
type GatherOptions struct {
	Host     Services
	Unit     string
	Scope    systemd.Scope                                       // of the unit
	UID      int                                                 // whose user manager it is, where root asks for another's
	Since    time.Time                                           // ends before it do not count; zero: the last one that the journal knows
	Lost     []Lost                                              // what a watch saw of the unit
	Until    time.Time                                           // nothing after it counts; zero: Now
	Packages func(ctx context.Context) ([]*store.Package, error) // that are installed; nil: none are known
	Journal  func(ctx context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) (gaps []string, err error)

	Root      string      // folder that holds proc, sys and etc; "": /
	Sensors   gpu.Sensors // of the same host
	Claims    []string    // histories of claims
	CI        *CI         // nil: no continuous integration is asked
	Incidents string      // folder of earlier ones, "": none
	Now       time.Time
	Program   string // version of the program that gathers
}

// The window around an end in which others' work counts.
const (
	windowBefore = time.Hour
	windowAfter  = 5 * time.Minute
)

// gatherer gathers one Evidence.
type gatherer struct {
	o       GatherOptions
	e       *Evidence
	service *fleet.Inspection // nil: the manager does not tell
	unknown error             // why the manager tells nothing of the unit
	end     end
	secrets secret.Known
}

// Gather looks at a unit, its log and its host. What cannot be read is a line in Evidence.Missing; the error is ctx's,
// or the manager's, such as systemd.ErrNoUnit, where the journal knows nothing of the unit either. No secret is in what it returns,
// as far as a name or a shape tells one. How much of the log is kept is bounded, see keepBefore.
func Gather(ctx context.Context, o GatherOptions) (*Evidence, error) {
	if o.Until.IsZero() || o.Until.After(o.Now) {
		o.Until = o.Now
	}
	g := &gatherer{o: o, e: &Evidence{
		Unit: unitName(o.Unit), Scope: cmp.Or(o.Scope, systemd.ScopeUser), Program: o.Program, GatheredAt: o.Now, NotBefore: o.Since, Lost: o.Lost,
	}}
	g.host(ctx)
	g.unit(ctx)
	g.journal(ctx)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("gather evidence about %s: %w", g.e.Unit, err)
	}
	if g.unknown != nil && len(g.e.Entries) == 0 {
		return nil, fmt.Errorf("gather evidence about %s: %w", g.e.Unit, g.unknown)
	}
	g.window()
	if boot := g.e.HostNow.Boot; g.e.Ended != nil && boot.After(*g.e.Ended) {
		g.miss("the host as it was: it was started again at %s, after the end; kernel, parameters and memory are those of now", utc(boot))
	}
	g.kernel(ctx)
	g.packages(ctx)
	g.gpus(ctx)
	g.claims()
	if o.CI != nil {
		var missing []string
		g.e.Runs, g.e.Actions, missing = o.CI.overlapping(ctx, g.e.From, g.e.To)
		g.e.Missing = append(g.e.Missing, missing...)
	}
	g.earlier()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("gather evidence about %s: %w", g.e.Unit, err)
	}
	g.mask()
	return g.e, nil
}

// unitName completes a name as systemctl does.
func unitName(name string) string {
	if strings.HasSuffix(name, ".service") {
		return name
	}
	return name + ".service"
}

func (g *gatherer) miss(format string, args ...any) {
	g.e.Missing = append(g.e.Missing, fmt.Sprintf(format, args...))
}

// window is around the end, else the time before now.
func (g *gatherer) window() {
	if g.end.last.IsZero() {
		g.e.From, g.e.To = g.o.Until.Add(-windowBefore), g.o.Until
		if since := g.o.Since; !since.IsZero() && since.Before(g.e.From) {
			g.e.From = since
		}
		return
	}
	ended := g.end.last
	g.e.Ended = &ended
	g.e.From, g.e.To = g.end.first.Add(-windowBefore), earliest(g.end.last.Add(windowAfter), g.o.Until)
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// gpus lists the GPUs and who has one open, the unit's processes left out.
func (g *gatherer) gpus(ctx context.Context) {
	var pids []int
	if g.service != nil && g.service.Loaded != nil {
		var err error
		if pids, err = systemd.Processes(g.path("proc"), g.path("sys/fs/cgroup"), g.service.Loaded); err != nil {
			g.miss("which of the processes that have a GPU open are the unit's own: %v", err)
		}
	}
	var err error
	if g.e.Processes, err = g.o.Sensors.Residents(ctx, pids...); err != nil {
		g.miss("GPU processes: %v", err)
	}
}

func (g *gatherer) claims() {
	for _, path := range g.o.Claims {
		records, err := claim.ReadHistory(path, g.e.From, g.e.To)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			g.miss("claims: %v", err)
		}
		g.e.Claims = append(g.e.Claims, records...)
	}
}

func (g *gatherer) path(parts ...string) string {
	return filepath.Join(cmp.Or(g.o.Root, "/"), filepath.Join(parts...))
}

// zone is the IANA name of the host's time zone.
func zone(root string) string {
	root = cmp.Or(root, "/")
	if target, err := os.Readlink(filepath.Join(root, "etc/localtime")); err == nil {
		if _, name, ok := strings.Cut(target, "/zoneinfo/"); ok {
			return name
		}
	}
	return procfs.FirstLine(filepath.Join(root, "etc/timezone"))
}

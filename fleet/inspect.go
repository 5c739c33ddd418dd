package fleet

import (
	"context"

	"github.com/1bit-systems/pkg/packager/store"
	"github.com/1bit-systems/pkg/systemd"
)

// Inspection is a service with what it was read from, for those who look closer than status does. Its JSON is that of the
// service.
type Inspection struct {
	Service
	Loaded   *systemd.Unit     // nil where the unit is gone or could not be read
	Settings *systemd.Settings // of the files; nil with Loaded
	Package  *store.Package    // the armed one, nil where none is or it is not installed
	Findings []Finding         // those that Service.Warnings are made of

	view *view
}

// Given says what gives a variable to the service's server: to the next one, or else to the one that runs. ok is false
// where nothing does, or nobody can tell.
func (i Inspection) Given(key string) (g Given, ok bool) {
	if i.view == nil {
		return Given{}, false
	}
	return i.view.given(key)
}

// Examination is a [Survey] with what its services were read from.
type Examination struct {
	Services   []Inspection
	Lookalikes []Lookalike
	Notes      []string // what could not be seen
}

// Inspect is [Host.Status] for those who look closer. The manager is asked for all that it knows of a unit.
func (h *Host) Inspect(ctx context.Context, units ...string) ([]Inspection, error) {
	if len(units) > 0 {
		return h.inspect(ctx, units)
	}
	x, err := h.Examine(ctx)
	if err != nil {
		return nil, err
	}
	return x.Services, nil
}

// Examine is [Host.Survey] for those who look closer. As in [SurveyAll], a manager of somebody else's that does not
// answer is left to itself.
func (h *Host) Examine(ctx context.Context) (*Examination, error) {
	whole := func(ctx context.Context) (*Examination, error) { return h.examine(ctx, true) }
	if h.Owner == "" {
		return whole(ctx)
	}
	return within(ctx, foreignWait, whole)
}

// inspection is a service with what it was read from; v is nil where there was no unit to read.
func inspection(s *Service, v *view) *Inspection {
	if s == nil {
		return nil
	}
	out := &Inspection{Service: *s, Findings: s.findings}
	if v == nil {
		return out
	}
	out.Loaded, out.Settings, out.view = v.loaded, v.settings, v
	if s.Armed != nil {
		out.Package = v.place.pkg(s.Armed.Path)
	}
	return out
}

// services are the services alone.
func services(all []Inspection) []Service {
	var out []Service
	for _, one := range all {
		out = append(out, one.Service)
	}
	return out
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/engine"
)

// resultRuns is the result of a restart whose service stays up and whose answers could not be checked. It is no proof
// that the package serves.
const resultRuns = "runs"

// probe asks for real answers, and looks at the unit meanwhile. What cannot be checked is in w.unchecked.
func (w *watched) probe(ctx context.Context, c *engine.Client) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var looking errgroup.Group
	looking.Go(func() error {
		for pause(asking, 10*healthPoll) == nil {
			if _, _, err := w.look(asking); err != nil && asking.Err() == nil {
				stop()
				return err
			}
		}
		return nil
	})
	unchecked, err := w.h.probe(asking, c)
	stop()
	if seen := looking.Wait(); seen != nil {
		return seen
	}
	w.unchecked = or(w.unchecked, unchecked)
	// A server that went away says more by how it ended than by a broken connection.
	var fault *engine.ProbeError
	if errors.As(err, &fault) && fault.Face == engine.FaceTransport {
		if err := w.gone(ctx); err != nil {
			return err
		}
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if fault != nil {
		return failf("%s", reason(fault))
	}
	return failf("%v", err)
}

// probe asks a server for real answers, which may take as long as a load. unchecked says why none could be judged:
// only a server that others kept busy, and that got on with their work, is excused for giving none.
func (h *Host) probe(ctx context.Context, c *engine.Client) (unchecked string, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.loadDeadline())
	defer cancel()
	others := workOf(ctx, c)
	for {
		err := engine.Probe(ctx, c)
		var fault *engine.ProbeError
		if err == nil || !errors.As(err, &fault) {
			return "", err
		}
		for status, why := range map[string]string{
			"status 401": "it wants a key that is not known here", "status 403": "it wants a key that is not known here",
			"status 501": "it does not do completions",
		} {
			if strings.HasPrefix(fault.Detail, status) {
				return why, nil
			}
		}
		if fault.Face == engine.FaceContext || fault.Face == engine.FaceLoading {
			if pause(ctx, 10*healthPoll) == nil {
				continue
			}
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), quickAnswer)
			defer cancel()
			if others.goesOn(workOf(after, c)) {
				return "it was busy with others' requests all the time", nil
			}
			if fault.Face == engine.FaceTransport {
				fault.Detail = fmt.Sprintf("a completion was asked for and did not end within %s", h.loadDeadline())
			}
		}
		return "", fault
	}
}

// work is what the slots of a server do, by slot.
type work map[int]engine.SlotState

// workOf is what a server works on at a moment, as far as it tells at once.
func workOf(ctx context.Context, c *engine.Client) work {
	ctx, cancel := context.WithTimeout(ctx, quickAnswer)
	defer cancel()
	slots, err := c.Slots(ctx)
	if err != nil {
		return nil
	}
	out := work{}
	for _, s := range slots {
		out[s.ID] = s
	}
	return out
}

// goesOn tells whether something that was worked on has ended or got further since.
func (w work) goesOn(now work) bool {
	for id, s := range w {
		if later, there := now[id]; s.Processing && there && later != s {
			return true
		}
	}
	return false
}

// reason puts a fault into words.
func reason(fault *engine.ProbeError) string {
	switch fault.Face {
	case engine.FaceNaN:
		return "serves null log-probabilities (NaN): " + fault.Detail
	case engine.FaceUTF8:
		return "serves " + fault.Detail
	case engine.FaceDiffers:
		return "does not repeat itself: " + fault.Detail
	}
	return "does not answer as it must: " + fault.Error()
}

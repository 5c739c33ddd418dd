package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// Survey is what a look at all services of some managers finds. Its JSON keys are a promise.
type Survey struct {
	Services   []Service   `json:"services"`
	Lookalikes []Lookalike `json:"lookalikes"` // units that look like engines and run no package
	Notes      []string    `json:"notes"`      // what could not be seen
}

// Survey looks at every service of the scope that has anything to do with a package or looks as if it should. What an
// earlier command left half done is finished or undone first, unless another command is at work on that unit. The
// error wraps [systemd.ErrNoBus] where no manager answers.
func (h *Host) Survey(ctx context.Context) (*Survey, error) {
	x, err := h.examine(ctx, false)
	if err != nil {
		return nil, err
	}
	return &Survey{Services: services(x.Services), Lookalikes: x.Lookalikes, Notes: x.Notes}, nil
}

// examine is the look of Survey and of Examine; whole asks the manager for all of every service of ours.
func (h *Host) examine(ctx context.Context, whole bool) (*Examination, error) {
	m, err := h.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for services that run a package: %w", err)
	}
	defer m.Close()
	l, err := h.look(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("look for services that run a package: %w", err)
	}
	l.whole = whole
	all, err := l.all(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for services that run a package: %w", err)
	}
	x := &Examination{}
	for _, one := range all {
		switch {
		case one.service != nil:
			x.Services = append(x.Services, *one.service)
		case one.lookalike != nil:
			x.Lookalikes = append(x.Lookalikes, *one.lookalike)
		}
	}
	if l.unseen > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("unreadable: the processes of %d services of the %s belong to other users; one whose files name no package may run from one all the same",
			l.unseen, h.whose()))
	}
	return x, nil
}

// whose names the manager in a sentence.
func (h *Host) whose() string {
	switch {
	case h.Owner != "":
		return "user manager of " + h.Owner
	case h.Scope == systemd.ScopeSystem:
		return "system manager"
	}
	return "user manager"
}

// SurveyAll looks at the services of several hosts at once, in their order. A host without a manager is a note, as long
// as another one has a manager; the error then is the first host's. So is a manager of somebody else's, whatever is
// wrong with it: its owner can put anything in its place, also what never answers.
func SurveyAll(ctx context.Context, hosts ...*Host) (*Survey, error) {
	surveys, errs := make([]*Survey, len(hosts)), make([]error, len(hosts))
	var group sync.WaitGroup
	for i, h := range hosts {
		group.Go(func() {
			if h.Owner == "" {
				surveys[i], errs[i] = h.Survey(ctx)
				return
			}
			surveys[i], errs[i] = within(ctx, foreignWait, h.Survey)
		})
	}
	group.Wait()
	out, answered := &Survey{}, false
	for i, s := range surveys {
		switch {
		case s != nil:
			answered = true
			out.Services = append(out.Services, s.Services...)
			out.Lookalikes = append(out.Lookalikes, s.Lookalikes...)
			out.Notes = append(out.Notes, s.Notes...)
		case errors.Is(errs[i], systemd.ErrNoBus), hosts[i].Owner != "" && ctx.Err() == nil:
			out.Notes = append(out.Notes, fmt.Sprintf("the services of the %s are not shown: %v", hosts[i].whose(), errs[i]))
		default:
			return nil, errs[i]
		}
	}
	if !answered {
		return nil, errs[0]
	}
	return out, nil
}

// foreignWait is how long a look at the services of somebody else may take. A busy manager is given 25 s to answer at all.
const foreignWait = 30 * time.Second

// within is a look that is left to itself when it takes longer: what is sent to a manager that reads nothing cannot be
// taken back.
func within[T any](ctx context.Context, limit time.Duration, look func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it does not answer within %v", limit))
	type answer struct {
		seen T
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		defer cancel()
		seen, err := look(ctx)
		done <- answer{seen, err}
	}()
	select {
	case a := <-done:
		return a.seen, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-done: // it ended by itself
		return a.seen, a.err
	default:
		var none T
		return none, context.Cause(ctx)
	}
}

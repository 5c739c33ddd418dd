package systemd

import (
	"context"
	"errors"
	"fmt"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// errGone is the cause when the connection ends while a job is awaited.
var errGone = errors.New("the connection to systemd ended")

// jobQueue is what jobs are queued and awaited by. go-systemd wants two connections for it: one for calls, which
// is the manager's, and one for the signals that say how a job ended.
type jobQueue struct {
	conn    *sdbus.Conn
	signals *godbus.Conn
}

func newJobQueue(calls *godbus.Conn, d *dialler) (*jobQueue, error) {
	q := &jobQueue{}
	first := true
	conn, err := sdbus.NewConnection(func() (*godbus.Conn, error) {
		if first {
			first = false
			return calls, nil
		}
		var err error
		q.signals, err = d.dial()
		return q.signals, err
	})
	q.conn = conn
	return q, err
}

// Start starts a unit and waits for the job to end. The result is systemd's word for it: done,
// failed, timeout, canceled, dependency, skipped, …. An error means that the job could not be
// queued or its end not be awaited, and says nothing about how it ends; where the unit does not
// exist it wraps ErrNoUnit.
func (m *Manager) Start(ctx context.Context, unit string) (string, error) {
	return m.await(ctx, "start", unit, (*sdbus.Conn).StartUnitContext)
}

// Stop is Start's opposite.
func (m *Manager) Stop(ctx context.Context, unit string) (string, error) {
	return m.await(ctx, "stop", unit, (*sdbus.Conn).StopUnitContext)
}

// Restart stops a unit, starts it again and waits; a stopped one it starts. The result "done"
// means that the start succeeded in the sense of the unit's Type: of Type=simple only that the
// process was forked.
func (m *Manager) Restart(ctx context.Context, unit string) (string, error) {
	return m.await(ctx, "restart", unit, (*sdbus.Conn).RestartUnitContext)
}

// await queues a job and waits for its end. The channel has room for the one result, so that
// go-systemd, which sends while it holds its lock, never waits for us.
func (m *Manager) await(ctx context.Context, verb, name string,
	queue func(c *sdbus.Conn, ctx context.Context, name, mode string, end chan<- string) (int, error)) (string, error) {
	unit := unitName(name)
	jobs, err := m.jobs()
	if err != nil {
		if m.calls.Context().Err() != nil {
			err = errGone
		}
		return "", fmt.Errorf("%s %s: %w", verb, unit, err)
	}
	end := make(chan string, 1)
	if _, err := queue(jobs.conn, ctx, unit, "replace", end); isNoUnit(err) {
		return "", fmt.Errorf("%s %s: %w: %v", verb, unit, ErrNoUnit, err)
	} else if err != nil {
		if m.calls.Context().Err() != nil {
			err = errGone
		}
		return "", fmt.Errorf("%s %s: %w", verb, unit, err)
	}
	select {
	case result := <-end:
		return result, nil
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the %s of %s: %w", verb, unit, ctx.Err())
	case <-jobs.signals.Context().Done():
		return "", fmt.Errorf("wait for the %s of %s: %w", verb, unit, errGone)
	}
}

// Reload has systemd read all unit files again: everyone's pending edits, not only ours. It
// returns when that is done.
func (m *Manager) Reload(ctx context.Context) error {
	if err := m.call(ctx, "Reload", nil); err != nil {
		return fmt.Errorf("reload the %s manager: %w", m.Scope(), err)
	}
	return nil
}

// ResetFailed forgets that a unit failed and how often it was started of late, so that it may be
// started again after a start limit was hit. Of a unit that is not loaded there is nothing to
// forget.
func (m *Manager) ResetFailed(ctx context.Context, unit string) error {
	name := unitName(unit)
	if err := m.call(ctx, "ResetFailedUnit", []any{name}); err != nil && !isNoUnit(err) {
		return fmt.Errorf("reset the failed state of %s: %w", name, err)
	}
	return nil
}

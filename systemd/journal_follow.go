package systemd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A journalctl that follows and ends is started again, soon at first; it is given up when it keeps giving nothing.
const (
	followPause = 100 * time.Millisecond
	followTries = 6
)

// FollowJournal hands the entries that a query asks for to f as they are written: those after q.After, or from q.Since
// on, or from now on where both are empty. It goes on, also over rotations and restarts of journald, until ctx ends,
// which is no error, or f returns one. The error wraps ErrNoJournal where there is none to read.
func FollowJournal(ctx context.Context, q JournalQuery, f func(Entry) error) error {
	return hostJournal().follow(ctx, q, f)
}

func (j journal) follow(ctx context.Context, q JournalQuery, f func(Entry) error) error {
	q.Until = time.Time{}
	if _, err := q.args(); err != nil {
		return err
	}
	if _, err := j.store(); err != nil {
		return err
	}
	if q.After == "" && q.Since.IsZero() {
		last, _, err := j.edge(ctx, "--lines=1")
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		q.After = last.Cursor
	}
	for tries := 1; ; tries++ {
		before := q.After
		var stop error
		err := j.followOnce(ctx, &q, func(e Entry) error {
			stop = f(e)
			return stop
		})
		switch {
		case ctx.Err() != nil && (stop == nil || errors.Is(stop, ctx.Err())):
			return nil
		case stop != nil:
			return stop
		case errors.Is(err, ErrNoJournal):
			return err
		}
		if q.After != before {
			tries = 1
		}
		if tries == followTries {
			return fmt.Errorf("follow the journal: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(j.pause << tries):
		}
	}
}

// followOnce follows until journalctl ends, and leaves in q where to go on.
func (j journal) followOnce(ctx context.Context, q *JournalQuery, f func(Entry) error) error {
	args, err := q.args()
	if err != nil {
		return err
	}
	after := q.After
	said, err := j.run(ctx, append([]string{"--follow", "--no-tail"}, args...), func(out io.Reader) error {
		return readEntries(out, &journalGaps{}, func(e Entry) error {
			if e.Cursor == after {
				return nil
			}
			wanted := q.wants(e)
			q.After = e.Cursor
			if !wanted {
				return nil
			}
			return f(e)
		})
	})
	if err == nil {
		err = fmt.Errorf("%s ended", j.program)
	}
	return fmt.Errorf("%w%s", err, inBrackets(said))
}

package incident

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/systemd"
)

// A watch follows what managers say of their units in the journal, and writes one report for each bad end of a service
// of ours. Time is the journal's, so that what happened while nobody watched is reported alike when the watch begins
// anew: its state is the place up to which everything has been dealt with, and which ends the latest reports cover.
//
//	a bad end ──settles──► report ──another within a minute──► counted ──a minute of quiet, giving up, an hour──► report
//	                          │
//	                          └─────a minute of quiet─────► over
//
// A report that cannot be written, for a full disk or a manager that does not answer, is tried again, and the place in
// the journal stays in front of it.

// Bounds of a watch.
const (
	settleTime  = 30 * time.Second // without news of a unit, until its end is reported
	loopGap     = time.Minute      // ends that follow one another within it are one loop of crashes
	loopReport  = time.Hour        // such a loop is reported when it is over, and so often while it lasts
	mostReports = 5                // of a unit in loopReport: from then on its ends are counted, however far apart
	gatherTime  = 5 * time.Minute  // for one report, the question to a CI included
	unitsFresh  = 30 * time.Second // for so long the list of our services is believed where it lacks a unit
	firstRetry  = 10 * time.Second // until a report that could not be made is tried again; doubled each time
	lastRetry   = 10 * time.Minute
	saveEvery   = time.Minute // the place in the journal is saved at least so often
)

// Source is one manager whose services are watched.
type Source struct {
	Name  string                                      // of the manager, for the state: user, system, user 1000
	Query systemd.JournalQuery                        // its scope and, where it is another's, its user
	Units func(ctx context.Context) ([]string, error) // the services of ours that it has
	// Gather is [Gather] for a unit of it. Ends before since do not count, nor what the journal says after until.
	Gather func(ctx context.Context, unit string, since, until time.Time) (*Evidence, error)
}

// WatchOptions say what is watched and where reports go. Sources, Follow, Incidents, State and Now are required.
type WatchOptions struct {
	Sources   []Source
	Follow    func(ctx context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) error // such as [systemd.FollowJournal]
	Incidents string                                                                               // folder of the reports
	State     string                                                                               // file that remembers what has been dealt with
	Now       func() time.Time
	Log       *slog.Logger                           // nil: nothing is logged
	Written   func(dir string, ends int, r *Report)  // told of each report and how many ends it is about; nil: nobody is
	Settle    time.Duration                          // without news of a unit, until its end is reported; 0: 30 s
	write     func(string, *Evidence, *Report) error // nil: Write
}

// Watch goes on until ctx ends, which is no error. The error wraps [systemd.ErrNoJournal] where no journal can be
// followed; a journal of several that cannot be is logged.
func Watch(ctx context.Context, o WatchOptions) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Settle <= 0 {
		o.Settle = settleTime
	}
	if o.write == nil {
		o.write = Write
	}
	state, err := readWatchState(o.State)
	if err != nil {
		return err
	}
	w := &watch{WatchOptions: o, state: state, news: make(chan arrival)}
	for _, s := range o.Sources {
		w.sources = append(w.sources, &watched{Source: s, track: newTrack(state.of(s.Name), o.Settle, o.Now())})
	}
	group, ctx := errgroup.WithContext(ctx)
	lost := make(chan error, len(w.sources))
	for _, s := range w.sources {
		q := s.Query
		q.IDs = trackedIDs()
		if q.After = s.last.cursor; q.After == "" {
			q.Since = s.begun
		}
		group.Go(func() error {
			lost <- w.follow(ctx, s, q)
			return nil
		})
	}
	w.save(true) // so that it is known when the watch began
	group.Go(func() error { return w.loop(ctx, lost) })
	return group.Wait()
}

type watch struct {
	WatchOptions
	sources []*watched
	state   *watchState
	news    chan arrival
	saved   time.Time
}

// watched is a source and what is known of its units.
type watched struct {
	Source
	*track
	ours  []string
	asked time.Time // when the manager was asked for ours
}

type arrival struct {
	from  *watched
	entry systemd.Entry
}

// follow hands on what the journal has for a source.
func (w *watch) follow(ctx context.Context, s *watched, q systemd.JournalQuery) error {
	return w.Follow(ctx, q, func(e systemd.Entry) error {
		select {
		case w.news <- arrival{s, e}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// loop takes the entries in, one after the other, and deals with what is due in between. The clock of the host counts
// only while the journal is silent: one that is read late is ahead of it.
func (w *watch) loop(ctx context.Context, lost <-chan error) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	left, silent := len(w.sources), true
	var gone []error
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-lost:
			if ctx.Err() != nil {
				return nil
			}
			if err == nil {
				err = errors.New("the journal ended")
			}
			w.Log.Warn("a journal is not followed", "error", err)
			gone = append(gone, err)
			if left--; left == 0 {
				return fmt.Errorf("watch for bad ends: %w", errors.Join(gone...))
			}
		case a := <-w.news:
			silent = false
			w.settle(ctx, a.from, a.entry.At)
			a.from.take(a.entry)
		case <-tick.C:
			if !silent {
				silent = true
				continue
			}
			for _, s := range w.sources {
				w.settle(ctx, s, w.Now())
			}
			w.save(false)
		}
	}
}

// settle reports what is due when the journal is at a moment. What fails is tried again later.
func (w *watch) settle(ctx context.Context, s *watched, at time.Time) {
	for _, d := range s.due(at) {
		if w.Now().Before(d.retry) {
			continue
		}
		ours, err := w.isOurs(ctx, s, d.unit)
		if err == nil && !ours {
			s.forget(d)
			continue
		}
		if err == nil {
			err = w.report(ctx, s, d)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.wait = min(max(2*d.wait, firstRetry), lastRetry)
			d.retry = w.Now().Add(d.wait)
			w.Log.Error("an incident could not be reported, and is tried again", "unit", d.unit, "ended", d.first, "again", d.wait, "error", err)
			continue
		}
		s.reported(d, at)
		w.save(true)
	}
}

// isOurs tells whether a unit is one of our services. A manager is asked anew where its last list lacks the unit.
func (w *watch) isOurs(ctx context.Context, s *watched, unit string) (bool, error) {
	if slices.Contains(s.ours, unit) {
		return true, nil
	}
	if now := w.Now(); s.asked.IsZero() || now.Sub(s.asked) >= unitsFresh || now.Before(s.asked) {
		units, err := s.Units(ctx)
		if err != nil {
			return false, fmt.Errorf("list the services of the %s manager: %w", s.Name, err)
		}
		s.ours, s.asked = units, now
	}
	return slices.Contains(s.ours, unit), nil
}

// report makes one report of the ends of a unit that are not yet covered by one.
func (w *watch) report(ctx context.Context, s *watched, d *loss) error {
	ctx, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	e, err := s.Gather(ctx, d.unit, d.since(), d.news.Add(w.Settle))
	if err != nil {
		return err
	}
	r := Analyse(e)
	dir := filepath.Join(w.Incidents, FolderName(d.unit, d.latest))
	if err := w.write(dir, e, r); errors.Is(err, fs.ErrExist) {
		return nil // written before the state could be
	} else if err != nil {
		return err
	}
	w.Log.Info("wrote an incident", "unit", d.unit, "folder", dir, "signature", r.Signature, "ends", d.ends)
	if w.Written != nil {
		w.Written(dir, max(d.ends, 1), r)
	}
	return nil
}

// save writes the state, now or when it has not been for a while. What is lost without it is only that reports are
// made, and found to be there, once more.
func (w *watch) save(now bool) {
	if at := w.Now(); !now && at.Sub(w.saved) < saveEvery && !at.Before(w.saved) {
		return
	}
	for _, s := range w.sources {
		w.state.put(s.Name, s.track)
	}
	w.saved = w.Now()
	if err := w.state.write(w.State); err != nil {
		w.Log.Warn("the state of the watch is not saved", "error", err)
	}
}

package incident

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/1bit-systems/pkg/fleet"
	"github.com/1bit-systems/pkg/systemd"
)

// A watch follows what managers say of their units in the journal, and writes one report for each bad end of a service
// of ours. Time is the journal's, so that what happened while nobody watched is reported alike when the watch begins
// anew: its state is the place up to which everything has been dealt with, and which ends the latest reports cover.
//
// A server that dies under a front end that outlives it is seen among the processes, see [known].
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
	listEvery   = 5 * time.Minute
	sooner      = 12              // looks, until services are listed where one has started that is none of them
	lookEvery   = 5 * time.Second // at the processes of our services
	unreadLimit = time.Hour       // for so long a report waits for a journal that can be read in part only
)

// Source is one manager whose services are watched.
type Source struct {
	Name    string                                      // of the manager, for the state: user, system, user 1000
	Query   systemd.JournalQuery                        // its scope and, where it is another's, its user
	Units   func(ctx context.Context) ([]string, error) // the services of ours that it has
	Running func(ctx context.Context, units ...string) ([]fleet.Running, error)
	// Gather is [Gather] for a unit of it. Ends before since do not count, nor what the journal says after until.
	Gather func(ctx context.Context, unit string, since, until time.Time, lost []Lost) (*Evidence, error)
}

// WatchOptions say what is watched and where reports go. Sources, Follow, Incidents, State and Now are required.
type WatchOptions struct {
	Sources   func() []Source                                                                      // the managers that run; asked again every five minutes
	Follow    func(ctx context.Context, q systemd.JournalQuery, f func(systemd.Entry) error) error // such as [systemd.FollowJournal]
	Incidents string                                                                               // folder of the reports
	State     string                                                                               // file that remembers what has been dealt with
	Now       func() time.Time
	Log       *slog.Logger                           // nil: nothing is logged
	Written   func(dir string, ends int, r *Report)  // told of each report and how many ends it is about; nil: nobody is
	Settle    time.Duration                          // without news of a unit, until its end is reported; 0: 30 s
	Look      time.Duration                          // between two looks at the processes; 0: 5 s
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
	if o.Look <= 0 {
		o.Look = lookEvery
	}
	if o.write == nil {
		o.write = Write
	}
	state, err := readWatchState(o.State)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	w := &watch{WatchOptions: o, state: state, news: make(chan arrival), lost: make(chan error), begin: group.Go}
	w.find(ctx)
	w.save(true) // so that it is known when the watch began
	group.Go(func() error { return w.loop(ctx) })
	return group.Wait()
}

type watch struct {
	WatchOptions
	sources []*watched
	state   *watchState
	news    chan arrival
	lost    chan error         // a journal that is no longer followed
	begin   func(func() error) // runs a function beside the loop
	found   time.Time          // when the sources were asked for
	saved   time.Time
}

// watched is a source and what is known of its units.
type watched struct {
	Source
	*track
	heard atomic.Bool // its journal gave an entry
	asked time.Time   // when the manager told which services are ours
	tried time.Time   // when it was asked
	next  time.Time   // when its processes are looked at
}

type arrival struct {
	from  *watched
	entry systemd.Entry
}

// find begins to watch the managers that are not watched yet.
func (w *watch) find(ctx context.Context) {
	since := w.found // what a manager that has come meanwhile has said counts
	if w.found = w.Now(); since.IsZero() {
		since = w.found
	}
	for _, source := range w.Sources() {
		if slices.ContainsFunc(w.sources, func(s *watched) bool { return s.Name == source.Name }) {
			continue
		}
		s := &watched{Source: source, track: newTrack(w.state.of(source.Name), w.Settle, since)}
		w.sources = append(w.sources, s)
		q := s.Query
		q.IDs = trackedIDs()
		if q.After = s.last.cursor; q.After == "" {
			q.Since = s.begun
		}
		w.begin(func() error {
			place := q.After
			err := w.follow(ctx, s, q)
			if err != nil && ctx.Err() == nil && place != "" && !s.heard.Load() && !errors.Is(err, systemd.ErrNoJournal) {
				w.Log.Warn("the place in the journal is lost, so it is read from the beginning of the watch on", "source", s.Name, "error", err)
				q.After, q.Since = "", s.begun
				err = w.follow(ctx, s, q)
			}
			select {
			case w.lost <- err:
			case <-ctx.Done():
			}
			return nil
		})
	}
}

// follow hands on what the journal has for a source.
func (w *watch) follow(ctx context.Context, s *watched, q systemd.JournalQuery) error {
	return w.Follow(ctx, q, func(e systemd.Entry) error {
		s.heard.Store(true)
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
func (w *watch) loop(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	silent := true
	var gone []error
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.lost:
			if ctx.Err() != nil {
				return nil
			}
			if err == nil {
				err = errors.New("the journal ended")
			}
			w.Log.Warn("a journal is not followed", "error", err)
			gone = append(gone, err)
			// Whoever starts the watch again helps, but for a journal that may not be read.
			if len(gone) == len(w.sources) || !errors.Is(err, systemd.ErrNoJournal) {
				return fmt.Errorf("watch for bad ends: %w", errors.Join(gone...))
			}
		case a := <-w.news:
			silent = false
			w.settle(ctx, a.from, a.entry.At)
			a.from.take(a.entry)
		case <-tick.C:
			for _, s := range w.sources {
				w.look(ctx, s, silent)
			}
			if !silent {
				silent = true
				continue
			}
			for _, s := range w.sources {
				w.settle(ctx, s, w.Now())
			}
			w.save(false)
			if passed(w.Now(), w.found, listEvery) {
				w.find(ctx)
			}
		}
	}
}

// passed tells whether so much time has passed; a clock that was set back does not hold it up.
func passed(now, since time.Time, span time.Duration) bool {
	return since.IsZero() || now.Sub(since) >= span || now.Before(since)
}

// look looks at which services are ours, and at their processes. One that is no longer ours is forgotten only when all of
// the journal was read.
func (w *watch) look(ctx context.Context, s *watched, silent bool) {
	now := w.Now()
	if passed(now, s.tried, listEvery) || s.started && passed(now, s.tried, sooner*w.Look) {
		s.tried = now
		if err := w.list(ctx, s, !silent); err != nil && ctx.Err() == nil {
			w.Log.Debug("services are not listed", "error", err)
		}
	}
	if now.Before(s.next) && s.next.Sub(now) <= sooner*w.Look || len(s.services) == 0 {
		return
	}
	running, err := s.Running(ctx, slices.Sorted(maps.Keys(s.services))...)
	if s.next = w.Now().Add(w.Look); err != nil {
		s.next = w.Now().Add(sooner * w.Look)
		w.Log.Debug("processes are not looked at", "source", s.Name, "error", err)
	}
	for _, r := range running {
		lost, changed := s.services[r.Unit].see(r, now)
		s.lose(r.Unit, lost)
		if changed {
			w.save(true)
		}
	}
}

// list asks a manager which services are ours.
func (w *watch) list(ctx context.Context, s *watched, keep bool) error {
	units, err := s.Units(ctx)
	if err != nil {
		return fmt.Errorf("list the services of the %s manager: %w", s.Name, err)
	}
	s.list(units, keep)
	s.asked = w.Now()
	return nil
}

// settle reports what is due when the journal is at a moment. What fails is tried again later.
func (w *watch) settle(ctx context.Context, s *watched, at time.Time) {
	for _, d := range s.due(at) {
		if w.Now().Before(d.retry) {
			continue
		}
		err := w.decide(ctx, s, d)
		if err == nil && !d.ours {
			w.Log.Info("no incident: it is no service that runs a package", "unit", d.unit, "ended", d.first)
			s.forget(d)
			continue
		}
		if err == nil {
			err = w.report(ctx, s, d)
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errOrderly) {
			w.Log.Info("no incident: the server said good-bye", "unit", d.unit, "ended", d.first)
			s.forget(d)
			continue
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

// decide finds out whether a unit that was none of our services when it ended is one that was not known yet.
func (w *watch) decide(ctx context.Context, s *watched, d *loss) error {
	if !d.ours && s.services[d.unit] == nil && passed(w.Now(), s.asked, unitsFresh) {
		if err := w.list(ctx, s, true); err != nil {
			return err
		}
	}
	d.ours = d.ours || s.services[d.unit] != nil
	return nil
}

// errOrderly says that a server that is gone was stopped by its front end.
var errOrderly = errors.New("it was no bad end")

// report makes one report of the ends of a unit that are not yet covered by one.
func (w *watch) report(ctx context.Context, s *watched, d *loss) error {
	ctx, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	e, err := s.Gather(ctx, d.unit, d.since(), d.news.Add(w.Settle), d.lost)
	if err != nil {
		return err
	}
	if err := e.Unread; err != nil && (len(e.Entries) == 0 || !passed(w.Now(), d.news, unreadLimit)) {
		return fmt.Errorf("read the journal: %w", err)
	}
	e.Ends = max(d.ends, 1)
	r := Analyse(e)
	if len(d.lost) > 0 && r.Ending == nil {
		return errOrderly
	}
	dir, err := w.place(d, e, r)
	if err != nil || dir == "" {
		return err
	}
	w.Log.Info("wrote an incident", "unit", d.unit, "folder", dir, "signature", r.Signature, "ends", d.ends)
	if w.Written != nil {
		w.Written(dir, e.Ends, r)
	}
	return nil
}

// place writes a report to a folder and names it: "" where one has it that was written before the state could be. A folder of
// the same name, as of a report by hand or of another scope, is passed over.
func (w *watch) place(d *loss, e *Evidence, r *Report) (dir string, err error) {
	name := filepath.Join(w.Incidents, FolderName(d.unit, d.latest))
	for n := 1; n <= mostNames; n++ {
		if dir = name; n > 1 {
			dir = fmt.Sprintf("%s-%d", name, n)
		}
		if err = w.write(dir, e, r); !errors.Is(err, fs.ErrExist) {
			return dir, err
		}
		if there, err := readEarlier(dir); err == nil && there.Unit == r.Unit && there.Event == r.Event {
			return "", nil
		}
	}
	return "", err
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

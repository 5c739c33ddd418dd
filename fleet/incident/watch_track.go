package incident

import (
	"slices"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// trackedIDs are the messages that tell of the lives of units.
func trackedIDs() []string {
	return []string{
		systemd.IDUnitStarting, systemd.IDUnitStarted, systemd.IDUnitStartFailed, systemd.IDUnitStopping, systemd.IDUnitStopped,
		systemd.IDProcessExited, systemd.IDFailureResult, systemd.IDRestartScheduled,
		systemd.IDOOM, systemd.IDOOMD, systemd.IDCoredump,
	}
}

// track is what one manager says of its units.
type track struct {
	settle  time.Duration
	deaths  map[string]*loss
	stops   map[string]place // units that were told to stop, and are not yet down
	exits   map[string]exit  // how their main processes ended last
	covered []covered        // by reports, in order

	services map[string]*known // of ours
	started  bool              // so was a unit that is not among them, since they were listed

	last  place
	begun time.Time // when the first watch of this manager began: what is read where there is no cursor
}

// place is one in the journal: all behind it is still to be read. The first one of a track is number 0.
type place struct {
	number int64
	cursor string // "": the beginning of the watch
}

type exit struct{ code, status string }

// loss is a bad end of a unit, with those that follow in a loop.
type loss struct {
	unit     string
	from     place  // of the first end that no report covers
	boot     string // of the latest end
	mono     time.Duration
	first    time.Time // of the ends that no report covers; of them all once they are covered
	latest   time.Time
	news     time.Time // the manager's last word on the unit
	ends     int       // that no report covers
	lost     []Lost    // servers among them, which systemd says nothing of
	ours     bool      // it was a service of ours when it ended
	counted  bool      // its latest end is one that the manager has told the result of
	began    bool      // it was started again since then
	gaveUp   bool
	reported time.Time // when the journal was there that the last report was made; zero: none
	wait     time.Duration
	retry    time.Time // by the host's clock
}

// covered says that a report was made of all ends of a unit up to one.
type covered struct {
	Unit string        `json:"unit"`
	Boot string        `json:"boot"`
	Mono time.Duration `json:"monotonic"` // since that boot, ns
	At   time.Time     `json:"at"`        // the same by the host's clock
	Made time.Time     `json:"made"`
}

// mostCovered bounds how many reports are remembered.
const mostCovered = 200

func newTrack(s sourceState, settle time.Duration, now time.Time) *track {
	if s.Begun.IsZero() {
		s.Begun = now
	}
	t := &track{
		settle: settle, deaths: map[string]*loss{}, stops: map[string]place{}, exits: map[string]exit{},
		covered: s.Covered, services: map[string]*known{}, last: place{0, s.Cursor}, begun: s.Begun,
	}
	for _, c := range s.Covered { // a loop may go on
		t.deaths[c.Unit] = &loss{unit: c.Unit, from: t.last, boot: c.Boot, mono: c.Mono, first: c.At, latest: c.At, news: c.At, reported: c.Made}
	}
	for unit, k := range s.Services {
		t.services[unit] = &k
		t.lose(unit, k.Lost)
	}
	return t
}

// take takes in an entry. What it makes due is told by due.
func (t *track) take(e systemd.Entry) {
	before := t.last
	t.last = place{before.number + 1, e.Cursor}
	if e.Unit == "" {
		return
	}
	_, stopping := t.stops[e.Unit]
	bad := false
	switch e.ID {
	case systemd.IDUnitStopping:
		t.stops[e.Unit] = before
	case systemd.IDUnitStarting, systemd.IDUnitStarted, systemd.IDUnitStopped:
		delete(t.stops, e.Unit)
	case systemd.IDProcessExited:
		t.exits[e.Unit] = exit{e.Fields["EXIT_CODE"], e.Fields["EXIT_STATUS"]}
	case systemd.IDFailureResult:
		bad = !stopping || t.exits[e.Unit].crash()
	case systemd.IDOOM, systemd.IDOOMD, systemd.IDCoredump:
		bad = true
	}
	d := t.deaths[e.Unit]
	if bad && !t.isCovered(e) {
		if d == nil {
			d = &loss{unit: e.Unit}
			t.deaths[e.Unit] = d
		}
		d.add(e, before, t.exits[e.Unit] != exit{} || d.began)
	}
	if e.ID == systemd.IDFailureResult {
		delete(t.exits, e.Unit)
	}
	t.started = t.started || t.services[e.Unit] == nil && e.ID == systemd.IDUnitStarted
	if d == nil || t.isCovered(e) {
		return
	}
	d.ours = d.ours || bad && t.services[e.Unit] != nil
	d.news = e.At
	switch e.ID {
	case systemd.IDUnitStartFailed:
		d.gaveUp = true
	case systemd.IDRestartScheduled:
		d.gaveUp = false
	case systemd.IDUnitStarting, systemd.IDUnitStarted:
		d.gaveUp, d.began = false, true
	}
}

// crash tells of an end that no stop explains: by a signal that nobody stops a service with.
func (x exit) crash() bool {
	// ILL, TRAP, ABRT, BUS, FPE, SEGV and SYS.
	return x.code == "dumped" || x.code == "killed" && slices.Contains([]string{"4", "5", "6", "7", "8", "11", "31"}, x.status)
}

// add counts an end. A failure without a life since the last one, as of a start that was refused, ends nothing once
// more, nor does a second word about the same end. That a process exited may be lost in a flood of its lines, and so may
// be that it was started: either will do.
func (d *loss) add(e systemd.Entry, before place, lived bool) {
	if d.ends == 0 {
		d.from, d.first = before, e.At
	}
	told := e.ID == systemd.IDFailureResult && lived
	if d.ends == 0 || told && d.counted {
		d.ends++
	}
	if told {
		d.counted, d.began = true, false
	}
	d.boot, d.mono, d.latest = e.Boot, e.Monotonic, e.At
}

// isCovered tells whether a report speaks of an entry already.
func (t *track) isCovered(e systemd.Entry) bool {
	return slices.ContainsFunc(t.covered, func(c covered) bool {
		return c.Unit == e.Unit && c.Boot == e.Boot && e.Monotonic <= c.Mono
	})
}

// due are the deaths that are to be reported when the journal is at a moment; those that are over are forgotten.
func (t *track) due(at time.Time) []*loss {
	var due []*loss
	for unit, d := range t.deaths {
		settle := t.settle
		if d.gaveUp { // nothing more will come
			settle /= 10
		}
		settled := at.Sub(d.news) >= settle
		gap := loopGap
		if t.reports(unit, at) >= mostReports {
			gap = loopReport
		}
		quiet := at.Sub(d.latest) >= gap
		switch {
		case d.ends == 0 && quiet:
			delete(t.deaths, unit)
		case d.ends == 0:
		case d.reported.IsZero() && (settled || at.Sub(d.first) >= 4*t.settle):
			due = append(due, d)
		case d.reported.IsZero():
		case quiet, d.gaveUp && settled, at.Sub(d.reported) >= loopReport:
			due = append(due, d)
		}
	}
	slices.SortFunc(due, func(a, b *loss) int { return int(a.from.number - b.from.number) })
	return due
}

// reports counts those of a unit within loopReport.
func (t *track) reports(unit string, at time.Time) int {
	n := 0
	for _, c := range t.covered {
		if age := at.Sub(c.Made); c.Unit == unit && age >= 0 && age < loopReport {
			n++
		}
	}
	return n
}

// since is from when on ends are what a report of d is about. A server may have written its last words long before it was
// gone, but none before it began.
func (d *loss) since() time.Time {
	since := d.first
	if len(d.lost) > 0 {
		since = earliest(since, d.lost[0].Began)
	}
	return since.Add(-time.Second)
}

// reported notes that a report covers a death when the journal is at a moment.
func (t *track) reported(d *loss, at time.Time) {
	t.covered = append(t.covered, covered{d.unit, d.boot, d.mono, d.latest, at})
	t.covered = t.covered[max(0, len(t.covered)-mostCovered):]
	d.reported, d.ends, d.lost, d.counted, d.wait, d.retry = at, 0, nil, false, 0, time.Time{}
}

// forget drops a death that is none of ours, or none at all.
func (t *track) forget(d *loss) { delete(t.deaths, d.unit) }

// done is the place up to which everything has been dealt with.
func (t *track) done() place {
	done := t.last
	for _, d := range t.deaths {
		if d.ends > 0 && d.from.number < done.number {
			done = d.from
		}
	}
	for _, p := range t.stops {
		if p.number < done.number {
			done = p
		}
	}
	return done
}

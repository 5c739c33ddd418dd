package incident

import (
	"slices"
	"time"

	"github.com/1bit-systems/pkg/fleet"
)

// A front end outlives the server that it has started, and starts another: of that systemd says nothing. So the watch looks
// at the processes of our services, and remembers which server each has.

// known is a service of ours as it was seen last.
type known struct {
	Invocation string          `json:"invocation"`
	Main       fleet.Started   `json:"main"`
	Servers    []fleet.Started `json:"servers"`
	Seen       time.Time       `json:"seen"`
	Lost       []Lost          `json:"lost"` // that no report tells of yet

	missing bool // a server was gone when it was looked at last
}

// Lost is a server that was gone while the front end that had started it went on.
type Lost struct {
	PID        int       `json:"pid"`
	Invocation string    `json:"invocation"`
	Began      time.Time `json:"began"`
	Seen       time.Time `json:"seen"` // alive, the last time
	Gone       time.Time `json:"gone"` // seen first
}

// see takes in how a service runs, and tells which servers it has lost since the last look, and whether others run. One
// that is gone without another in its place is lost only at the next look: a front end that ends itself may have ended its
// server before.
func (k *known) see(r fleet.Running, now time.Time) (lost []Lost, changed bool) {
	if r.Invocation == k.Invocation && r.Main == k.Main && r.Main.PID != 0 {
		for _, s := range k.Servers {
			if !slices.Contains(r.Servers, s) {
				began := r.Boot.Add(s.Since)
				lost = append(lost, Lost{s.PID, r.Invocation, began, later(k.Seen, began), now})
			}
		}
		another := slices.ContainsFunc(r.Servers, func(s fleet.Started) bool { return !slices.Contains(k.Servers, s) })
		switch {
		case len(lost) == 0 && !another:
			k.Seen, k.missing = now, false
			return nil, false
		case len(lost) > 0 && !slices.Contains([]string{"active", "activating", "reloading"}, r.State):
			return nil, false // it is stopped
		case len(lost) > 0 && !another && !k.missing:
			k.missing = true
			return nil, false
		}
	}
	k.Invocation, k.Main, k.Servers, k.Seen, k.missing = r.Invocation, r.Main, r.Servers, now, false
	return lost, true
}

// durable is what the state keeps. When it was seen is told by the hour, so that it is written no more often.
func (k *known) durable(d *loss) known {
	out := *k
	out.Seen, out.Lost = k.Seen.Truncate(time.Hour), nil
	if d != nil {
		out.Lost = d.lost
	}
	return out
}

// mostLost bounds how many servers a report is told of.
const mostLost = 20

// lose counts servers that are gone.
func (t *track) lose(unit string, lost []Lost) {
	for _, l := range lost {
		d := t.deaths[unit]
		if d == nil {
			d = &loss{unit: unit}
			t.deaths[unit] = d
		}
		if d.ends == 0 {
			d.from, d.first = t.last, l.Gone
		}
		if d.ends == 0 || d.counted { // else it is what a core dump has told already
			d.ends++
		}
		d.counted, d.ours = true, true
		d.latest, d.news = later(d.latest, l.Gone), later(d.news, l.Gone)
		d.lost = append(d.lost, l)
		d.lost = d.lost[max(0, len(d.lost)-mostLost):]
	}
}

// list takes in which services are ours; those that no longer are stay with keep.
func (t *track) list(units []string, keep bool) {
	for _, unit := range units {
		if t.services[unit] == nil {
			t.services[unit] = &known{}
		}
	}
	for unit := range t.services {
		if !keep && !slices.Contains(units, unit) {
			delete(t.services, unit)
		}
	}
	t.started = false
}

package incident

import (
	"fmt"
	"slices"
	"time"
)

// lostEnds adds to the ends what a watch saw of servers that vanished under a front end: when, where the log is silent about
// it, and that they did at all, where it tells nothing. One that said good-bye was stopped by its front end.
func lostEnds(e *Evidence, runs []*run, ends []downfall) []downfall {
	for _, l := range e.Lost {
		i := slices.IndexFunc(ends, func(d downfall) bool {
			return d.Child && d.Invocation == l.Invocation && !d.At.Before(l.Began.Add(-time.Second)) && !d.At.After(l.Gone)
		})
		if i >= 0 {
			if d := &ends[i]; d.core == nil && d.server != nil && d.server.wentWrong().IsZero() {
				d.vanished(l)
			}
			continue
		}
		d := downfall{run: &run{invocation: l.Invocation, engine: readEngine(nil, nil)}}
		if i := slices.IndexFunc(runs, func(r *run) bool { return r.invocation == l.Invocation }); i >= 0 {
			d.run = runs[i]
		}
		for j, s := range d.run.engine.servers {
			if !s.began.Before(l.Began.Add(-time.Second)) && !s.began.After(l.Gone) && (d.server == nil || s.pid == l.PID) {
				d.server, d.after = s, follower(d.run.engine.servers[j+1:], s)
			}
		}
		if d.server != nil && d.server.cleaned {
			continue
		}
		d.PID, d.Invocation, d.Child = l.PID, l.Invocation, true
		d.Cause = fmt.Sprintf("the server (pid %d) ended without a word of why, as after a signal; the main process went on", l.PID)
		d.vanished(l)
		ends = append(ends, d)
	}
	return ends
}

// vanished gives an end the times at which a watch saw the server last, and saw it gone.
func (d *downfall) vanished(l Lost) {
	began, gone, up := l.Began, l.Gone, l.Seen.Sub(l.Began).Seconds()
	d.At, d.Before, d.StartedAt, d.UptimeS = l.Seen, &gone, &began, &up
	d.Cause += "; the watch saw it go"
}

package incident

import (
	"slices"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/systemd"
)

// A run is one life of the unit, from one start to the next.
type run struct {
	invocation string
	boot       string
	first      time.Time // of its entries
	last       time.Time
	started    time.Time     // zero: not seen
	start      time.Duration // the same since the boot; 0: not told
	lastMono   time.Duration // of its last entry
	said       []string      // by systemd about the run, and no mark
	marks      []mark
	lines      []systemd.Entry // of its processes
	holes      []time.Time     // when a part of its log had not been there
	nextBoot   time.Time       // the first entry of the boot that came after it; zero: none
	over       bool            // another run followed
	engine     *engineLog      // what the engine's own lines tell
}

// runsOf cuts the journal of a unit into runs. Entries name their run by the invocation; the last lines of a process
// often come behind systemd's word about its end, or behind those of the next run. Where no invocation is told, a start
// behind an end begins a run.
func runsOf(entries []systemd.Entry) []*run {
	var runs []*run
	byID := map[string]*run{}
	var cur *run
	for i := range entries {
		e := entries[i]
		m, isMark := readMark(e)
		r := cur
		switch {
		case cur == nil || e.Boot != "" && cur.boot != "" && e.Boot != cur.boot:
			r = nil
		case e.Invocation != "" && byID[e.Boot+e.Invocation] != nil:
			r = byID[e.Boot+e.Invocation]
		case e.Invocation != "" && (cur.invocation != "" || cur.ended()), isMark && m.starts() && cur.ended():
			r = nil
		}
		if r == nil {
			r = &run{first: e.At}
			if cur != nil {
				cur.over = true
				if cur.boot != e.Boot && cur.boot != "" && e.Boot != "" {
					cur.nextBoot = e.At
				}
			}
			runs, cur = append(runs, r), r
		}
		if e.Invocation != "" && r.invocation == "" {
			r.invocation = e.Invocation
			byID[e.Boot+e.Invocation] = r
		}
		if r.boot == "" {
			r.boot = e.Boot
		}
		r.last, r.lastMono = later(r.last, e.At), max(r.lastMono, e.Monotonic)
		if e.Missing != "" || e.ID == systemd.IDSuppressed {
			r.holes = append(r.holes, e.At)
		}
		if !isMark {
			if !strings.HasPrefix(e.Identifier, "systemd") {
				r.lines = append(r.lines, e)
			} else if e.Identifier == "systemd" && e.Fields["_TRANSPORT"] != "stdout" && e.Message != "" && len(r.said) < 16 {
				r.said = append(r.said, e.Message)
			}
			continue
		}
		r.marks = append(r.marks, m)
		if m.starts() {
			if r.started.IsZero() || m.kind == markStarting && m.at.Before(r.started) {
				r.started, r.start = m.at, m.mono
			}
		}
	}
	return runs
}

// addHoles adds the times that the evidence does not have the log of.
func (r *run) addHoles(kept []Span) {
	kept = slices.Clone(kept)
	slices.SortFunc(kept, func(a, b Span) int { return a.From.Compare(b.From) })
	var end time.Time
	for _, s := range kept {
		if !end.IsZero() && s.From.After(end) && r.first.Before(s.From) && r.last.After(end) {
			r.holes = append(r.holes, s.From)
		}
		end = later(end, s.To)
	}
	slices.SortFunc(r.holes, time.Time.Compare)
}

// starts tells whether a mark is of a start.
func (m mark) starts() bool { return m.kind == markStarting || m.kind == markStarted }

// ended tells whether systemd has said that the run's end has come.
func (r *run) ended() bool {
	return r.mark(markExit, markResult, markSuccess, markStopped, markRestart, markStartLimit) != nil
}

// mark finds the first mark of any of these kinds, nil without.
func (r *run) mark(kinds ...markKind) *mark {
	for i := range r.marks {
		for _, k := range kinds {
			if r.marks[i].kind == k {
				return &r.marks[i]
			}
		}
	}
	return nil
}

// pids are the processes of the run that said something, or of which it is known that they died.
func (r *run) pids() []int {
	seen := map[int]bool{0: true}
	var pids []int
	add := func(pid int) {
		if !seen[pid] {
			seen[pid] = true
			pids = append(pids, pid)
		}
	}
	for i := range r.lines {
		add(r.lines[i].PID)
	}
	for _, m := range r.marks {
		if m.kind == markCoredump || m.kind == markClientKill {
			add(m.number)
		}
	}
	return pids
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

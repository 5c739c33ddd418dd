package engine

import (
	"slices"
	"strings"
	"time"
)

// A Joiner makes tasks of the events of one log, which may be that of a router
// with many servers and of servers that started again and again.
//
//	selected ─> launch ─> prompt, progress, timing… ─> release        2026
//	selected ─> launch ─> prompt ─> release ─> timing…                2024, 2025
//
// A selection names no task; it belongs to the next launch on its slot. Lines
// are joined in the order in which they stand in the log, by router, slot and
// task: those of one server's slots come from one thread, in order. Times,
// which other threads' lines may carry out of order, join nothing but guard
// lines, and those only when one task alone can be meant.
//
// What it holds in memory grows with the number of slots, not with the log.
type Joiner struct {
	// Done is called for each task when it has ended, in the order of the releases.
	Done func(Task)
	// Loose counts guard lines that could be of several tasks, or of none.
	Loose int
	// Orphans counts releases and timings whose launch was not seen.
	Orphans int

	routers map[int]*serverLog
	events  int
}

const (
	maxSlots   = 1024 // llama.cpp makes no more than 256
	maxServers = 64   // of a router, at one time
	maxGuard   = 16   // guard lines that a task keeps
	// outOfOrder is how far the lines of two threads may stand from the order of their times.
	outOfOrder = 2 * time.Millisecond
	// restarted is how far the time must run back to tell of a new process.
	restarted = time.Second
)

// A serverLog is one server's part of the log.
type serverLog struct {
	port     int
	life     int
	begun    bool // a line of this life was seen
	whole    bool // its first line was: no slot can be busy unseen
	slots    []slotState
	held     *Task // released, but its timings may still come
	last     time.Duration
	lastTask int
	seen     int // when the last event came
}

// A slotState is what one slot is at.
type slotState struct {
	selected    LogEvent // Kind is "" without
	task        Task
	running     bool
	launches    int
	lastTask    int
	released    time.Duration
	hasReleased bool
}

// Add takes the next event.
func (j *Joiner) Add(ev LogEvent) {
	switch ev.Kind {
	case LogStartup, LogSelected, LogLaunch, LogPrompt, LogTiming, LogGraphs, LogRelease, LogCancel, LogError, LogContext, LogNaN, LogAbort:
	default:
		return
	}
	l := j.server(ev.Router)
	switch ev.Kind {
	case LogSelected, LogLaunch, LogRelease, LogPrompt, LogTiming, LogGraphs:
		if ev.Slot < 0 || ev.Slot >= maxSlots {
			j.Orphans++
			return
		}
	}
	switch ev.Kind {
	case LogStartup:
		j.newLife(l, true)
	case LogSelected:
		ev.Detail = "" // it would hold a block of the log
		l.slot(ev.Slot).selected = ev
	case LogLaunch:
		j.launch(l, &ev)
	case LogRelease:
		j.release(l, &ev)
	case LogPrompt, LogTiming, LogGraphs:
		if t := l.task(ev.Slot, ev.Task); t != nil {
			t.note(&ev)
		} else {
			j.Orphans++
		}
	case LogCancel, LogError, LogContext:
		if t := l.running(ev.Task); t != nil {
			t.note(&ev)
		}
	case LogNaN, LogAbort:
		j.guard(l, &ev)
	}
}

// Flush ends the log: what still runs is done, unfinished.
func (j *Joiner) Flush() {
	servers := make([]*serverLog, 0, len(j.routers))
	for _, l := range j.routers {
		servers = append(servers, l)
	}
	slices.SortFunc(servers, func(a, b *serverLog) int { return a.port - b.port })
	for _, l := range servers {
		j.endAll(l)
	}
}

// server finds the part of the log that a line belongs to. Routers start their
// servers on ever new ports, so the one that was silent longest makes room.
func (j *Joiner) server(port int) *serverLog {
	j.events++
	l := j.routers[port]
	if l == nil {
		if j.routers == nil {
			j.routers = map[int]*serverLog{}
		}
		if len(j.routers) >= maxServers {
			j.forgetOne()
		}
		l = &serverLog{port: port, life: 1, lastTask: -1}
		j.routers[port] = l
	}
	l.seen = j.events
	return l
}

func (j *Joiner) forgetOne() {
	var oldest *serverLog
	for _, l := range j.routers {
		if oldest == nil || l.seen < oldest.seen {
			oldest = l
		}
	}
	j.endAll(oldest)
	delete(j.routers, oldest.port)
}

// newLife ends what the server before it left undone.
func (j *Joiner) newLife(l *serverLog, whole bool) {
	j.endAll(l)
	if l.begun {
		l.life++
	}
	l.begun, l.whole, l.slots, l.last, l.lastTask = true, whole, l.slots[:0], 0, -1
}

func (j *Joiner) launch(l *serverLog, ev *LogEvent) {
	j.letGo(l)
	s := l.slot(ev.Slot)
	if l.startedAgain(s, ev) {
		selected := s.selected
		j.newLife(l, false)
		s = l.slot(ev.Slot)
		s.selected = selected
	}
	if s.running { // its release was lost
		j.done(s.task)
	}
	l.begun, l.last, l.lastTask = true, ev.At(), max(l.lastTask, ev.Task)
	s.task = Task{Router: l.port, Life: l.life, Slot: ev.Slot, ID: ev.Task, Child: ev.Child,
		Selected: ev.At(), Launched: ev.At(), Released: ev.At()}
	if s.selected.Kind != "" {
		s.task.How, s.task.NeverUsed, s.task.Similarity = s.selected.How, s.selected.NeverUsed, s.selected.Similarity
		s.task.Selected = min(s.selected.At(), ev.At())
	}
	if s.task.How != SelectedLRU { // the others do not say so
		s.task.NeverUsed = l.whole && s.launches == 0
	}
	s.selected = LogEvent{}
	s.running, s.lastTask = true, ev.Task
	s.launches++
}

// startedAgain tells whether a launch is that of a new process whose first
// lines are missing: task ids never come twice in one.
func (l *serverLog) startedAgain(s *slotState, ev *LogEvent) bool {
	if s.launches > 0 && ev.Task == s.lastTask {
		return true
	}
	return ev.Timed && ev.Time+restarted < l.last && ev.Task < l.lastTask
}

func (j *Joiner) release(l *serverLog, ev *LogEvent) {
	j.letGo(l)
	if ev.Slot >= len(l.slots) || !l.slots[ev.Slot].running || l.slots[ev.Slot].task.ID != ev.Task {
		j.Orphans++
		return
	}
	s := &l.slots[ev.Slot]
	s.running = false
	s.released, s.hasReleased = ev.At(), true
	s.task.note(ev)
	if s.task.TotalMS > 0 || s.task.EvalMS > 0 {
		j.done(s.task)
		return
	}
	t := s.task
	l.held = &t
}

// letGo gives up waiting for timings.
func (j *Joiner) letGo(l *serverLog) {
	if t := l.held; t != nil {
		l.held = nil
		j.done(*t)
	}
}

// endAll ends everything a server has under way, the oldest first.
func (j *Joiner) endAll(l *serverLog) {
	j.letGo(l)
	var left []Task
	for i := range l.slots {
		if s := &l.slots[i]; s.running {
			s.running = false
			left = append(left, s.task)
		}
	}
	slices.SortStableFunc(left, func(a, b Task) int { return a.ID - b.ID })
	for _, t := range left {
		j.done(t)
	}
}

func (j *Joiner) done(t Task) {
	if j.Done != nil {
		j.Done(t)
	}
}

// guard gives a guard line to the one task that it can be of.
func (j *Joiner) guard(l *serverLog, ev *LogEvent) {
	if ev.Kind == LogAbort && !ev.NaNAbort {
		return
	}
	t := l.only(ev)
	if t == nil {
		j.Loose++
		return
	}
	if t.GuardLines++; len(t.Guard) < maxGuard {
		kept := *ev
		kept.Detail = strings.Clone(ev.Detail)
		t.Guard = append(t.Guard, kept)
	}
}

// only finds the task that alone is running at an event, by the place of its
// line and by its time.
func (l *serverLog) only(ev *LogEvent) *Task {
	if !l.whole {
		return nil
	}
	var t *Task
	for i := range l.slots {
		s := &l.slots[i]
		if s.running {
			if t != nil {
				return nil
			}
			t = &s.task
		}
		if d := ev.Time - s.released; ev.Timed && s.hasReleased && -outOfOrder < d && d < outOfOrder {
			return nil
		}
	}
	return t
}

func (l *serverLog) slot(id int) *slotState {
	for len(l.slots) <= id {
		l.slots = append(l.slots, slotState{})
	}
	return &l.slots[id]
}

// task finds a task that runs on a slot, or that waits for its timings.
func (l *serverLog) task(slot, id int) *Task {
	if l.held != nil && l.held.Slot == slot && l.held.ID == id {
		return l.held
	}
	if slot < len(l.slots) && l.slots[slot].running && l.slots[slot].task.ID == id {
		return &l.slots[slot].task
	}
	return nil
}

// running finds a running task by its id alone.
func (l *serverLog) running(id int) *Task {
	for i := range l.slots {
		if s := &l.slots[i]; s.running && s.task.ID == id {
			return &s.task
		}
	}
	return nil
}

package incident

import (
	"strconv"
	"strings"
	"time"

	"github.com/1bit-systems/pkg/engine"
	"github.com/1bit-systems/pkg/internal/lazyregexp"
	"github.com/1bit-systems/pkg/systemd"
)

// An engineLog is what the lines of one run's processes tell.
type engineLog struct {
	servers []*server // in the order in which they began
	current map[serverKey]*server
	readers map[int]*engine.LogReader
	hosts   []HostAt
	readies []time.Time
}

// A server is one llama-server, alone, behind a front end that hands its lines on, or one of a router's.
type server struct {
	pid, router int
	startup     *engine.LogEvent
	began       time.Time // its first line
	last        time.Time // its last
	timed       bool      // its lines carry their time
	clock       time.Duration
	offset      time.Time     // when its clock was zero, as the last line has it
	zero        time.Duration // the same by the clock of the boot
	booted      bool          // zero is told
	launches    int
	life        int
	joiner      *engine.Joiner
	tasks       map[taskKey]*taskTimes
	chosen      map[int]time.Time    // selections that wait for their launch, by slot
	slots       map[int]*engine.Task // the last task of each
	counts      map[int]int          // tasks of each slot
	prompts     map[int]int          // whole prompts by length
	answers     map[int]int          // generated tokens by number
	placement   engine.Placement
	running     map[int]int   // task by slot
	doubtful    map[int]bool  // slots whose task may have ended where the log is not there
	sure        bool          // no slot can be busy unseen
	holed       bool          // a part of its log is not there
	freed       time.Duration // when a slot was last released, by its own clock
	guards      []guardLine
	aborts      []abortLine
	cleaned     bool // it said good-bye
}

type serverKey struct{ pid, router int }

type taskKey struct{ slot, task int }

// taskTimes is when the journal got the lines of a task.
type taskTimes struct{ selected, launched, released time.Time }

const (
	maxServers = 256 // of a run
	maxGuards  = 64  // lines kept of a server
	maxLengths = 4096
)

// A front end writes such a line when it starts; prompts, which may hold anything, are only in the lines of a server
// that has tasks.
var (
	reHost  = lazyregexp.New(`(?:^|[\]:] )GTT (\d{1,6}(?:\.\d+)?) of (\d{1,6}(?:\.\d+)?) GiB free(?:, MemAvailable (\d{1,6}(?:\.\d+)?) GiB)?\.?$`)
	reReady = lazyregexp.New(`(?:^|: )(?:(?:HTTP )?(?:server (?:is )?)?listening (?:on|at) |HTTP server listening|ready on )`)
)

// readEngine reads the lines of a run's processes. Before each of the holes, which are in order, a part is not there.
func readEngine(lines []systemd.Entry, holes []time.Time) *engineLog {
	l := &engineLog{current: map[serverKey]*server{}, readers: map[int]*engine.LogReader{}}
	for i := range lines {
		for len(holes) > 0 && !holes[0].After(lines[i].At) {
			holes = holes[1:]
			for _, s := range l.current {
				s.hole()
			}
		}
		l.line(&lines[i])
	}
	for _, s := range l.servers {
		s.joiner.Flush()
	}
	return l
}

func (l *engineLog) line(e *systemd.Entry) {
	if e.Missing != "" { // a part of a line may say another thing than the whole
		return
	}
	text := strings.ReplaceAll(e.Message, "\n", " ") // one entry is one line
	if !l.working(e.PID) {
		l.startLine(e, text)
	}
	r := l.readers[e.PID]
	if r == nil {
		if len(l.readers) >= maxServers {
			return
		}
		r = &engine.LogReader{}
		l.readers[e.PID] = r
	}
	r.Feed([]byte(text+"\n"), 0, func(ev engine.LogEvent) {
		if s := l.server(e, &ev); s != nil {
			s.event(e, ev)
		}
	})
	if strings.HasSuffix(text, "cleaning up before exit...") {
		for _, s := range l.servers {
			s.cleaned = s.cleaned || s.pid == e.PID
		}
	}
}

// working tells whether a process has a server that took tasks and was not seen to die.
func (l *engineLog) working(pid int) bool {
	for _, s := range l.current {
		if s.pid == pid && s.launches > 0 && s.fatal() == nil {
			return true
		}
	}
	return false
}

// startLine reads what is written before the first task.
func (l *engineLog) startLine(e *systemd.Entry, text string) {
	if f := reHost().FindStringSubmatch(text); f != nil && len(l.hosts) < maxServers {
		l.hosts = append(l.hosts, HostAt{At: e.At, GTTFreeGiB: gib(f[1]), GTTTotalGiB: gib(f[2]), MemAvailableGiB: gib(f[3])})
	}
	if reReady().MatchString(text) && len(l.readies) < maxServers {
		l.readies = append(l.readies, e.At)
	}
}

func gib(s string) *float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil
	}
	return &n
}

// server finds whose line it is. A second start on the same place is of a server that came after it.
func (l *engineLog) server(e *systemd.Entry, ev *engine.LogEvent) *server {
	key := serverKey{e.PID, ev.Router}
	s := l.current[key]
	if s != nil && (ev.Kind != engine.LogStartup || s.startup == nil && s.launches == 0) {
		return s
	}
	if len(l.servers) >= maxServers {
		return s
	}
	s = &server{pid: e.PID, router: ev.Router, began: e.At, life: 1,
		tasks: map[taskKey]*taskTimes{}, chosen: map[int]time.Time{}, slots: map[int]*engine.Task{}, counts: map[int]int{},
		prompts: map[int]int{}, answers: map[int]int{}, running: map[int]int{}, doubtful: map[int]bool{}}
	s.joiner = &engine.Joiner{Done: s.done}
	l.servers, l.current[key] = append(l.servers, s), s
	return s
}

// event takes one event of the server's.
func (s *server) event(e *systemd.Entry, ev engine.LogEvent) {
	s.last = later(s.last, e.At)
	switch ev.Kind {
	case engine.LogNaN:
		s.guard(e, ev)
		return
	case engine.LogAbort:
		s.abort(e, ev)
		return
	}
	if ev.Timed {
		s.timed, s.clock, s.offset = true, max(s.clock, ev.Time), e.At.Add(-ev.Time)
		s.zero, s.booted = e.Monotonic-ev.Time, e.Monotonic > 0
	} else {
		ev.Read = e.At.Sub(s.began)
	}
	if ev.Slot >= 0 {
		s.outlived()
	}
	switch ev.Kind {
	case engine.LogStartup:
		startup := ev
		startup.Detail = ""
		s.startup, s.sure = &startup, true
	case engine.LogIdle:
		s.sure = true
		clear(s.running)
	case engine.LogSelected:
		s.chosen[ev.Slot] = e.At
	case engine.LogLaunch:
		s.launches++
		at := &taskTimes{selected: s.chosen[ev.Slot], launched: e.At}
		delete(s.chosen, ev.Slot)
		s.tasks[taskKey{ev.Slot, ev.Task}] = at
		s.running[ev.Slot] = ev.Task
		delete(s.doubtful, ev.Slot)
	case engine.LogRelease:
		delete(s.running, ev.Slot)
		delete(s.doubtful, ev.Slot)
		if ev.Timed {
			s.freed = ev.Time
		}
		if at := s.tasks[taskKey{ev.Slot, ev.Task}]; at != nil {
			at.released = e.At
		}
	}
	s.placement.Add(ev)
	s.joiner.Add(ev)
}

// done takes a task that has ended, or that ran when the log ended.
func (s *server) done(t engine.Task) {
	if t.Life > s.life { // task ids began again
		s.life = t.Life
		clear(s.slots)
		clear(s.counts)
	}
	s.slots[t.Slot] = &t
	s.counts[t.Slot]++
	if n := wholePrompt(t); n > 0 && len(s.prompts) < maxLengths {
		s.prompts[n]++
	}
	if t.Finished && t.Tokens > 0 && len(s.answers) < maxLengths {
		s.answers[t.Tokens]++
	}
}

// hole notes that a part of the log is not there.
func (s *server) hole() {
	s.sure, s.holed = false, true
	for slot := range s.running {
		s.doubtful[slot] = true
	}
}

// wholePrompt is the length of a task's prompt: as the log says it, else what lay on the slot but was not generated,
// else what was evaluated.
func wholePrompt(t engine.Task) int {
	switch {
	case t.Prompt > 0:
		return t.Prompt
	case t.Finished && !t.Truncated && t.Context > t.Tokens && t.Tokens > 0:
		return t.Context - t.Tokens
	}
	return t.PromptTokens
}
